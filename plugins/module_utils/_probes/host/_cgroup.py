# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Control groups: the version, and which controllers the kernel offers."""

from __future__ import annotations


def cgroup(node):
    """v2 lists its controllers in a file of its own; /proc/cgroups tells of v1, where the last column is 0 for one switched off at boot."""
    unified = node.read("/sys/fs/cgroup/cgroup.controllers")
    if unified is not None:
        return {"version": 2, "controllers": sorted(unified.split())}
    rows = [line.split() for line in node.lines("/proc/cgroups") if not line.startswith("#")]
    enabled = sorted(row[0] for row in rows if len(row) == 4 and row[3] == "1")
    return {"version": 1 if node.exists("/sys/fs/cgroup/memory") or node.exists("/sys/fs/cgroup/cpu") else None, "controllers": enabled}
