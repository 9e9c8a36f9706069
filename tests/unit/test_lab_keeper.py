"""Which processes the lab's keeper takes for guests whose clock may stand still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from lab.keeper import guest_kernels

WITH_A_TIMER = """
import ctypes, signal
signal.signal(signal.SIGALRM, lambda *_: print("woken", flush=True))
assert ctypes.CDLL(None).timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_one_that_has_lost_its_timer_is_found_and_woken():
    with subprocess.Popen([sys.executable, "-c", WITH_A_TIMER], stdout=subprocess.PIPE, text=True) as guest:
        try:
            assert guest.stdout.readline() == "ready\n"
            once = guest_kernels()
            assert once[guest.pid] == guest_kernels()[guest.pid], "it does nothing"
            assert os.getpid() not in once
            os.kill(guest.pid, signal.SIGALRM)
            assert guest.stdout.readline() == "woken\n"
            assert guest_kernels()[guest.pid] != once[guest.pid]
            os.kill(guest.pid, signal.SIGSTOP)
            while guest.pid in guest_kernels():
                time.sleep(0.01)
        finally:
            guest.kill()
