"""A node's root file system as a tar: Debian packages, before anything of ours is in it."""

from __future__ import annotations

from pathlib import Path

from .cache import built
from .shell import run

SUITES = ("trixie", "bookworm")
PACKAGES = [
    *("systemd", "systemd-sysv", "systemd-timesyncd", "udev", "dbus", "kmod", "procps", "psmisc", "util-linux", "mount", "e2fsprogs", "fdisk"),
    *("openssh-server", "python3", "sudo", "ca-certificates", "curl", "jq"),
    *("iproute2", "iputils-ping", "iptables", "ipset", "conntrack", "ethtool", "socat"),
    *("containerd", "runc", "containernetworking-plugins"),
]
DOCKER = {"trixie": ["docker.io", "docker-cli"], "bookworm": ["docker.io"]}


def tree(suite: str, docker: bool) -> Path:
    packages = PACKAGES + (DOCKER[suite] if docker else [])
    recipe = {"suite": suite, "packages": packages}
    return built("tree-%s" % suite, recipe, lambda draft: bootstrap(draft / "root.tar", suite, packages), "about 80 s") / "root.tar"


def bootstrap(target: Path, suite: str, packages: list[str], *options: str) -> None:
    run("mmdebstrap", "--quiet", "--variant=minbase", '--aptopt=APT::Install-Recommends "false"', "--include=" + ",".join(packages), *options, suite, target)
