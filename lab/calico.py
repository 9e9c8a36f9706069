"""Calico's programs, built from the module proxy, with the files and manifests that upstream ships beside them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import built, digest_of
from .go import build, module_directory
from .shell import LabError

VERSION = "3.31.0"
MODULE = "github.com/projectcalico/calico"
SOURCE = Path(__file__).parent / "programs" / "calico"
# The checksum database has no record of versions that are named by their commit; go.sum has.
UNSUMMED = {"GONOSUMDB": "github.com/projectcalico/*"}
STAMP = "-X %s/pkg/buildinfo.Version=v%s" % (MODULE, VERSION)
# Programs of upstream's that are packages "main", which no other program can import.
MAINS = {
    "node": "node/cmd/calico-node/main.go",
    "kubecontrollers": "kube-controllers/cmd/kube-controllers/main.go",
    "calicoctl": "calicoctl/calicoctl/calicoctl.go",
}
NAMES = ("calico-node", "kube-controllers", "calicoctl", "calico-typha")
MANIFESTS = ("calico.yaml", "operator-crds.yaml", "custom-resources.yaml")


@dataclass(frozen=True)
class Calico:
    place: Path

    @property
    def manifest(self) -> Path:
        return self.place / "manifests" / "calico.yaml"

    def image_name(self, part: str) -> str:
        """The image that upstream's manifest asks for: cni, node or kube-controllers."""
        found = re.search(r"image: (\S+/%s:v%s)\s" % (part, re.escape(VERSION)), self.manifest.read_text())
        if not found:
            raise LabError("Calico's manifest names no image for %s" % part)
        return found.group(1)


def calico() -> Calico:
    files = sorted(file for file in SOURCE.rglob("*") if file.is_file())
    recipe = {"version": VERSION, "files": digest_of(*files), "builder": digest_of(Path(__file__))}
    return Calico(built("calico-" + VERSION, recipe, _build, "about 6 min on two cores"))


def _build(draft: Path) -> None:
    source = draft / "source"
    shutil.copytree(SOURCE, source)
    upstream = module_directory(source, MODULE, UNSUMMED)
    for name, main in MAINS.items():
        _importable(upstream / main, name, source / "generated" / name / "main.go")
    build(source, draft / "calico", "./cmd/calico", STAMP, UNSUMMED)
    build(source, draft / "calico-cni", "./cmd/cni", STAMP, UNSUMMED)
    # A probe that has one second: by itself it starts in a tenth of what the rest takes.
    build(source, draft / "check-status", MODULE + "/kube-controllers/cmd/check-status", STAMP, UNSUMMED)
    shutil.rmtree(source)
    for name in NAMES:
        (draft / name).symlink_to("calico")
    (draft / "manifests").mkdir()
    for name in MANIFESTS:
        shutil.copyfile(upstream / "manifests" / name, draft / "manifests" / name)
    _copy(upstream / "node/filesystem/etc", draft / "filesystem/etc")
    _copy(upstream / "node/filesystem/sbin", draft / "filesystem/usr/sbin")
    _copy(upstream / "confd/etc", draft / "filesystem/etc")


def _importable(main: Path, name: str, target: Path) -> None:
    text = main.read_text()
    target.parent.mkdir(parents=True)
    target.write_text(re.sub(r"^func main\(\)", "func Main()", re.sub(r"^package main$", "package " + name, text, flags=re.M), flags=re.M))


def _copy(source: Path, target: Path) -> None:
    """Go's module cache is read-only and knows no executable files: scripts are told by their first line."""
    for file in sorted(source.rglob("*")):
        if file.is_file():
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            copy.chmod(0o755 if copy.read_bytes().startswith(b"#!") or copy.name == "rc.local" else 0o644)
