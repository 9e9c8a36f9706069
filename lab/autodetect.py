"""Calico's own address detection, of several versions, as programs that answer what that version would choose in a network namespace."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from . import calico
from .cache import built, digest_of
from .go import build
from .shell import LabError

PROGRAMS = Path(__file__).parent / "programs"
QUESTIONS = PROGRAMS / "autodetect"
# Where each version's module is pinned, and which form of Calico's functions it has.
MODULES = {"3.31.0": ("calico", "newer.go"), "3.23.0": ("calico-3.23", "older.go"), "3.22.0": ("calico-3.22", "older.go")}
VERSIONS = tuple(MODULES)
OLD = "3.22.0"


def autodetect(version: str) -> Path:
    """The program that asks one version's code; its questions are described in programs/autodetect/main.go."""
    module, form = MODULES[version]
    questions = [QUESTIONS / name for name in ("main.go", "linkname.s", form)]
    recipe = {"version": version, "files": digest_of(*_module(module), *questions)}
    return built("autodetect-" + version, recipe, lambda draft: _build_autodetect(draft, module, questions), "about 90 s") / "autodetect"


def calico_node_322() -> Path:
    """calico-node as it was when it still took docker's bridges for a node's network: start-up and the address monitor."""
    recipe = {"version": OLD, "files": digest_of(*_module(MODULES[OLD][0]))}
    return built("calico-node-" + OLD, recipe, _build_node, "about 2 min") / "calico-node"


def exact(version: str) -> str:
    """3.31 and v3.31.0 are both 3.31.0."""
    for known in VERSIONS:
        if known == version.removeprefix("v") or known.rpartition(".")[0] == version.removeprefix("v"):
            return known
    raise LabError("there is no address detection of Calico %s here; there is %s" % (version, ", ".join(VERSIONS)))


def commands(command) -> None:
    made = command("autodetect", _run, "what a version of Calico would take here for the node's address")
    made.add_argument("--version", default=VERSIONS[0], help="one of " + ", ".join(VERSIONS))
    made.add_argument("--exclusions", action="store_true", help="list the names that it passes over instead")
    made.add_argument("method", nargs="?", default="first-found")
    made.add_argument("family", nargs="?", choices=("4", "6"), default="4")
    made.add_argument("internal", nargs="*", metavar="INTERNAL-IP")


def _run(arguments: argparse.Namespace, _space: object) -> None:
    program = str(autodetect(exact(arguments.version)))
    asked = ["--exclusions"] if arguments.exclusions else [arguments.method, arguments.family, *arguments.internal]
    os.execv(program, [program, *asked])


def _module(name: str) -> list[Path]:
    """A module without its own programs: what is pinned, and what stands in for parts that are not published."""
    own = [PROGRAMS / name / file for file in ("go.mod", "go.sum")]
    return own + sorted(file for file in (PROGRAMS / name).glob("stub/**/*") if file.is_file())


def _copied(module: str, source: Path) -> Path:
    for file in _module(module):
        copy = source / file.relative_to(PROGRAMS / module)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return source


def _build_autodetect(draft: Path, module: str, questions: list[Path]) -> None:
    source = _copied(module, draft / "source")
    (source / "autodetect").mkdir()
    for file in questions:
        shutil.copy(file, source / "autodetect")
    build(source, draft / "autodetect", "./autodetect", env=calico.UNSUMMED)
    shutil.rmtree(source)


def _build_node(draft: Path) -> None:
    source = _copied(MODULES[OLD][0], draft / "source")
    stamp = "-X %s/node/pkg/lifecycle/startup.VERSION=v%s" % (calico.MODULE, OLD)
    build(source, draft / "calico-node", calico.MODULE + "/node/cmd/calico-node", stamp, calico.UNSUMMED)
    shutil.rmtree(source)
