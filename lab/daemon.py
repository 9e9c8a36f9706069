"""A program of a lab that stays: started in the lab's namespaces, and recorded, so that a later command finds it again."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .shell import LabError, Word, go_after, wait_until
from .space import Space, child_of, is_stopped, runs


@dataclass(frozen=True)
class Daemon:
    space: Space
    name: str
    place: Path

    @property
    def log(self) -> Path:
        return self.place / (self.name + ".log")

    def start(self, *argv: Word, env: dict[str, str] | None = None) -> None:
        if self.running:
            return
        self.place.mkdir(parents=True, exist_ok=True)
        self._record.unlink(missing_ok=True)
        # It records itself before it becomes anything, as the lab's first process does, and does not outlive what was recorded.
        script = 'echo $$ $(cut -d" " -f22 /proc/$$/stat) > "$1"; shift; exec "$@"'
        with open(self.log, "ab") as log:
            begun = subprocess.Popen(
                ["sh", "-c", script, "sh", str(self._record), *self.space.inside("setpriv", "--pdeathsig", "KILL", *argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(env or {})},
            )  # fmt: skip
        go_after(begun.pid, os.nice(0))
        wait_until("%s to start" % self.name, lambda: self._record.exists() and self._record.read_text().endswith("\n"), 30, 0.02)

    def wait(self, ready, limit: float) -> float:
        """Until it is ready; a daemon that ended will never be."""

        def holds() -> bool:
            if not self.running:
                raise LabError("%s ended:\n%s" % (self.name, self.last_words()))
            return ready()

        return wait_until("%s to be ready" % self.name, holds, limit)

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:]) if self.log.exists() else ""

    @property
    def running(self) -> bool:
        return bool(self._processes())

    @property
    def outer(self) -> int | None:
        """The program itself, as the machine sees it."""
        return next(iter(self._processes()), None)

    @property
    def inner(self) -> int | None:
        """The first process of the program's own PID namespace, where it has one."""
        processes = self._processes()
        return child_of(processes[0]) if processes else None

    @property
    def state(self) -> str:
        processes = self._processes()
        return "off" if not processes else "frozen" if is_stopped(processes[0]) else "runs"

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        wait_until("%s to end" % self.name, lambda: not self.running, 30, 0.05)

    def freeze(self, on: bool) -> None:
        self._signal(signal.SIGSTOP if on else signal.SIGCONT)

    @property
    def _record(self) -> Path:
        return self.place / (self.name + ".pid")

    def _processes(self) -> list[int]:
        """The program and what brought it into the namespaces, which waits for it; none where it has ended."""
        try:
            pid, when = self._record.read_text().split()
        except (FileNotFoundError, ValueError):
            return []
        if not runs(int(pid), when):
            return []
        program = child_of(int(pid))
        return [program, int(pid)] if program else [int(pid)]

    def _signal(self, number: int) -> None:
        for pid in self._processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
