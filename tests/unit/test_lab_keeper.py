"""The lab's keeper wakes a guest whose clock stands still, seen on a process that waits for a timer which nobody has set."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from checkout import ROOT
from spaces import usable

from lab.keeper import guest_kernels

GUEST = """
import ctypes, signal
signal.signal(signal.SIGALRM, lambda *_: print("woken", flush=True))
assert ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0
print("ready", flush=True)
while True:
    signal.pause()
"""
# As the first process of a PID namespace, as in a lab: of this machine's own processes none is woken.
KEEPER = "import subprocess, sys; from lab.keeper import wake_guests; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); wake_guests(0.05)"


@pytest.mark.skipif(bool(usable()), reason=usable() or "usable")
def test_one_that_stands_still_is_woken():
    argv = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", KEEPER, GUEST]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as keeper:
        try:
            assert [keeper.stdout.readline() for _line in range(3)] == ["ready\n", "woken\n", "woken\n"]
        finally:
            keeper.kill()


def test_one_that_somebody_has_stopped_is_left_alone():
    with subprocess.Popen([sys.executable, "-c", GUEST], stdout=subprocess.PIPE, text=True) as guest:
        try:
            assert guest.stdout.readline() == "ready\n"
            assert guest.pid in guest_kernels()
            guest.send_signal(signal.SIGSTOP)
            while guest.pid in guest_kernels():
                time.sleep(0.01)
        finally:
            guest.kill()
