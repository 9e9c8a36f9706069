"""The first process of a lab's own PID, mount and network namespaces.

Everything else of the lab runs inside these. When this process ends, however it ends, the kernel ends all of them and
takes the bridges, the veth pairs and the mounts away: nothing has to be found by its name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

SERVICES = Path(__file__).with_name("services.py")
STANDS_STILL = 10.0  # seconds


def main() -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    subprocess.Popen([sys.executable, SERVICES])
    threading.Thread(target=wake_guests, daemon=True).start()
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(1)


def wake_guests(every: float = STANDS_STILL) -> None:
    """Once in a few hundred boots a User-Mode-Linux kernel loses its only timer, and its guest stands still for ever: whichever of
    its programs runs is never interrupted. The timer's signal sets it going again, and does nothing to one that is well.
    """
    before: dict[int, str] = {}
    while True:
        now = guest_kernels()
        for pid, switches in now.items():
            if before.get(pid) == switches:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGALRM)
        before = now
        time.sleep(every)


def guest_kernels() -> dict[int, str]:
    """{pid: how often it gave up its processor} of the processes that have such a timer, but for those that somebody has stopped."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            timers, status = (place / "timers").read_text(), (place / "status").read_text()
        except OSError:
            continue
        said = {name: value.strip() for name, _colon, value in (line.partition(":") for line in status.splitlines())}
        if "signal: %d/" % signal.SIGALRM in timers and not said["State"].startswith("T"):
            found[int(place.name)] = said["voluntary_ctxt_switches"]
    return found


if __name__ == "__main__":
    main()
