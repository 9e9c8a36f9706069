# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Room on the file systems that a node lives on."""

from __future__ import annotations

import os

NAME = 200
OF_PODS = ("/run/", "/sys/", "/proc/", "/dev/", "/var/lib/kubelet/pods/", "/var/lib/docker/overlay2/")  # thousands of mounts that hold nothing of ours
HOLDS = {
    "/": "root",
    "/var/lib/kubelet": "kubelet",
    "/var/lib/containerd": "images",
    "/var/lib/docker": "images",
    "/var/lib/containers": "images",
    "/var/lib/rancher": "images",
    "/var/snap/microk8s/common": "images",
    "/var/lib/etcd": "etcd",
    "/var/log": "logs",
}


def file_systems(node):
    """Room on the file systems that a node lives on. One that hangs, such as a lost NFS server's, costs its deadline and is a problem."""
    mounts = [mount for mount in map(mount_of, node.lines("/proc/self/mountinfo")) if mount]
    seen = {}
    threads = [(path, node.beside(look_at, node, path, mounts, seen)) for path in HOLDS]
    until = node.stopwatch() + node.deadline
    for path, thread in threads:
        thread.join(max(0.0, until - node.stopwatch()))
        if thread.is_alive():
            node.problem(path, "the file system did not answer within %g s" % node.deadline, "hung")
    merged = {}
    for path, what in HOLDS.items():  # in this order, whichever answered first
        for key, found in [seen[path]] if path in seen else []:
            one = merged.setdefault(key, {**found, "paths": [], "holds": []})
            one["paths"].append(path)
            one["holds"] = sorted({*one["holds"], what})
    return list(merged.values())


def look_at(node, path, mounts, seen):
    """The file system of a directory; the kubelet's directory counts where it will be made, too."""
    there = path
    while path == "/var/lib/kubelet" and there != "/" and not node.exists(there):
        there = os.path.dirname(there)
    room = node.room(there) if node.exists(there) else None
    if room is None:
        return
    target = node.target(there)
    real = os.path.normpath(os.path.join(os.path.dirname(there), target)) if target else there
    # The last of several mounts on one point is the one that is seen.
    mount = max((one for one in mounts if inside(real, one["mount"])), key=lambda one: len(one["mount"]), default={})
    for one in mounts:
        if one["mount"] == mount.get("mount"):
            mount = one
    seen[path] = (
        mount.get("device") or path,
        {
            **mount,
            "size": room.f_blocks * room.f_frsize,
            "available": room.f_bavail * room.f_frsize,
            "inodes": room.f_files,
            "inodes_free": room.f_ffree,
            "read_only": bool(room.f_flag & os.ST_RDONLY),
        },
    )


def mount_of(line):
    """{device, mount, type, source} of a line of mountinfo; None for what is none, or is of no interest."""
    words, _dash, more = line.partition(" - ")
    words, more = words.split(" "), more.split(" ")
    if len(words) < 6 or len(more) < 2 or words[4].startswith(OF_PODS):
        return None
    return {"device": words[2][:NAME], "mount": unescaped(words[4]), "type": more[0][:NAME], "source": unescaped(more[1])}


def unescaped(text):
    for sign in () if "\\" not in text else ("\\040", "\\011", "\\012", "\\043", "\\134"):  # the backslash last, as it may precede a number
        text = text.replace(sign, chr(int(sign[1:], 8)))
    return text[:NAME]


def inside(path, above):
    return above in ("/", path) or path.startswith(above + "/")
