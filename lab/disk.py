"""The disk that all nodes of a kind start from: GPT with a formatted swap partition and a root partition; nodes copy it on write."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .cache import built, digest_of
from .crictl import crictl
from .image import pause
from .kernel import Kernel
from .kubernetes import kubernetes
from .pod_images import images
from .shell import Word, run
from .tree import SUITES, tree

FILES = Path(__file__).parent / "node"
KUBERNETES_FILES = Path(__file__).parent / "node-kubernetes"
SIZE_GIB = 7
SWAP_MIB = 512
LAYOUT = "label: gpt\nsize=%dMiB, type=swap, name=swap\ntype=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=root\n" % SWAP_MIB


@dataclass(frozen=True)
class Kind:
    """What a node's disk has in it."""

    suite: str = SUITES[0]
    docker: bool = False
    kubernetes: str = ""  # its version
    calico: bool = False

    @property
    def name(self) -> str:
        names = {"docker": self.docker, "kubernetes-" + self.kubernetes: self.kubernetes, "calico": self.calico}
        return "-".join([self.suite, *(name for name, is_in in names.items() if is_in)])


def disk(kernel: Kernel, kind: Kind) -> Path:
    """The raw disk; nobody may write to it, its copies refer to its very time stamp."""
    root = tree(kind.suite, kind.docker)
    parts = _parts(kind)
    overlays = [FILES, *([KUBERNETES_FILES] if kind.kubernetes else [])]
    files = [file for overlay in overlays for file in sorted(overlay.rglob("*")) if file.is_file()]
    recipe = {"tree": root, "kernel": kernel.modules.name, "files": digest_of(*files), "parts": parts, "builder": digest_of(Path(__file__))}
    return built("disk-" + kind.name, recipe, lambda draft: _build(draft, root, kernel, kind, parts), "about 25 s") / "base.raw"


def _parts(kind: Kind) -> dict[str, Path]:
    if not kind.kubernetes:
        return {}
    kube = kubernetes(kind.kubernetes) / "kube"
    parts = {"kube": kube, "crictl": crictl(), "pause": pause()}
    return {**parts, "images": images(kind.kubernetes)} if kind.calico else parts


def _build(draft: Path, root: Path, kernel: Kernel, kind: Kind, parts: dict[str, Path]) -> None:
    stage = draft / "stage"
    stage.mkdir()
    run("tar", "-C", stage, "-xpf", root, "--exclude=./dev/*")
    shutil.copytree(kernel.modules, stage / "usr/lib/modules" / kernel.modules.name, symlinks=True)
    shutil.copytree(FILES / "etc", stage / "etc", dirs_exist_ok=True)
    if kind.suite != "bookworm":  # newer sshd locks out a client that knocks too early
        with open(stage / "etc/ssh/sshd_config.d/lab.conf", "a", encoding="utf-8") as conf:
            conf.write("PerSourcePenalties no\n")
    _blank(stage)
    if parts:
        _add_kubernetes(stage, parts)
    shutil.copy(FILES / "finish.sh", stage / "finish.sh")
    _in_private_mounts(FINISH, stage, kernel.modules.name)
    (stage / "finish.sh").unlink()
    if parts:
        _in_private_mounts(IMPORT, stage, *(parts[name] for name in ("pause", "images") if name in parts))
    _partition(draft / "base.raw", stage)
    shutil.rmtree(stage)


FINISH = 'mount -t proc proc "$1/proc" && chroot "$1" sh /finish.sh "$2"'
# The images are imported once, here, by the tree's own containerd.
IMPORT = """
set -e; stage=$1; shift
mount --bind "$stage" "$stage"; cd "$stage"
mount -t proc proc proc; mount -t sysfs sys sys; mount -t tmpfs run run; mount -t tmpfs tmp tmp; mount --rbind /dev dev
for image; do cp "$image" "tmp/$(echo "$image" | tr / _)"; done
chroot . containerd >/dev/null 2>&1 & containerd=$!
tries=0; until chroot . ctr version >/dev/null 2>&1; do tries=$((tries + 1)); [ $tries -lt 300 ]; sleep 0.1; done
for image in tmp/*; do chroot . ctr -n k8s.io images import "/$image"; done
kill $containerd; wait $containerd || true
"""


def _in_private_mounts(script: str, *words: Word) -> None:
    run("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *words)


def _add_kubernetes(stage: Path, parts: dict[str, Path]) -> None:
    shutil.copytree(KUBERNETES_FILES, stage, dirs_exist_ok=True)
    for name in ("kube", "crictl"):
        shutil.copy(parts[name], stage / "usr/local/bin" / name)
    for name in ("kubelet", "kubeadm", "kubectl", "kube-proxy"):
        (stage / "usr/local/bin" / name).symlink_to("kube")
    (stage / "etc/kubernetes/manifests").mkdir(parents=True)
    wants = stage / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "kubelet.service").symlink_to("/etc/systemd/system/kubelet.service")


def _blank(stage: Path) -> None:
    """What must be each node's own, or nobody's."""
    for key in (stage / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for path, text in {"etc/machine-id": "", "etc/fstab": "", "etc/hosts": "127.0.0.1 localhost\n"}.items():
        (stage / path).unlink(missing_ok=True)
        (stage / path).write_text(text)
    (stage / "etc/hostname").unlink(missing_ok=True)
    for directory in ("opt/cni/bin", "etc/cni/net.d", "etc/systemd/system-generators", "var/log/journal", "root/.ssh"):
        (stage / directory).mkdir(parents=True, exist_ok=True)
    (stage / "root/.ssh").chmod(0o700)
    for plugin in (stage / "usr/lib/cni").glob("*"):
        (stage / "opt/cni/bin" / plugin.name).symlink_to("/usr/lib/cni/" + plugin.name)


def _partition(raw: Path, stage: Path) -> None:
    with open(raw, "wb") as file:
        os.truncate(file.fileno(), SIZE_GIB << 30)
    run("sfdisk", "-q", raw, stdin=LAYOUT)
    swap, root = json.loads(run("sfdisk", "-J", raw))["partitiontable"]["partitions"]
    # mkswap and mke2fs want a file of the partition's size; mke2fs can write at an offset, mkswap cannot.
    small = raw.with_suffix(".swap")
    with open(small, "wb") as file:
        os.truncate(file.fileno(), swap["size"] * 512)
    run("mkswap", "-q", "-L", "swap", small)
    run("dd", "if=%s" % small, "of=%s" % raw, "bs=512", "seek=%d" % swap["start"], "conv=notrunc,sparse", "status=none")
    small.unlink()
    offset = "offset=%d,lazy_itable_init=0,lazy_journal_init=0,nodiscard" % (root["start"] * 512)
    run("mke2fs", "-q", "-F", "-t", "ext4", "-L", "root", "-m", "0", "-E", offset, "-d", stage, raw, "%dk" % (root["size"] * 512 // 1024))
    raw.chmod(0o444)
