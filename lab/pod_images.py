"""The images of the nodes' pods: Calico's under the very names that upstream's manifest asks for, and kube-proxy's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .cache import built, digest_of
from .calico import NAMES, Calico, calico
from .image import archive
from .kubernetes import kubernetes
from .shell import run
from .tree import bootstrap

PLUGINS = ("calico", "calico-ipam", "install")
# What Calico's own base images have; socat answers and asks in the pods of tests.
BASE_PACKAGES = ["bird", "runit", "iptables", "ipset", "conntrack", "iproute2", "iputils-ping", "procps", "socat", "ca-certificates"]
# The guests' kernel has no nf_tables for IPv4.
FINISH = """
cd "$1"; rm -rf var/cache/* usr/share/doc usr/share/man usr/share/locale
for program in iptables ip6tables; do chroot . update-alternatives --set $program /usr/sbin/$program-legacy; done
"""
TOOLS = "localhost/tools:1"
CONTROLLERS_USER = 999  # upstream's image runs its controllers as this user, and its manifest insists on one that is not root


def images(version: str) -> Path:
    """An archive of all that the nodes' pods run: Calico's three images, kube-proxy's, and one with tools for tests."""
    parts, kube = calico(), kubernetes(version) / "kube"
    recipe = {"calico": parts.place.name, "kube": kube.parent.name, "base": BASE_PACKAGES, "builder": digest_of(Path(__file__))}
    return built("images", recipe, lambda draft: _build(draft, parts, kube, version), "about 60 s") / "images.tar"


def root(version: str) -> Path:
    """The same as a tree of files."""
    return images(version).parent / "root"


def _build(draft: Path, parts: Calico, kube: Path, version: str) -> None:
    base = draft / "base.tar"
    bootstrap(base, "bookworm", BASE_PACKAGES, "--skip=output/dev", "--customize-hook=" + FINISH)
    layer = draft / "layer.tar"
    _fill(draft / "stage", parts, kube)
    run("tar", "-C", draft / "stage", "--numeric-owner", "-cf", layer, ".")
    (draft / "root").mkdir()
    run("tar", "-C", draft / "root", "-xpf", base)
    (draft / "root/etc/service").unlink()  # Debian's runit has a link where Calico has a directory
    run("cp", "-a", "--no-target-directory", draft / "stage", draft / "root")
    shutil.rmtree(draft / "stage")
    settings = {
        parts.image_name("node"): {"Cmd": ["start_runit"], "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SVDIR=/etc/service/enabled"]},
        parts.image_name("cni"): {"Cmd": ["/opt/cni/bin/install"], "WorkingDir": "/opt/cni/bin"},
        parts.image_name("kube-controllers"): {"Entrypoint": ["/usr/bin/kube-controllers"], "User": str(CONTROLLERS_USER)},
        "localhost/kube-proxy:v" + version: {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
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
    shutil.copy(parts.place / "check-status", stage / "usr/bin")
    shutil.copy(parts.place / "calico-cni", stage / "opt/cni/bin/calico")
    for name in PLUGINS[1:]:
        (stage / "opt/cni/bin" / name).symlink_to("calico")
    shutil.copy(kube, stage / "usr/local/bin/kube-proxy")
    (stage / "usr/bin/birdcl").symlink_to("/usr/sbin/birdc")  # Debian has only the client with a prompt; it takes commands as well
    for template in (stage / "etc/calico/confd/templates").glob("bird*_ipam.cfg.template"):
        # Calico's own BIRD has this attribute, for IPIP; Debian's has not.
        template.write_text(re.sub(r'krt_tunnel = "[^;]*";', "preference = preference;", template.read_text()))
    for file in ("status/status.json", "profiles/mem.pprof", "profiles/cpu.pprof"):
        (stage / file).touch()
        shutil.chown(stage / file, CONTROLLERS_USER, CONTROLLERS_USER)
