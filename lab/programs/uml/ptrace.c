// Loaded before User-Mode-Linux: its ptrace(), by which the guest's kernel drives the processes that stand for the guest's own.
//
// - Where that kernel dies, they end with it. Left to themselves they would go on, and their system calls would be this machine's.
// - A processor may have more state than the 2696 bytes that Linux 6.1 keeps of a process.
// - State that a process has anyway is neither fetched nor put back once more, which is a sixth of what a system call takes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define XSTATE ((void *)0x202) // NT_X86_XSTATE
#define OLDSETOPTIONS 21       // what Linux 6.1 says for PTRACE_SETOPTIONS
#define KEPT 2696              // all that a guest's kernel keeps
#define PROCESSES 8192

typedef long (*call)(int, pid_t, void *, void *);

// What stopped processes are known to have. The guest's kernel is one thread, so one table and one buffer do.
static struct known {
  pid_t pid;
  size_t length;
  char state[KEPT];
} table[PROCESSES];

static struct known *known_of(pid_t pid) { return &table[(unsigned)pid % PROCESSES]; }

static void note(pid_t pid, const struct iovec *state) {
  struct known *known = known_of(pid);
  known->pid = 0;
  if (state->iov_len > sizeof known->state)
    return;
  memcpy(known->state, state->iov_base, state->iov_len);
  known->length = state->iov_len;
  known->pid = pid;
}

static long fetch(call real, pid_t pid, struct iovec *state) {
  const struct known *known = known_of(pid);
  if (known->pid == pid && state->iov_len >= known->length) {
    memcpy(state->iov_base, known->state, known->length);
    state->iov_len = known->length;
    return 0;
  }
  long done = real(PTRACE_GETREGSET, pid, XSTATE, state);
  if (done == 0)
    note(pid, state);
  return done;
}

// Where a processor has more (AMX), the machine's kernel takes state back only as a whole. What a guest does not keep it never uses,
// since nobody has asked this machine's kernel for it: it is as after power-on, for which zeroes stand.
static long put_whole(call real, pid_t pid, struct iovec *state) {
  static char whole[1 << 16] __attribute__((aligned(64)));
  static size_t size; // of all that this processor has
  struct iovec all = {whole, sizeof whole};
  if (!size) {
    if (real(PTRACE_GETREGSET, pid, XSTATE, &all) < 0)
      return -1;
    size = all.iov_len;
    memset(whole, 0, sizeof whole);
  }
  if (state->iov_len >= size)
    return real(PTRACE_SETREGSET, pid, XSTATE, state);
  memcpy(whole, state->iov_base, state->iov_len);
  all.iov_len = size;
  return real(PTRACE_SETREGSET, pid, XSTATE, &all);
}

static long put_back(call real, pid_t pid, struct iovec *state) {
  struct known *known = known_of(pid);
  if (known->pid == pid && state->iov_len >= known->length && !memcmp(known->state, state->iov_base, known->length))
    return 0;
  known->pid = 0;
  long done = put_whole(real, pid, state);
  if (done == 0)
    note(pid, state);
  return done;
}

long ptrace(enum __ptrace_request asked, ...) {
  static call real;
  int request = asked;
  if (!real)
    real = (call)dlsym(RTLD_NEXT, "ptrace");
  va_list words;
  va_start(words, asked);
  pid_t pid = va_arg(words, pid_t);
  void *address = va_arg(words, void *), *data = va_arg(words, void *);
  va_end(words);
  if (request == PTRACE_GETREGSET && address == XSTATE)
    return fetch(real, pid, data);
  if (request == PTRACE_SETREGSET && address == XSTATE)
    return put_back(real, pid, data);
  if (request != PTRACE_GETREGS && request != PTRACE_SETREGS && request != PTRACE_GETSIGINFO)
    known_of(pid)->pid = 0; // it may run, or another one had its number
  if (request == PTRACE_SETOPTIONS || request == OLDSETOPTIONS)
    data = (void *)((long)data | PTRACE_O_EXITKILL);
  return real(request, pid, address, data);
}
