"""Running programs and telling about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

START = time.monotonic()
Word = str | Path | int


class LabError(Exception):
    """Something that the user has to know, with what to do about it."""


def say(message: str) -> None:
    print("[%6.1f s] %s" % (time.monotonic() - START, message), file=sys.stderr, flush=True)


def run(*argv: Word, stdin: str | BinaryIO | None = None, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The output of a program that must succeed."""
    words = [str(word) for word in argv]
    done = subprocess.run(
        words,
        **({"input": stdin} if isinstance(stdin, str) else {"stdin": stdin or subprocess.DEVNULL}),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise LabError("%s ended with %d:\n%s" % (" ".join(words), done.returncode, "\n".join(done.stdout.splitlines()[-15:])))
    return done.stdout


def succeeds(*argv: Word, timeout: float | None = None) -> bool:
    try:
        return (
            subprocess.run(
                [str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout, check=False
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def go_after(pid: int, niceness: int) -> None:
    """Where the kernel shares processors out among sessions, it is the niceness of a process's session that counts."""
    with suppress(OSError):  # it has ended, or there is no such thing in this kernel
        Path("/proc/%d/autogroup" % pid).write_text("%d" % niceness)


def wait_until(what: str, holds, limit: float, every: float = 0.3) -> float:
    """Wait for a condition; answers the seconds that it took."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > limit:
            raise LabError("gave up after %.0f s waiting for %s" % (limit, what))
        time.sleep(every)
    return time.monotonic() - start


GUESTS_MEMORY = "/dev/shm"
LEAST_MEMORY = 3 << 30  # of two nodes
PACKAGES = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "sfdisk": "fdisk",
    "mkswap": "util-linux",
    "ip": "iproute2",
    "ethtool": "ethtool",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "nft": "nftables",
    "taskset": "util-linux",
    "cc": "build-essential",  # and the C library for static programs
}


def able() -> None:
    """Refuse where nothing that could be installed would help."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root: it makes network namespaces and mounts, and its guests' disks hold files of root's. Try: sudo make …")
    if not Path("/usr/bin/apt-get").exists():
        raise LabError("the lab builds its nodes from Debian packages and needs apt-get on this machine")
    if not succeeds("unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "lab", "/mnt"):
        raise LabError("this machine lets not even root make network namespaces and mounts; a container needs --privileged for that")
    room = os.statvfs(GUESTS_MEMORY)
    if room.f_blocks * room.f_frsize < LEAST_MEMORY:
        words = "the guests keep their memory in %s, which has room for %d MiB and needs %d: mount -o remount,size=8G %s"
        raise LabError(words % (GUESTS_MEMORY, room.f_blocks * room.f_frsize >> 20, LEAST_MEMORY >> 20, GUESTS_MEMORY))


def need(programs: Sequence[str] = tuple(PACKAGES)) -> None:
    """Refuse early, with everything that is missing, not one thing at a time."""
    able()
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = sorted({PACKAGES[name] for name in programs if not shutil.which(name, path=path)})
    if missing:
        say("installing %s" % " ".join(missing))
        if not apt_knows(missing[0]):
            apt("update")
        install = ("-y", "--no-install-recommends", "install", *missing)
        try:
            apt(*install)
        except LabError:  # what apt knows may be too old to be had any more
            apt("update")
            apt(*install)


def apt(*words: str, cwd: Path | None = None) -> None:
    """Patient, since another program may be at it, and a mirror may be busy."""
    patience = ("-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3")
    run("apt-get", "-q", *patience, *words, cwd=cwd, env={"DEBIAN_FRONTEND": "noninteractive"})


def apt_knows(package: str) -> str | None:
    """The version of a package that apt would install."""
    for line in run("apt-cache", "policy", package).splitlines():
        if line.strip().startswith("Candidate:") and "(none)" not in line:
            return line.split(":", 1)[1].strip()
    return None
