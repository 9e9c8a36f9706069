# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What decides about a restart: what the probes say of runtimes and kubelet, and which processes a restart would reach."""

from __future__ import annotations

import posixpath
import re

from ..._node import Node
from ..._probes import IN_ALL, kubelet, runtime, take
from ..._probes.runtime._daemons import DAEMONS
from ..._probes.runtime._processes import TICKS, status
from ._containers import KEEPERS, processes, running, shims

ROWS = {name: {"socket": socket, "kind": kind} for name, _units, socket, _config, kind in DAEMONS}
PROGRAMS = ("containerd", "dockerd", "crio", "cri-dockerd", "k3s", "k3s-server", "k3s-agent", "rke2", "k0s")  # as the kernel names them
ROOMS = {
    "containerd": ("/var/lib/containerd", "/run/containerd"),
    "docker": ("/var/lib/docker", "/run"),
    "crio": ("/var/lib/containers", "/run"),
    "k3s": ("/var/lib/rancher", "/run/k3s"),
    "rke2": ("/var/lib/rancher", "/run/k3s"),
    "microk8s": ("/var/snap/microk8s/common",),
    "k0s": ("/var/lib/k0s", "/run/k0s"),
}
NEEDED_BYTES, NEEDED_INODES = 16 << 20, 64


def asked(root="/", deadline=5.0):
    """The node, with the units that its probes want to know of."""
    return Node(root, deadline, units=[*runtime.UNITS, *kubelet.UNITS])


def look(node):
    """All facts that the plan is made of."""
    seen = processes(node)
    units = {said["Id"]: said for said in node.units("*").values()}
    unit_facts = {name: _of_unit(node, said, seen) for name, said in units.items()}
    containers, told = running(seen), shims(node, seen)
    versions = {name: _version(node, unit_facts, units, name) for name in ROWS if ROWS[name]["kind"] == "containerd"}
    live_restore = _live_restore(node, unit_facts)
    rooms = _rooms(node)
    facts = take(node, {"runtime": runtime, "kubelet": kubelet}, IN_ALL * node.deadline)
    tasks = ((facts["runtime"].get("processes") or {}).get("blocked") or {}).get("tasks", [])
    for one in unit_facts.values():
        one["blocked"] = [task for task in tasks if any(node.exists("/proc/%d/task/%d" % (pid, task["pid"])) for pid in one["daemons"])]
    own = {"units": unit_facts, "containers": containers, "shims": told, "versions": versions, "live_restore": live_restore, "rooms": rooms}
    return {**facts, "here": own, "boot": {"systemd": node.exists("/run/systemd/system")}}


def _of_unit(node, said, seen):
    """What a unit has to do with processes: which are its daemons, and how many that hold containers would end with it."""
    main = int(said["MainPID"]) if said.get("MainPID", "").isdigit() else 0
    path = (seen.get(main) or {}).get("cgroup") or "/system.slice/" + said["Id"]
    inside = {pid: one for pid, one in seen.items() if one["cgroup"] and (one["cgroup"] + "/").startswith(path + "/")}
    daemons = [pid for pid, one in inside.items() if pid == main or (one["cgroup"] == path and one["name"] in PROGRAMS)]
    return {
        "main": main,
        "load": said.get("LoadState"),
        "bound_to": "%s %s" % (said.get("Requires", ""), said.get("BindsTo", "")),
        "daemons": {pid: {"name": seen[pid]["name"], "state": seen[pid]["state"], "tracer": _tracer(node, pid)} for pid in daemons if pid in seen},
        "keepers": sum(one["name"] in KEEPERS or bool(one["container"]) for one in inside.values()) if seen else None,
    }


def _tracer(node, pid):
    match = re.search(rb"(?m)^TracerPid:\s*([1-9][0-9]*)$", node.glance("/proc/%d/status" % pid, 8192) or b"")
    return int(match.group(1)) if match else None


def _version(node, units, said, name):
    """The version of containerd that would run after a restart: that of the program beside the one that runs, or the one in the path."""
    unit = next((one for one in said if one in next(row[1] for row in DAEMONS if row[0] == name)), None)
    if unit is None:
        return None
    pid = next((pid for pid, one in units[unit]["daemons"].items() if one["name"] == "containerd"), None)
    running_one = node.target("/proc/%d/exe" % pid) if pid else None
    program = posixpath.join(posixpath.dirname(running_one), "containerd") if running_one and node.exists(posixpath.dirname(running_one)) else "containerd"
    answer = node.run([program, "--version"])
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", answer.out) if answer.ok else None
    return match.group(1) if match else None


def _live_restore(node, units):
    """Whether dockerd was started with live-restore, as far as files tell: an option that was written after its start does not count."""
    pid = next((pid for one in units.values() for pid, daemon in one["daemons"].items() if daemon["name"] == "dockerd"), None)
    words = (node.glance("/proc/%d/cmdline" % pid, 8192) or b"").split(b"\0") if pid else []
    if b"--live-restore" in words or b"--live-restore=true" in words:
        return True
    path = "/etc/docker/daemon.json"
    document = node.json(path)
    if not isinstance(document, dict) or document.get("live-restore") is not True:
        return False
    one, uptime = status(node.glance("/proc/%d/stat" % pid, 1024)) if pid else None, (node.read("/proc/uptime") or "").split()
    if one is None or not uptime:
        return True
    started = node.clock() - (float(uptime[0]) - one[3] / TICKS)
    written = node.stat(path)
    return bool(written) and written.st_mtime <= started


def _rooms(node):
    """{path: what is left there}. A file system that hangs would hang whoever asks, so each is asked beside us; what is not there is left out."""
    found = {}
    asked_for = {path: node.beside(_room, node, path, found) for paths in ROOMS.values() for path in paths}
    until = node.stopwatch() + node.deadline
    for path, thread in asked_for.items():
        thread.join(max(0.0, until - node.stopwatch()))
        if thread.is_alive():
            found[path] = "hung"
    return dict(found)


def _room(node, path, found):
    room = node.room(path) if node.exists(path) else None
    if room is not None:
        found[path] = {"bytes": room.f_bfree * room.f_frsize, "inodes": room.f_ffree if room.f_files else None}
