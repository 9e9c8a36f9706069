# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who holds the ports that a node needs."""

from __future__ import annotations

import re

WANTED = (179, 2379, 2380, 6443, 9099, 10248, 10249, 10250, 10256, 10257, 10259)
LISTEN = "0A"
TABLE = 1 << 18  # the kernel lists what listens before what is connected
EXPECTED = re.compile("kube|calico|bird|etcd|k3s|rke2|k0s")


def ports(node):
    """Each wanted port that somebody listens on, with the process where it may be seen."""
    held = {}
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for port, inode in listening(node.table(path, TABLE)):
            if port in WANTED:
                held[inode] = {"port": port}
    owners = holders(node, set(held)) if held else {}
    for inode, one in held.items():
        one.update(owners.get(inode) or {})
        if inode not in owners:
            node.problem("the process behind port %d" % one["port"], "not visible", "denied")
    once = {(one["port"], one.get("process", ""), one.get("pid", 0)): one for one in held.values()}  # a program may listen several times
    return [once[key] for key in sorted(once)][:50]


def listening(text):
    """(port, inode) of every listener in /proc/net/tcp or tcp6."""
    for line in text.split("\n"):
        words = line.split()
        if len(words) > 9 and words[3] == LISTEN and words[9].isdigit():
            port = words[1].rpartition(":")[2]
            if re.match("[0-9A-F]{4}$", port):
                yield int(port, 16), words[9]


def holders(node, inodes):
    """{inode: process}; those that are likely to hold them are looked at first, so that a healthy node costs a few."""
    names = {}
    for pid in node.list("/proc"):
        if pid.isdigit():
            name = node.glance("/proc/%s/comm" % pid, 64)
            if name:
                names[pid] = name.decode("utf-8", "replace").strip()
    found = {}
    for pid in sorted(names, key=lambda one: (not EXPECTED.search(names[one]), int(one))):
        if len(found) == len(inodes):
            break
        for target in node.points("/proc/%s/fd" % pid):
            inode = target[8:-1] if target and target.startswith("socket:[") else None
            if inode in inodes:
                found[inode] = {"process": names[pid], "pid": int(pid)}
    return found
