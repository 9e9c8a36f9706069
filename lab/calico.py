"""Calico: its programs built from the module proxy, and its images under the very names that upstream's manifest asks for."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import built, digest_of
from .go import build, module_directory
from .image import archive
from .kubernetes import VERSION as KUBERNETES
from .shell import LabError, run
from .tree import bootstrap

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
    "checkstatus": "kube-controllers/cmd/check-status/main.go",
    "calicoctl": "calicoctl/calicoctl/calicoctl.go",
}
NAMES = ("calico-node", "kube-controllers", "check-status", "calicoctl", "calico-typha")
PLUGINS = ("calico", "calico-ipam", "install")
MANIFESTS = ("calico.yaml", "operator-crds.yaml", "custom-resources.yaml")

# What Calico's own base images have; socat answers and asks in the pods of tests.
BASE_PACKAGES = ["bird", "runit", "iptables", "ipset", "conntrack", "iproute2", "iputils-ping", "procps", "socat", "ca-certificates"]
TOOLS = "localhost/tools:1"
KUBE_PROXY = "localhost/kube-proxy:v" + KUBERNETES
CONTROLLERS_USER = 999  # upstream's image runs its controllers as this user, and its manifest insists on one that is not root


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


def calicoctl() -> Path:
    return calico().place / "calicoctl"


def images(kube: Path) -> Path:
    """An archive of all that the nodes' pods run: Calico's three images, kube-proxy's, and one with tools for tests."""
    parts = calico()
    recipe = {"calico": parts.place.name, "kube": kube.parent.name, "base": BASE_PACKAGES, "builder": digest_of(Path(__file__))}
    return built("images", recipe, lambda draft: _build_images(draft, parts, kube), "about 60 s") / "images.tar"


def _build(draft: Path) -> None:
    source = draft / "source"
    shutil.copytree(SOURCE, source)
    upstream = module_directory(source, MODULE, UNSUMMED)
    for name, main in MAINS.items():
        _importable(upstream / main, name, source / "generated" / name / "main.go")
    build(source, draft / "calico", "./cmd/calico", STAMP, UNSUMMED)
    build(source, draft / "calico-cni", "./cmd/cni", STAMP, UNSUMMED)
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


def _build_images(draft: Path, parts: Calico, kube: Path) -> None:
    base = draft / "base.tar"
    bootstrap(
        base, "bookworm", BASE_PACKAGES, "--skip=output/dev", '--customize-hook=cd "$1" && rm -rf var/cache/* usr/share/doc usr/share/man usr/share/locale'
    )
    layer = draft / "layer.tar"
    _fill(draft / "stage", parts, kube)
    run("tar", "-C", draft / "stage", "--numeric-owner", "-cf", layer, ".")
    shutil.rmtree(draft / "stage")
    settings = {
        parts.image_name("node"): {"Cmd": ["start_runit"], "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SVDIR=/etc/service/enabled"]},
        parts.image_name("cni"): {"Cmd": ["/opt/cni/bin/install"], "WorkingDir": "/opt/cni/bin"},
        parts.image_name("kube-controllers"): {"Entrypoint": ["/usr/bin/kube-controllers"], "User": str(CONTROLLERS_USER)},
        KUBE_PROXY: {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        TOOLS: {"Cmd": ["sleep", "infinity"]},
    }
    archive(draft / "images.tar", settings, [base, layer])
    base.unlink()
    layer.unlink()


def _fill(stage: Path, parts: Calico, kube: Path) -> None:
    shutil.copytree(parts.place / "filesystem", stage)
    for directory in ("usr/bin", "usr/local/bin", "opt/cni/bin", "status", "profiles"):
        (stage / directory).mkdir(parents=True)
    shutil.copy(parts.place / "calico", stage / "usr/bin/calico-programs")
    for name in NAMES:
        (stage / "usr/bin" / name).symlink_to("calico-programs")
    shutil.copy(parts.place / "calico-cni", stage / "opt/cni/bin/calico")
    for name in PLUGINS[1:]:
        (stage / "opt/cni/bin" / name).symlink_to("calico")
    shutil.copy(kube, stage / "usr/local/bin/kube-proxy")
    (stage / "usr/sbin/birdcl").symlink_to("birdc")  # Debian has only the client with a prompt; it takes commands as well
    for template in (stage / "etc/calico/confd/templates").glob("bird*_ipam.cfg.template"):
        # Calico's own BIRD has this attribute, for IPIP; Debian's has not.
        template.write_text(re.sub(r'krt_tunnel = "[^;]*";', "preference = preference;", template.read_text()))
    for file in ("status/status.json", "profiles/mem.pprof", "profiles/cpu.pprof"):
        (stage / file).touch()
        shutil.chown(stage / file, CONTROLLERS_USER, CONTROLLERS_USER)
