# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which containers run, as the kernel sees it: that is the same whether their runtime answers or not."""

from __future__ import annotations

import re

from ..._grpc import fields
from ..._grpc import text as text_of
from ..._probes.runtime._answers import CRI
from ..._probes.runtime._processes import KERNEL_THREAD, arguments, status

ID = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?=/|\Z)")
POD = re.compile(r"/(?:kubepods[^/]*-)?pod([0-9a-f]{8}[0-9a-f_-]{20,60}|[0-9a-f]{32})(?:\.slice)?(?=[/:]|\Z)")
KEEPERS = ("containerd-shim", "conmon")  # what holds a container while its runtime is away
SHOWN = 50


def processes(node):
    """{pid: {name, state, cgroup, container, pod}} of all that is no kernel thread."""
    found = {}
    for pid, said in node.statuses(again=True)[1].items():
        one = status(said)
        if one and not one[2] & KERNEL_THREAD:
            text = (node.glance("/proc/%s/cgroup" % pid) or b"").decode("utf-8", "replace")
            container, pod = container_of(text)
            name = one[0].decode("utf-8", "replace")
            found[int(pid)] = {"name": name, "state": one[1].decode("ascii", "replace"), "cgroup": unit_path(text), "container": container, "pod": pod}
    return found


def unit_path(text):
    """The cgroup that systemd put a process into, out of /proc/PID/cgroup of either version; None where there is none."""
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    named = [path for _number, controllers, path in lines if controllers == "name=systemd"]
    unified = [path for number, controllers, path in lines if number == "0" and not controllers]
    return (named or unified or [None])[0]


def container_of(text):
    """(the container's id, its pod's uid) out of /proc/PID/cgroup; (None, None) of what runs in no container.

    Drivers and runtimes write cri-containerd-ID.scope, docker-ID.scope, crio-ID.scope, ID, or SLICE:cri-containerd:ID.
    """
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        ids = ID.findall(path)
        if ids:
            pod = POD.search(path)
            return ids[0], pod.group(1).replace("_", "-") if pod else None
    return None, None


def running(seen):
    """{container id: its pod's uid} of the containers in which something runs."""
    return {one["container"]: one["pod"] for one in seen.values() if one["container"] and one["name"] not in KEEPERS}


def shims(node, seen):
    """The shims, by what they were told."""
    found = [arguments(node.glance("/proc/%d/cmdline" % pid, 4096)) for pid, one in seen.items() if one["name"] == "containerd-shim"]
    return [{key: one.get(key, "")[:128] for key in ("id", "namespace", "address")} for one in found]


def snapshot(node):
    """What is compared after a restart."""
    seen = processes(node)
    return {"containers": running(seen), "shims": sorted(one["id"] for one in shims(node, seen))}


def compared(before, after, names):
    """The containers that are gone and those that are new, by name where the runtime tells it."""
    gone, new = [one for one in before if one not in after], [one for one in after if one not in before]
    counts = {"before": len(before), "after": len(after), "gone_count": len(gone), "new_count": len(new)}
    return {**counts, "gone": _named(gone, before, names), "new": _named(new, after, names)}


def _named(ids, pods, names):
    return [{"id": one, "pod_uid": pods[one], "name": names.get(one)} for one in sorted(ids)[:SHOWN]]


def names(node, address):
    """{id: namespace/pod, or namespace/pod/container}, also of containers that have ended; nothing where the runtime does not tell."""
    pods = {text_of(row, 1): _pod_name(row) for row in _listed(node, address, "ListPodSandbox")}
    found = {text_of(row, 1): "%s/%s" % (pods.get(text_of(row, 2), "?"), _part(row, 3, 1)) for row in _listed(node, address, "ListContainers")}
    return {**pods, **found}


def _listed(node, address, what):
    answer = node.call(address, CRI + what)
    return node.look(what, lambda node: [fields(one) for one in fields(answer.out).get(1, [])]) or [] if answer.ok else []


def _pod_name(row):
    return "%s/%s" % (_part(row, 2, 3), _part(row, 2, 1))


def _part(row, number, inner):
    """A text inside the last message of that number."""
    return text_of(fields(row[number][-1]), inner) if number in row else "?"
