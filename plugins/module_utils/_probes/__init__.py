# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The probes, by area, and how one reading of a node is taken.

An area is a module with three tables: ``FACTS`` (name -> function of the node, gathered one after the other),
``WAITING`` (the same for facts that wait for a daemon, gathered side by side) and ``UNITS`` (the systemd units that it
wants to know about).
"""

from __future__ import annotations

import collections
import contextlib
import os
import platform
import time

from .._node import Node
from . import calico, host, kubelet, links, load, path, runtime, swap

AREAS = {
    "swap": swap,
    "links": links,
    "runtime": runtime,
    "kubelet": kubelet,
    "load": load,
    "host": host,
    "calico": calico,
    "path": path,
}
SCHEMA = "nodecare.node/1"
IN_ALL = 4  # a reading may take this many deadlines, however many daemons hang


def read(areas, deadline=5.0, root="/", targets=None):
    """One facts document about this machine."""
    chosen = {name: AREAS[name] for name in areas}
    node = Node(root, deadline, units=[unit for area in chosen.values() for unit in area.UNITS], targets=targets)
    return take(node, chosen, IN_ALL * deadline)


def take(node, areas, in_all):
    """Gather all areas; what is not there in time stays missing, and is named among the problems."""
    hostname = (node.read("/proc/sys/kernel/hostname") or "").strip()
    document = {"schema": SCHEMA, "taken": {"at": node.clock(), "hostname": hostname, "euid": os.geteuid(), "python": platform.python_version()}}
    start, cpu = time.monotonic(), time.process_time()
    document.update((name, {}) for name in areas)
    jobs = [[(name, fact, look) for name, area in areas.items() for fact, look in getattr(area, table).items()] for table in ("FACTS", "WAITING")]
    waiting = [node.beside(_gather, node, document, job) for job in jobs[1]]
    _in_turn(node, document, collections.deque(jobs[0]), start + in_all)
    for thread in waiting:
        thread.join(max(0.0, start + in_all - time.monotonic()))
    for name, fact, _look in (*jobs[0], *jobs[1]):
        if fact not in document[name]:
            node.problem(fact, "not finished within %g s" % in_all, "late", fact=name + "." + fact)
    node.close()
    document["taken"].update(seconds=round(time.monotonic() - start, 3), cpu=round(time.process_time() - cpu, 3), until=node.clock())
    document["problems"] = node.problems
    return document


def _in_turn(node, document, jobs, until):
    """One thread for all that only reads files: threads that compete for the interpreter cost half as much again.

    A thread that gets stuck, in a file system that hangs, is left behind and another one goes on with the rest.
    """
    while jobs and time.monotonic() < until:
        node.beside(_work_off, node, document, jobs).join(min(node.deadline, until - time.monotonic()))


def _work_off(node, document, jobs):
    with contextlib.suppress(IndexError):  # two threads may be at it, and one of them takes the last
        while True:
            _gather(node, document, jobs.popleft())


def _gather(node, document, job):
    name, fact, look = job
    node.look(name, lambda node: node.facts({fact: look}, document[name]))
