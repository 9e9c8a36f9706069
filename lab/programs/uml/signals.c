// Loaded before User-Mode-Linux: its sigaltstack() and sigaction().
//
// The guest's kernel handles all interrupts on one stack of 16 KiB, whose first 2.7 KiB are taken: below it stands which program runs.
// This machine's kernel lays the processor's registers there too, 3 KiB of them with AVX-512, and again at each fault inside of a
// handler. With Calico 3.7 KiB were left while a lab came up, and a guest on a busy machine once died as one does whose stack has grown
// over its end. So they are laid elsewhere, the handler has its stack to itself, and 6.8 KiB are left.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#define PLACES 8          // as deep as handlers can be nested, and more
#define PLACE (64 * 1024) // with room for the registers of any processor
#define RED_ZONE 128
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

typedef void (*handler)(int, siginfo_t *, void *);

static char places[PLACES][PLACE] __attribute__((aligned(64)));
static stack_t stack; // that the guest's kernel means its handlers to have
static handler handlers[NSIG];
static pid_t kernel;

static int lay_at(int place) {
  static int (*real)(const stack_t *, stack_t *);
  if (!real)
    real = (int (*)(const stack_t *, stack_t *))dlsym(RTLD_NEXT, "sigaltstack");
  // Disarmed while a handler is at work on it: only so can another be set in there.
  return real(&(stack_t){.ss_sp = places[place], .ss_size = PLACE, .ss_flags = (int)SS_AUTODISARM}, NULL);
}

// Where the handler's own stack begins: below what it has interrupted there.
static uintptr_t top(const ucontext_t *interrupted) {
  uintptr_t at = interrupted->uc_mcontext.gregs[REG_RSP], start = (uintptr_t)stack.ss_sp, end = start + stack.ss_size;
  return (start < at && at <= end ? at - RED_ZONE : end) & ~15ul;
}

static void handle(int number, siginfo_t *info, void *context) {
  uintptr_t here = ((uintptr_t)context - (uintptr_t)places) / PLACE;
  if (here >= PLACES) { // a thread without a stack for signals
    handlers[number](number, info, context);
    return;
  }
  lay_at((here + 1) % PLACES); // the return from this handler puts it back to here
  __asm__ volatile("mov %%rsp, %%rbx\n\t"
                   "mov %[top], %%rsp\n\t"
                   "call *%[handler]\n\t"
                   "mov %%rbx, %%rsp"
                   : "+D"(number), "+S"(info), "+d"(context)
                   : [top] "r"(top(context)), [handler] "r"(handlers[number])
                   : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                     "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

// The processes of the guest set stacks and handlers of their own, before they become such.
static int is_kernel(void) { return kernel && getpid() == kernel; }

int sigaltstack(const stack_t *wanted, stack_t *old) {
  static int (*real)(const stack_t *, stack_t *);
  if (!real)
    real = (int (*)(const stack_t *, stack_t *))dlsym(RTLD_NEXT, "sigaltstack");
  if (!wanted || old || kernel)
    return real(wanted, old);
  stack = *wanted;
  kernel = getpid();
  return lay_at(0);
}

int sigaction(int number, const struct sigaction *wanted, struct sigaction *old) {
  static int (*real)(int, const struct sigaction *, struct sigaction *);
  if (!real)
    real = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
  if (!is_kernel())
    return real(number, wanted, old);
  handler before = handlers[number];
  struct sigaction ours;
  if (wanted && wanted->sa_flags & SA_ONSTACK && wanted->sa_flags & SA_SIGINFO) {
    ours = *wanted;
    ours.sa_sigaction = handle;
    handlers[number] = wanted->sa_sigaction;
    wanted = &ours;
  }
  int done = real(number, wanted, old);
  if (old && old->sa_sigaction == handle) // it may be put back
    old->sa_sigaction = before;
  return done;
}
