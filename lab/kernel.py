"""The guests' kernel: User-Mode-Linux from its Debian package, unpacked, not installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .cache import built, digest_of
from .shell import LabError, apt, apt_knows, run

PACKAGE = "user-mode-linux"
CALLS = sorted((Path(__file__).parent / "programs" / "uml").glob("*.c"))


@dataclass(frozen=True)
class Kernel:
    binary: Path
    modules: Path  # …/modules/<release>
    preload: Path  # its calls to this machine, as lab/programs/uml has them


def kernel() -> Kernel:
    version = apt_knows(PACKAGE)
    if version is None:
        apt("update")
        version = apt_knows(PACKAGE)
    if version is None:
        raise LabError("this machine's apt knows no package %s; Debian has it" % PACKAGE)
    recipe = {"package": PACKAGE, "version": version, "preload": digest_of(*CALLS)}
    place = built("kernel", recipe, lambda draft: _build(draft, version), "about 10 s")
    return Kernel(place / "usr/bin/linux.uml", next((place / "usr/lib/uml/modules").iterdir()), place / "calls.so")


def _build(draft: Path, version: str) -> None:
    # apt drops to an unprivileged user that may not write into a cache of root's.
    apt("-o", "APT::Sandbox::User=root", "download", "%s=%s" % (PACKAGE, version), cwd=draft)
    for package in draft.glob("*.deb"):
        run("dpkg", "-x", package, draft)
        package.unlink()
    run("cc", "-O2", "-shared", "-fPIC", "-o", draft / "calls.so", *CALLS)
