// Many at once, as processes and as threads of one process: each fills vector registers with values of its own, gives up its processor,
// touches memory that may be new, and looks whether it still has them. Ends with 1 where one has not.
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 3, THREADS = 4, TURNS = 2000, SIZE = 4 * 32, PAGE = 4096 };

static void across_a_switch(const unsigned char *given, unsigned char *kept, char *page) {
  long number = SYS_sched_yield;
  __asm__ volatile("vmovdqu (%[given]), %%ymm0\n\tvmovdqu 32(%[given]), %%ymm5\n\tvmovdqu 64(%[given]), %%ymm10\n\tvmovdqu 96(%[given]), %%ymm15\n\t"
                   "syscall\n\tmovb $1, (%[page])\n\t"
                   "vmovdqu %%ymm0, (%[kept])\n\tvmovdqu %%ymm5, 32(%[kept])\n\tvmovdqu %%ymm10, 64(%[kept])\n\tvmovdqu %%ymm15, 96(%[kept])\n\t"
                   "vzeroupper"
                   : "+a"(number)
                   : [given] "r"(given), [kept] "r"(kept), [page] "r"(page)
                   : "rcx", "r11", "cc", "memory", "xmm0", "xmm5", "xmm10", "xmm15");
}

static void *look(void *own) {
  unsigned char given[SIZE], kept[SIZE];
  char *pages = mmap(NULL, TURNS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int turn = 0; turn < TURNS; turn++) {
    memset(given, (int)((long)own * 31 + turn), SIZE);
    across_a_switch(given, kept, pages + turn * PAGE);
    if (memcmp(given, kept, SIZE))
      _exit(1);
  }
  return NULL;
}

int main(void) {
  for (long process = 0; process < PROCESSES; process++)
    if (fork() == 0) {
      pthread_t threads[THREADS];
      for (long thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, look, (void *)(process * THREADS + thread + 1));
      for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
      _exit(0);
    }
  int wrong = 0, status;
  while (wait(&status) > 0)
    wrong |= status != 0;
  return wrong;
}
