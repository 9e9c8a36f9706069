// Loaded before User-Mode-Linux: its clone(), by which it begins the helpers that wait for disks and terminals, and its first process.
//
// They end with it: helpers that were left behind would look like a guest that still runs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#define AT_ONCE 64 // so many may have begun without having read yet what they are to do

static struct task {
  int (*does)(void *);
  void *with;
} tasks[AT_ONCE];

static int begin(void *task) {
  struct task mine = *(struct task *)task;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return mine.does(mine.with);
}

int clone(int (*does)(void *), void *stack, int flags, void *with, ...) {
  static int (*real)(int (*)(void *), void *, int, void *, ...);
  static unsigned next;
  if (!real)
    real = (int (*)(int (*)(void *), void *, int, void *, ...))dlsym(RTLD_NEXT, "clone");
  struct task *task = &tasks[next++ % AT_ONCE];
  *task = (struct task){does, with};
  return real(begin, stack, flags, task);
}
