// Loaded before User-Mode-Linux: its ptrace(), for processors with more state than the 2696 bytes that Linux 6.1 keeps of a process.
//
// Where there is more (AMX), the machine's kernel takes state back only as a whole. What a guest does not keep it never uses, since
// nobody has asked this machine's kernel for it: it is as after power-on, for which zeroes stand.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define XSTATE 0x202 // NT_X86_XSTATE

typedef long (*call)(enum __ptrace_request, pid_t, void *, void *);

static char whole[1 << 16] __attribute__((aligned(64)));
static size_t size; // of all that this processor has

// The guest's kernel is one thread, so one buffer does.
static long put_back(call real, pid_t pid, const struct iovec *kept) {
  struct iovec all = {whole, sizeof whole};
  if (!size) {
    if (real(PTRACE_GETREGSET, pid, (void *)XSTATE, &all) < 0)
      return -1;
    size = all.iov_len;
    memset(whole, 0, sizeof whole);
  }
  if (kept->iov_len >= size)
    return real(PTRACE_SETREGSET, pid, (void *)XSTATE, (void *)kept);
  memcpy(whole, kept->iov_base, kept->iov_len);
  all.iov_len = size;
  return real(PTRACE_SETREGSET, pid, (void *)XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...) {
  static call real;
  if (!real)
    real = (call)dlsym(RTLD_NEXT, "ptrace");
  va_list words;
  va_start(words, request);
  pid_t pid = va_arg(words, pid_t);
  void *address = va_arg(words, void *), *data = va_arg(words, void *);
  va_end(words);
  if (request == PTRACE_SETREGSET && address == (void *)XSTATE)
    return put_back(real, pid, data);
  return real(request, pid, address, data);
}
