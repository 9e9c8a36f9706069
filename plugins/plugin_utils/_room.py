# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What pods request, and what is free for them on other nodes, as the scheduler counts it: all sums, not which pod goes where."""

from __future__ import annotations

import re

from . import _drain
from ._sweep._values import entries, mapping

RESOURCES = ("cpu", "memory", "pods")
SIZES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", 1)}}
SIZES.update({letter + "i": 1024.0**power for power, letter in enumerate("KMGTPE", 1)})
QUANTITY = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)$")


def quantity(said):
    """``0.5`` of ``500m``; None for what is no quantity."""
    match = QUANTITY.match(str(said))
    return float(match.group(1)) * 10.0 ** int(match.group(2) or 0) * SIZES[match.group(3) or ""] if match else None


def leaving(pods):
    """Those that a drain moves elsewhere, of a node's pods."""
    known = [(one, _drain.pod(one)) for one in pods]
    return [one for one, pod in known if not pod.mirror and pod.phase not in _drain.FINISHED and pod.owner[:1] != ("DaemonSet",)]


def requested(pods):
    """{resource: what all pods that still run request}"""
    running = [one for one in pods if mapping(one, "status").get("phase") not in _drain.FINISHED]
    return {name: sum(_of_pod(one, name) for one in running) for name in RESOURCES}


def _of_pod(pod, name):
    """Init containers are through before the others begin, but for those that stay beside them."""
    if name == "pods":
        return 1
    init = entries(pod, "spec", "initContainers")
    beside = [one for one in init if one.get("restartPolicy") == "Always"]
    together = sum(_of_container(one, name) for one in entries(pod, "spec", "containers") + beside)
    first = max((_of_container(one, name) for one in init if one not in beside), default=0)
    return max(together, first) + (quantity(mapping(pod, "spec", "overhead").get(name)) or 0)


def _of_container(container, name):
    return quantity(mapping(container, "resources", "requests").get(name)) or 0


def free(allocatable, pods):
    """{resource: what is left of a node}; None where the node does not say what it has."""
    has = {name: quantity(allocatable.get(name)) for name in RESOURCES}
    taken = requested(pods)
    return None if None in has.values() else {name: max(0, has[name] - taken[name]) for name in RESOURCES}


def short(needed, rooms):
    """In words what the nodes lack together, empty where they have enough."""
    left = {name: sum(room[name] for room in rooms) for name in RESOURCES}
    return ", ".join("%s of %s" % (_said(name, needed[name]), _said(name, left[name])) for name in RESOURCES if needed[name] > left[name])


def _said(name, amount):
    return {"cpu": "%.2f CPUs" % amount, "memory": "%.0f MiB" % (amount / 2**20), "pods": "%d pods" % amount}[name]
