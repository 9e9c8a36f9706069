"""A lab's own corner of the machine: PID, mount and network namespaces that end together with one process."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .cache import CACHE
from .shell import LabError, Word, go_after, run, say, succeeds, wait_until

LABS = CACHE / "labs"
KEEPER = Path(__file__).parent / "keeper.py"
BRIDGES = {"lan0": "10.0.0.1/24", "lan1": "10.1.0.1/24"}  # the nodes' network, and a second one that does not route between them


class Space:
    def __init__(self, lab_id: str) -> None:
        if not lab_id.isalnum() or len(lab_id) > 12:
            raise LabError("a lab's id has up to 12 letters and digits; %r does not" % lab_id)
        self.id = lab_id
        self.place = LABS / lab_id
        self.record = self.place / "keeper"

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One program at a time works on a lab; the lock ends with the program, however it ends."""
        LABS.mkdir(parents=True, exist_ok=True)
        with open(LABS / (".%s.lock" % self.id), "w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another program that works on lab %s" % self.id)
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @property
    def keeper(self) -> int | None:
        """The keeper's pid; None where it does not run (any more). A pid alone could be somebody else's by now."""
        try:
            pid, born = self.record.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if runs(int(pid), born) else None

    def open(self) -> None:
        """Make the namespaces and their bridges; a second call finds them there."""
        self.place.mkdir(parents=True, exist_ok=True)
        if self.keeper is None:
            # The process records itself before it becomes anything, so a kill at any moment leaves nothing unrecorded.
            script = 'echo $$ $(cut -d" " -f22 /proc/$$/stat) > "$1" && exec unshare --net --mount --pid --fork --mount-proc --kill-child "$2" "$3"'
            subprocess.Popen(
                ["sh", "-c", script, "sh", str(self.record), sys.executable, str(KEEPER)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            wait_until("the lab's namespaces", lambda: self.keeper is not None and self._inner() is not None, 10, 0.02)
        if not succeeds(*self.inside("ip", "link", "show", "lan1")):
            lines = ["link set lo up"]
            for name, address in BRIDGES.items():
                lines += ["link add %s type bridge" % name, "addr add %s dev %s" % (address, name), "link set %s up" % name]
            run(*self.inside("ip", "-batch", "-"), stdin="\n".join(lines) + "\n")

    def inside(self, *argv: Word, network_only: bool = False) -> list[str]:
        """The command line that runs a program inside the lab."""
        inner = self._inner()
        if inner is None:
            raise LabError("lab %s is not up; start it with: make lab-up" % self.id)
        spaces = ["--net"] if network_only else ["--net", "--mount", "--pid"]
        return ["nsenter", "--target", str(inner), *spaces, "--", *[str(word) for word in argv]]

    def start(self, log: Path, *argv: Word, env: dict[str, str] | None = None) -> int:
        """Start a program that stays; answers its pid as the machine sees it."""
        with open(log, "ab") as out:
            process = subprocess.Popen(
                self.inside(*argv), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env={**os.environ, **(env or {})}
            )
        go_after(process.pid, os.nice(0))
        return process.pid

    def close(self) -> None:
        """End the keeper; the kernel ends and removes all the rest."""
        pid = self.keeper
        if pid is not None:
            inner = self._inner()
            all_inside = _processes_of(inner, "net") if inner else []
            os.kill(inner or pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            # Also those that wait outside for a program inside: who is stopped because that was frozen never takes note of its end.
            for one in all_inside:
                if one != os.getpid():
                    with suppress(ProcessLookupError):
                        os.kill(one, signal.SIGKILL)
            wait_until("the lab's processes to end", lambda: _gone(pid) and (inner is None or _gone(inner)), 300, 0.05)
        self.record.unlink(missing_ok=True)

    def memory(self) -> int:
        """Bytes that the lab's processes hold, what they share counted once; without pages of files, which the machine can take back."""
        inner = self._inner()
        held: dict[object, int] = {}
        for pid in _processes_of(inner, "pid") if inner else []:
            held.update(_held(pid))
        return sum(held.values())

    def note(self, name: str, value: object) -> None:
        (self.place / (name + ".json")).write_text(json.dumps(value, indent=1))

    def noted(self, name: str) -> dict:
        file = self.place / (name + ".json")
        return json.loads(file.read_text()) if file.exists() else {}

    def _inner(self) -> int | None:
        """The keeper's child, which is the first process of the PID namespace."""
        pid = self.keeper
        child = child_of(pid) if pid else None
        # Before its exec the child still is unshare, with unshare's arguments, and its namespaces are not complete.
        command = _command(child) if child else b""
        return child if b"keeper.py" in command and not command.startswith(b"unshare") else None


def _processes_of(inner: int, kind: str) -> list[int]:
    """All processes that are in the same namespace as this one."""

    def space_of(place: Path) -> str | None:
        try:
            return os.readlink(place / "ns" / kind)
        except OSError:
            return None

    own = space_of(Path("/proc/%d" % inner))
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if own and space_of(place) == own]


def _held(pid: int) -> dict[object, int]:
    """Bytes of a process's own address space and of the memory files that it has open, which are the guests' memory.

    Two processes have the range of their addresses in common only where they share all of it, or hold next to nothing.
    """
    found: dict[object, int] = {}
    try:
        span, *lines = Path("/proc/%d/smaps_rollup" % pid).read_text().splitlines()
        found[span] = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))
        for file in Path("/proc/%d/fd" % pid).iterdir():
            if os.readlink(file).startswith("/dev/shm/"):
                found[file.stat().st_ino] = file.stat().st_blocks * 512
    except (OSError, ValueError):  # it has ended meanwhile
        pass
    return found


def child_of(parent: int) -> int | None:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rpartition(")")[2].split()[1] == str(parent):
                return int(stat.parent.name)
        except OSError:
            continue
    return None


def _command(pid: int) -> bytes:
    try:
        return Path("/proc/%d/cmdline" % pid).read_bytes()
    except OSError:
        return b""


def _born_at(pid: int) -> str | None:
    """When a process was started, in the kernel's ticks: with the pid it names one process for ever."""
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def runs(pid: int, born: str) -> bool:
    """Whether it is this process still; one that ended can be listed for a while."""
    return _born_at(pid) == born and not _gone(pid)


def _gone(pid: int) -> bool:
    return _state(pid) in ("Z", None)


def is_stopped(pid: int) -> bool:
    return _state(pid) == "T"


def _state(pid: int) -> str | None:
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None
