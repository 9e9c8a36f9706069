"""The guests' kernel: User-Mode-Linux from its Debian package, unpacked, not installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .cache import built
from .shell import LabError, apt_knows, run

PACKAGE = "user-mode-linux"


@dataclass(frozen=True)
class Kernel:
    binary: Path
    modules: Path  # …/modules/<release>


def kernel() -> Kernel:
    version = apt_knows(PACKAGE)
    if version is None:
        run("apt-get", "-q", "update")
        version = apt_knows(PACKAGE)
    if version is None:
        raise LabError("this machine's apt knows no package %s; Debian has it" % PACKAGE)
    place = built("kernel", {"package": PACKAGE, "version": version}, lambda draft: _unpack(draft, version), "about 10 s")
    return Kernel(place / "usr/bin/linux.uml", next((place / "usr/lib/uml/modules").iterdir()))


def _unpack(draft: Path, version: str) -> None:
    # apt drops to an unprivileged user that may not write into a cache of root's.
    run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "%s=%s" % (PACKAGE, version), cwd=draft)
    for package in draft.glob("*.deb"):
        run("dpkg", "-x", package, draft)
        package.unlink()
