"""The disk that all nodes of a kind start from: GPT with a formatted swap partition and a root partition; nodes copy it on write."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from .cache import built, digest_of
from .kernel import Kernel
from .shell import run
from .tree import tree

FILES = Path(__file__).parent / "node"
SIZE_GIB = 7
SWAP_MIB = 512
LAYOUT = "label: gpt\nsize=%dMiB, type=swap, name=swap\ntype=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=root\n" % SWAP_MIB


def disk(kernel: Kernel, suite: str, docker: bool) -> Path:
    """The raw disk; nobody may write to it, its copies refer to its very time stamp."""
    root = tree(suite, docker)
    files = sorted(file for file in FILES.rglob("*") if file.is_file())
    recipe = {"tree": str(root), "kernel": kernel.modules.name, "files": digest_of(*files), "builder": digest_of(Path(__file__))}
    return built("disk-%s" % suite, recipe, lambda draft: _build(draft, root, kernel, suite), "about 25 s") / "base.raw"


def _build(draft: Path, root: Path, kernel: Kernel, suite: str) -> None:
    stage = draft / "stage"
    stage.mkdir()
    run("tar", "-C", stage, "-xpf", root, "--exclude=./dev/*")
    shutil.copytree(kernel.modules, stage / "usr/lib/modules" / kernel.modules.name, symlinks=True)
    shutil.copytree(FILES / "etc", stage / "etc", dirs_exist_ok=True)
    if suite != "bookworm":  # newer sshd locks out a client that knocks too early
        with open(stage / "etc/ssh/sshd_config.d/lab.conf", "a", encoding="utf-8") as conf:
            conf.write("PerSourcePenalties no\n")
    _blank(stage)
    shutil.copy(FILES / "finish.sh", stage / "finish.sh")
    script = 'mount -t proc proc "$1/proc" && chroot "$1" sh /finish.sh "$2"'
    run("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", stage, kernel.modules.name)
    (stage / "finish.sh").unlink()
    _partition(draft / "base.raw", stage)
    shutil.rmtree(stage)


def _blank(stage: Path) -> None:
    """What must be each node's own, or nobody's."""
    for key in (stage / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for path, text in {"etc/machine-id": "", "etc/fstab": "", "etc/hosts": "127.0.0.1 localhost\n", "etc/resolv.conf": "options timeout:1\n"}.items():
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
