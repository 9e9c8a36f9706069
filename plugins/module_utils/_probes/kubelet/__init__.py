# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The kubelet: is it there, does it run, what may it do, and what does its journal complain about."""

from __future__ import annotations

import re

from ..._node import whole
from ._certificate import certificate
from ._settings import VARIANTS, config, installed, troubled

JOURNAL_LINES, JOURNAL_SINCE = 200, "-1h"

# what it means, and how the kubelet has said it over the years
SIGNATURES = (
    ("swap", r"running with swap on is not supported"),
    ("cgroup_v1", r"configured to not run on a host using cgroup v1"),
    ("certificate", r"bootstrap client certificate\b.{0,200}is expired|certificate has expired or is not yet valid"),
    ("bootstrap", r"unable to load bootstrap kubeconfig|bootstrap token .*expired|failed to run Kubelet: cannot create certificate signing request"),
    ("pleg", r"PLEG is not healthy: pleg was last seen active"),
    ("runtime_down", r"container runtime is down|container runtime is not running|validate CRI v1 runtime API|validate service connection"),
    ("cgroup_driver", r"cgroup driver: .{0,80} is different from|misconfiguration: kubelet cgroup driver"),
    ("config", r"failed to load kubelet config file|failed to validate kubelet (configuration|flags)|unknown flag: --"),
    ("inotify", r"inotify_init: too many open files|failed to create fsnotify watcher"),
    ("disk_full", r"no space left on device"),
)


def cgroup(node):
    """The version of the node's cgroups; 1 also where both are mounted, as the kubelet sees it."""
    if node.exists("/sys/fs/cgroup/cgroup.controllers"):
        return 2
    return 1 if node.list("/sys/fs/cgroup") else None


def unit(node):
    """What systemd says about it; empty where there is no such unit, None where systemd does not say."""
    name = installed(node)["unit"]
    said = node.unit(name) if name else {}
    if not said:
        return None if troubled(node) else {}
    return {
        "name": name,
        "active": said.get("ActiveState"),
        "sub": said.get("SubState"),
        "enabled": said.get("UnitFileState"),
        "restarts": _number(said.get("NRestarts")),
        "result": said.get("Result"),
        "exit_status": _number(said.get("ExecMainStatus")),
        "active_s": _since(node, _number(said.get("ActiveEnterTimestampMonotonic"))),
    }


def _since(node, monotonic):
    """For how long it has been active, in seconds."""
    uptime = (node.read("/proc/uptime") or "").split()
    return round(float(uptime[0]) - monotonic / 1e6, 1) if uptime and monotonic and re.match(r"[0-9]+(\.[0-9]+)?\Z", uptime[0]) else None


def _number(text):
    return whole(text or "")


def version(node):
    """The installed version, such as 1.36.3; None where there is none."""
    this = installed(node)
    if this["variant"] == "microk8s":
        said = node.read("/snap/microk8s/current/meta/snap.yaml") or ""
    elif this["program"]:
        answer = node.run([this["program"], "--version"])
        said = answer.out if answer.ok else ""
        if answer.state == "answered" and not answer.ok:
            node.problem(this["program"] + " --version", "ended with code %s" % answer.code, "error")
    else:
        return None
    match = re.search(r"\bv(\d+\.\d+\.\d+)", said)
    return match.group(1) if match else None


def healthz(node):
    """How the kubelet answers for itself, and how long that took."""
    this, settings = installed(node), config(node)
    port, address = settings["healthz_port"], settings["healthz_address"]
    if this["variant"] is None or port == 0:
        return {"state": "off", "port": port}
    if port is None or not address:
        return {"state": "not asked", "port": port}
    host = address.strip("[]")
    host = "127.0.0.1" if host in ("0.0.0.0", "::", "localhost") else host
    answer = node.http((host, port), "/healthz")
    if answer.state == "refused" and this["variant"] in ("k3s", "rke2") and settings["from"]["healthz_address"] == "default":
        there = node.http(("::1", port), "/healthz")  # they choose it themselves where the node's first address is one of IPv6
        host, answer = ("::1", there) if there.state != "refused" else (host, answer)
    return {"state": answer.state, "port": port, "address": host, "code": answer.code, "seconds": answer.seconds, "said": answer.out[:100]}


def journal(node):
    """The latest line of each known complaint of the last hour, and how often it came."""
    this = installed(node)
    if this["unit"] is None:
        return []
    wanted = ["--unit=" + this["unit"], "--lines=%d" % JOURNAL_LINES, "--since=" + JOURNAL_SINCE, "--output=short-unix", "--no-pager"]
    answer = node.run(["journalctl"] + wanted)
    if answer.state == "absent":
        node.problem("journalctl", "is not there", "error")
    if re.search(r"insufficient permissions|not seeing messages from other users", answer.err):
        node.problem("journalctl", "permission denied", "denied")
    return complaints(answer.out)


def complaints(text):
    found = {}
    for line in text.split("\n"):
        for name, pattern in SIGNATURES:
            if re.search(pattern, line, re.I):
                at = re.match(r"(\d{1,12})", line)
                one = found.setdefault(name, {"signature": name, "count": 0})
                one.update(count=one["count"] + 1, last=int(at.group(1)) if at else None, line=_message(line))
                break
    return list(found.values())


def _message(line):
    """A journal line without its time, host and process."""
    return re.sub(r"^\d+\.\d+ \S+ \S+?(\[\d+\])?: ", "", line).strip()[:400]


FACTS = {"installed": installed, "config": config, "cgroup": cgroup, "certificate": certificate}
WAITING = {"unit": unit, "version": version, "healthz": healthz, "journal": journal}
UNITS = tuple(name for _variant, units, _program, _home in VARIANTS for name in units)
