"""Kubernetes as one program with many names, built from the module proxy."""

from __future__ import annotations

import shutil
from pathlib import Path

from .cache import built, digest_of
from .go import build

VERSION = "1.36.3"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm", "kubectl", "kube-proxy")
SOURCE = Path(__file__).parent / "programs" / "kubernetes"


def kubernetes() -> Path:
    """The directory with the program ``kube`` and its names."""
    files = sorted(file for file in SOURCE.iterdir() if file.is_file())
    return built("kubernetes-" + VERSION, {"version": VERSION, "files": digest_of(*files)}, _build, "about 10 min on two cores")


def _build(draft: Path) -> None:
    source = draft / "source"
    shutil.copytree(SOURCE, source)
    major, minor, _patch = VERSION.split(".")
    stamp = {"gitVersion": "v" + VERSION, "gitMajor": major, "gitMinor": minor}
    flags = ["-X k8s.io/component-base/version.%s=%s" % one for one in stamp.items()] + ["-X k8s.io/client-go/pkg/version.gitVersion=v" + VERSION]
    build(source, draft / "kube", ".", " ".join(flags))
    for name in NAMES:
        (draft / name).symlink_to("kube")
    shutil.rmtree(source)
