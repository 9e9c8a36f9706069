"""Kubernetes as one program with many names, built from the module proxy."""

from __future__ import annotations

import shutil
from pathlib import Path

from .cache import built, digest_of
from .go import build

VERSIONS = ("1.36.3", "1.34.4")  # the first is the lab's own, the other one is for what changed between the two
VERSION = VERSIONS[0]
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm", "kubectl", "kube-proxy")
MINORS = {version.rpartition(".")[0]: version for version in VERSIONS}
SOURCE = Path(__file__).parent / "programs" / "kubernetes"


def kubernetes(version: str = VERSION) -> Path:
    """The directory with the program ``kube`` and its names."""
    files = [SOURCE / version / "go.mod", SOURCE / version / "go.sum", SOURCE / "main.go"]
    recipe = {"version": version, "files": digest_of(*files)}
    return built("kubernetes-" + version, recipe, lambda draft: _build(draft, version, files), "about 10 min on two cores")


def _build(draft: Path, version: str, files: list[Path]) -> None:
    source = draft / "source"
    source.mkdir()
    for file in files:
        shutil.copy(file, source)
    major, minor_number, _patch = version.split(".")
    stamp = {"gitVersion": "v" + version, "gitMajor": major, "gitMinor": minor_number}
    flags = ["-X k8s.io/component-base/version.%s=%s" % one for one in stamp.items()] + ["-X k8s.io/client-go/pkg/version.gitVersion=v" + version]
    build(source, draft / "kube", ".", " ".join(flags))
    for name in NAMES:
        (draft / name).symlink_to("kube")
    shutil.rmtree(source)
