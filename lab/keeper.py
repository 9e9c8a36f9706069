"""The first process of a lab's own PID, mount and network namespaces.

Everything else of the lab runs inside these. When this process ends, however it ends, the kernel ends all of them and
takes the bridges, the veth pairs and the mounts away: nothing has to be found by its name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SERVICES = Path(__file__).with_name("services.py")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    subprocess.Popen([sys.executable, SERVICES])
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(1)


main()
