# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which container runtimes there are, where they listen, and what systemd says about them."""

from __future__ import annotations

import re

from ..._node import whole

# name, its units, its socket, its configuration, what it speaks
DAEMONS = (
    ("containerd", ("containerd.service",), "/run/containerd/containerd.sock", "/etc/containerd/config.toml", "containerd"),
    ("docker", ("docker.service", "snap.docker.dockerd.service"), "/run/docker.sock", "/etc/docker/daemon.json", "docker"),
    ("cri-dockerd", ("cri-docker.service", "cri-dockerd.service"), "/run/cri-dockerd.sock", None, "cri"),
    ("crio", ("crio.service", "cri-o.service"), "/run/crio/crio.sock", "/etc/crio/crio.conf", "cri"),
    ("k3s", ("k3s.service", "k3s-agent.service"), "/run/k3s/containerd/containerd.sock", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "containerd"),
    (
        "rke2",
        ("rke2-server.service", "rke2-agent.service"),
        "/run/k3s/containerd/containerd.sock",
        "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
        "containerd",
    ),
    (
        "microk8s",
        ("snap.microk8s.daemon-containerd.service",),
        "/var/snap/microk8s/common/run/containerd.sock",
        "/var/snap/microk8s/current/args/containerd.toml",
        "containerd",
    ),
    ("k0s", ("k0sworker.service", "k0scontroller.service"), "/run/k0s/containerd.sock", "/etc/k0s/containerd.toml", "containerd"),
)
# Where systemd may listen for a daemon that it starts when somebody asks.
WAKERS = {"/run/docker.sock": "docker.socket", "/run/cri-dockerd.sock": "cri-docker.socket", "/run/podman/podman.sock": "podman.socket"}
UNITS = (*(name for _daemon, units, _socket, _config, _kind in DAEMONS for name in units), *WAKERS.values())


POINTERS = ("/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")


def endpoints(node):
    """The sockets that the kubelet's files name for its runtime."""
    return _named(node, POINTERS)


def crictl(node):
    """Those that an administrator's crictl is told to use: a hint, of which the kubelet knows nothing."""
    return _named(node, ("/etc/crictl.yaml",))


def _named(node, files):
    pattern = r"(?m)^[^#\n]*(?:runtime-endpoint|containerRuntimeEndpoint)[=:\s\"']+(?:unix://)?(/[^\s\"',]{1,150})"
    found = [socket for path in files for socket in re.findall(pattern, node.read(path) or "")]
    return list(dict.fromkeys(socket[4:] if socket.startswith("/var/run/") else socket for socket in found))


def unit(node, name):
    """What systemd says about a unit. Where systemd does not run there are none: that is an answer, not a problem."""
    return node.unit(name) if node.exists("/run/systemd/system") else {}


def sleeps(node, socket):
    """Whether its daemon does not run and systemd listens in its place: a question would start it, and a dockerd makes bridges and rules of its own."""
    waker = WAKERS.get(node.target(socket) or socket)  # podman-docker puts a link to podman's socket where docker's would be
    if not waker or unit(node, waker).get("SubState") != "listening":
        return False
    return unit(node, waker.replace(".socket", ".service")).get("ActiveState", "inactive") in ("inactive", "failed")


def daemons(node):
    """What systemd says about each runtime that it knows."""
    return {name: said for name, said in ((name, state(node, units)) for name, units, _socket, _config, _kind in DAEMONS) if said}


def state(node, names):
    """The unit in use; where several are installed, the one that is not stopped."""
    known = [one for one in (unit(node, name) for name in names) if one]
    if not known:
        return None
    said = next((one for one in known if one.get("ActiveState") != "inactive"), known[0])
    return {
        "unit": said["Id"],
        "load": said.get("LoadState"),
        "active": said.get("ActiveState"),
        "sub": said.get("SubState"),
        "enabled": said.get("UnitFileState"),
        "result": said.get("Result"),
        "restarts": _number(said.get("NRestarts")),
        "active_s": active_for(node, said),
        "kill_mode": said.get("KillMode"),
        "delegate": said.get("Delegate"),
        "restart": said.get("Restart"),
        "bound_to_containerd": [key for key in ("Requires", "BindsTo") if "containerd" in said.get(key, "")],
    }


def active_for(node, said):
    """For how many seconds it has been active."""
    uptime = (node.read("/proc/uptime") or "").split()
    since = _number(said.get("ActiveEnterTimestampMonotonic"))
    return round(float(uptime[0]) - since / 1e6) if since and uptime and re.match(r"[0-9.]+\Z", uptime[0]) else None


def _number(text):
    return whole(text or "")
