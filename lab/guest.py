"""A node: one User-Mode-Linux guest, its disk, its addresses, its keys."""

from __future__ import annotations

import os
import shutil
import signal
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

from .kernel import Kernel
from .shell import LabError, go_after, run, succeeds, wait_until
from .space import Space

MEMORY = "1536M"
NICS = ("vec0", "vec1")
NICE = -10  # before the other work of whoever starts it: a guest that waits for a processor looks overloaded to whoever looks inside
BOOT_LIMIT = 600  # a two-core machine that is busy with other labs has taken 250 s for one guest
SSH = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o", "BatchMode=yes"]


@dataclass(frozen=True)
class Guest:
    space: Space
    number: int

    @property
    def name(self) -> str:
        return "n%d" % self.number

    @property
    def address(self) -> str:
        return "10.0.0.%d" % (10 + self.number)

    @property
    def second_address(self) -> str:
        return "10.1.0.%d" % (10 + self.number)

    @property
    def place(self) -> Path:
        return self.space.place / self.name

    @property
    def key(self) -> Path:
        return self.space.place / "id"

    # -- life ----------------------------------------------------------------------------------------------------------

    def start(self, kernel: Kernel, base: Path, memory: str = MEMORY, more: dict[str, str] | None = None) -> None:
        """Power on. The disk of an earlier start is used again; a new one gets ``more`` files beside the node's own."""
        if self.running:
            return
        self.place.mkdir(parents=True, exist_ok=True)
        if not (self.place / "seed.tar").exists():
            self._seed(more or {})
        self._plug()
        log = self.place / "console.log"
        self.space.start(
            log, "nice", "-n", NICE, "taskset", "--cpu-list", self._processor(), "env", "LD_PRELOAD=%s" % kernel.preload, kernel.binary,
            "ubd0=%s,%s" % (self.place / "disk.cow", base), "ubd1r=%s" % (self.place / "seed.tar"), "root=/dev/ubda2", "rw",
            "mem=" + memory, "umid=" + self.name, "uml_dir=%s" % (self.space.place / "uml"),
            # Made last, the first NIC also comes last in the kernel's list, where Calico's default detection takes its address.
            "vec1:transport=raw,ifname=%s,mac=52:54:00:00:01:%02x" % (self._port(1), self.number),
            "vec0:transport=raw,ifname=%s,mac=52:54:00:00:00:%02x" % (self._port(0), self.number),
            "con=null", "con0=null,fd:1", "selinux=0", "systemd.hostname=" + self.name, "systemd.machine_id=" + self._machine_id(),
            "systemd.show_status=0", "quiet", "loglevel=3", "panic=1",
        )  # fmt: skip
        # A process that is just becoming another program has no command line for a moment, and would be taken for ended.
        wait_until("%s to be powered on" % self.name, lambda: self.running, 10, 0.02)

    def cut(self) -> None:
        """Pull the plug: the guest's processes are gone at once, its disk stays as it is."""
        for pid in self._processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        wait_until("%s to be off" % self.name, lambda: not self.running, 30, 0.05)

    def freeze(self, on: bool) -> None:
        """Stop the guest's time: it holds its connections and answers nothing."""
        if on:
            self._signal(signal.SIGSTOP)
        else:  # once more for nsenter, which stops itself when it sees its program stopped
            wait_until("%s to go on" % self.name, lambda: not self._signal(signal.SIGCONT), 30, 0.2)

    def _signal(self, number: int) -> bool:
        """To the guest's kernel; its own processes would take a stop for a signal of the guest's, and be lost. Answers whether any was stopped."""
        stopped = False
        for pid in self._processes():
            status = _status(pid)
            if status.get("TracerPid") == "0":
                os.kill(pid, number)
                stopped = stopped or status["State"].startswith("T")
        return stopped

    def forget(self) -> None:
        """A fresh disk at the next start."""
        self.cut()
        shutil.rmtree(self.place, ignore_errors=True)

    @property
    def kernel(self) -> int | None:
        """The first of its processes, as the machine sees it; the others end with it (programs/uml)."""
        statuses = {pid: _status(pid) for pid in self._processes()}
        own = {pid: status for pid, status in statuses.items() if status.get("Name") == "linux.uml" and status["TracerPid"] == "0"}
        return next((pid for pid, status in own.items() if int(status["PPid"]) not in own), None)

    @property
    def running(self) -> bool:
        return bool(self._processes())

    # -- use -----------------------------------------------------------------------------------------------------------

    def ssh(self, *command: str, address: str | None = None) -> list[str]:
        return self.space.inside("ssh", "-i", self.key, *SSH, "root@" + (address or self.address), *command, network_only=True)

    def do(self, *command: str) -> str:
        return run(*self.ssh(*command))

    def put(self, file: Path, path: str) -> None:
        """A copy of a file, with its mode, at this path on the node."""
        mode = "%o" % (file.stat().st_mode & 0o777)
        words = 'mkdir -p "$(dirname %s)" && cat > %s.new && chmod %s %s.new && mv %s.new %s' % (path, path, mode, path, path, path)
        with open(file, "rb") as content:
            run(*self.ssh(words), stdin=content)

    def answers(self) -> bool:
        return succeeds(*self.ssh("true"), timeout=15)

    def wait(self, limit: float = BOOT_LIMIT) -> float:
        def ready() -> bool:
            if not self.running:
                raise LabError("%s ended while it booted:\n%s" % (self.name, self.last_words()))
            self._go_first()
            return self.answers()

        return wait_until("%s to answer by ssh" % self.name, ready, limit)

    def last_words(self) -> str:
        return "\n".join((self.place / "console.log").read_text(errors="replace").splitlines()[-10:])

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _processes(self) -> list[int]:
        """The guest's threads of execution on the host: all carry its umid on their command line."""
        mark = b"\0umid=%s\0" % self.name.encode()
        here = b"uml_dir=%s\0" % str(self.space.place / "uml").encode()
        found = []
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = line.read_bytes()
            except OSError:
                continue
            if mark in words and here in words:
                found.append(int(line.parent.name))
        return found

    def _go_first(self) -> None:
        for pid in self._processes():
            go_after(pid, os.nice(0) + NICE)

    def port_on_bridge(self, number: int) -> str:
        return "%sb%d" % (self.name, number)

    def _processor(self) -> int:
        """The one that all of the guest's threads share. They hand over to each other at every system call and page fault;

        across processors each of these would wake a sleeping one, which makes a guest five to ten times slower.
        """
        ours = sorted(os.sched_getaffinity(0))
        return ours[(self.number + zlib.crc32(self.space.id.encode())) % len(ours)]

    def _port(self, number: int) -> str:
        return "%sv%d" % (self.name, number)

    def _plug(self) -> None:
        """A veth pair for each of the guest's NICs. A raw socket sees unfinished checksums unless the offloads are off."""
        for number, bridge in enumerate(("lan0", "lan1")):
            port, peer = self._port(number), self.port_on_bridge(number)
            if succeeds(*self.space.inside("ip", "link", "show", port)):
                continue
            lines = ["link add %s type veth peer name %s" % (port, peer), "link set %s master %s" % (peer, bridge)]
            lines += ["link set %s up" % one for one in (peer, port)]
            run(*self.space.inside("ip", "-batch", "-"), stdin="\n".join(lines) + "\n")
            for one in (port, peer):
                for offload in ("tx", "rx", "gso", "gro", "tso"):
                    succeeds(*self.space.inside("ethtool", "-K", one, offload, "off"))

    def _machine_id(self) -> str:
        file = self.place / "machine-id"
        if not file.exists():
            file.write_text(uuid.uuid4().hex)
        return file.read_text()

    def _seed(self, more: dict[str, str]) -> None:
        """What is this node's own, as a bare tar that its first boot unpacks."""
        if not self.key.exists():
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", self.key)
        seed = self.place / "seed"
        files = {
            "etc/hostname": self.name + "\n",
            "etc/hosts": "127.0.0.1 localhost\n" + "".join("10.0.0.%d n%d\n" % (10 + number, number) for number in range(1, 10)),
            "etc/systemd/network/10-vec0.network": "[Match]\nName=vec0\n[Network]\nAddress=%s/24\nGateway=10.0.0.1\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
            % self.address,
            "etc/systemd/network/11-vec1.network": "[Match]\nName=vec1\n[Network]\nAddress=%s/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
            % self.second_address,
            "root/.ssh/authorized_keys": self.key.with_suffix(".pub").read_text(),
            **more,
        }
        for path, text in files.items():
            (seed / path).parent.mkdir(parents=True, exist_ok=True)
            (seed / path).write_text(text)
            (seed / path).chmod(0o600 if path.endswith(".conf") else 0o644)
        (seed / "etc/ssh").mkdir()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", seed / "etc/ssh/ssh_host_ed25519_key")
        for directory in (seed / "root", seed / "root/.ssh"):
            directory.chmod(0o700)
        run("tar", "-C", seed, "--owner=0", "--group=0", "-cf", self.place / "seed.tar", "etc", "root")
        shutil.rmtree(seed)


def _status(pid: int) -> dict[str, str]:
    """What the kernel says of a process; nothing where it has just ended."""
    try:
        lines = Path("/proc/%d/status" % pid).read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _colon, value in (line.partition(":") for line in lines)}


def guests(space: Space) -> list[Guest]:
    """The nodes that a lab has, whether they run or not."""
    return [Guest(space, int(place.name[1:])) for place in sorted(space.place.glob("n[1-9]"))]


def guest_named(space: Space, name: str) -> Guest:
    for guest in guests(space):
        if guest.name == name:
            return guest
    raise LabError("lab %s has no node %s; it has %s" % (space.id, name, ", ".join(guest.name for guest in guests(space)) or "none"))
