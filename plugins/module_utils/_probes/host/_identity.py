# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What system this is, what it is called, and what should exist only once."""

from __future__ import annotations

import os
import re

from ..kubelet._settings import kubeconfigs

WORD = 256


def os_release(node):
    rows = dict(line.split("=", 1) for line in node.lines("/etc/os-release") or node.lines("/usr/lib/os-release") if "=" in line)
    return {name: rows[key].strip().strip("\"'")[:WORD] for name, key in (("id", "ID"), ("version", "VERSION_ID"), ("name", "PRETTY_NAME")) if key in rows}


def kernel(node):
    return {"release": _word(node, "/proc/sys/kernel/osrelease"), "architecture": _word(node, "/proc/sys/kernel/arch") or os.uname().machine}


def boot(node):
    return {"id": _word(node, "/proc/sys/kernel/random/boot_id"), "uptime_s": uptime(node)}


def uptime(node):
    words = (node.read("/proc/uptime", 100) or "").split()
    return float(words[0]) if words and re.match(r"[0-9]{1,12}(\.[0-9]+)?$", words[0]) else None


def virtualisation(node):
    """Of which make the machine is, and whether this is a container on it."""
    container = _word(node, "/run/systemd/container")
    if not container:
        signs = {"/.dockerenv": "docker", "/run/.containerenv": "podman", "/dev/.lxc-boot-id": "lxc"}
        container = next((name for path, name in signs.items() if node.exists(path)), None)
    flags = re.search(rb"(?m)^flags\s*:.*\bhypervisor\b", node.glance("/proc/cpuinfo", 8192) or b"")
    return {
        "container": container,
        "guest": bool(flags) or node.exists("/proc/device-tree/hypervisor") or node.exists("/sys/hypervisor/type"),
        "vendor": _word(node, "/sys/class/dmi/id/sys_vendor"),
        "product": _word(node, "/sys/class/dmi/id/product_name"),
    }


def role(node):
    """What the node is to Kubernetes so far."""
    manifests = [name[:-5] for name in node.list("/etc/kubernetes/manifests") if name.endswith(".yaml")]
    return {"joined": bool(kubeconfigs(node)), "manifests": manifests[:20]}


def security(node):
    """SELinux and AppArmor, now and at the next boot."""
    enforcing = node.number("/sys/fs/selinux/enforce")
    wanted = re.search(r"(?m)^\s*SELINUX\s*=\s*(\w{1,20})", node.read("/etc/selinux/config") or "")
    apparmor = _word(node, "/sys/module/apparmor/parameters/enabled")
    return {
        "selinux": None if enforcing is None else "enforcing" if enforcing else "permissive",
        "selinux_boot": wanted.group(1) if wanted else None,
        "apparmor": apparmor == "Y" if apparmor else None,
    }


def name(node):
    """The node's name now and at the next boot, and what /etc/hosts says about it. Nothing is asked of DNS, which may hang."""
    now = _word(node, "/proc/sys/kernel/hostname")
    static = next((line.strip() for line in node.lines("/etc/hostname") if line.strip() and not line.startswith("#")), None)
    hosts = {}
    for line in node.lines("/etc/hosts"):
        address, *names = line.split("#", 1)[0].split() or [""]
        for one in {other.lower() for other in names} & {"localhost", (now or "").lower()}:
            held = hosts.setdefault("localhost" if one == "localhost" else "own", [])
            if address[:64] not in held and len(held) < 8:
                held.append(address[:64])
    return {"hostname": now, "static": static[:WORD] if static else None, **hosts}


def identity(node):
    """What cloned machines share by mistake. Only root may read the product's UUID."""
    path = "/sys/class/dmi/id/product_uuid"
    return {
        "hostname": _word(node, "/proc/sys/kernel/hostname"),
        "machine_id": _word(node, "/etc/machine-id"),
        "boot_id": _word(node, "/proc/sys/kernel/random/boot_id"),
        "product_uuid": (_word(node, path) or "").lower() or None,
        "product_uuid_there": node.exists(path),
    }


def resolv(node):
    """The resolver's file that the kubelet hands to pods: the one that its configuration names, or the node's own."""
    text = node.read("/var/lib/kubelet/config.yaml")
    named = re.search(r"(?m)^resolvConf:[ \t]*[\"']?(/[^\s\"']*)", text or "")
    flag = re.search(r"--resolv-conf[= ]\"?(/[^\s\"']*)", node.read("/var/lib/kubelet/kubeadm-flags.env") or "")
    path = flag.group(1) if flag else named.group(1) if named else "/etc/resolv.conf"
    rows = [line.split() for line in node.lines(path)]
    search = [row[1:] for row in rows if row and row[0] == "search"]
    return {
        "path": path,
        "configured": text is not None,
        "there": node.exists(path),
        "nameservers": [row[1][:64] for row in rows if len(row) > 1 and row[0] == "nameserver"][:10],
        "search": len(search[-1]) if search else 0,
        "resolved": node.exists("/run/systemd/resolve/resolv.conf"),
    }


def _word(node, path):
    """The first line of a short file."""
    text = (node.read(path, 4096) or "").strip("\0\n ")
    return text.split("\n", 1)[0][:WORD] or None
