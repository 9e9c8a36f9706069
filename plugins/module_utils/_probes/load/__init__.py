# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Load: how busy the node is, with what, and how near it is to its limits."""

from __future__ import annotations

import os

from ._numbers import decimal, hexadecimal, number, sized
from ._room import file_systems
from ._window import window

OWNERS, DESCRIPTORS = 200, 600  # so many processes and descriptors are searched for inotify instances


def averages(node):
    words = (node.read("/proc/loadavg") or "").split()
    return dict(zip(("one", "five", "fifteen"), map(float, words))) if len(words) >= 3 and all(map(decimal, words[:3])) else None


def cpus(node):
    """The CPUs that are online now."""
    return sum(line.startswith("cpu") and line[3:4].isdigit() for line in node.lines("/proc/stat")) or None


def uptime(node):
    words = (node.read("/proc/uptime") or "").split()
    return float(words[0]) if words and decimal(words[0]) else None


def pressure(node):
    """Pressure stall information. A kernel that has it compiled in but switched off refuses the read: then there is none, as with an old one."""
    read = {kind: stalls((node.glance("/proc/pressure/" + kind) or b"").decode("ascii", "replace")) for kind in ("cpu", "memory", "io")}
    return {kind: found for kind, found in read.items() if found}


def stalls(text):
    """{"some": {"avg10": 0.0, …}, "full": …} of one pressure file, in percent of the time."""
    found = {}
    for line in text.splitlines():
        kind, *pairs = line.split() or [""]
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if kind in ("some", "full"):
            found[kind] = {name: float(values[name]) for name in ("avg10", "avg60", "avg300") if decimal(values.get(name, ""))}
    return found


def memory(node):
    kib = sized(node.lines("/proc/meminfo"))
    if "MemTotal" not in kib:
        return None
    return {
        "total_kib": kib["MemTotal"],
        "available_kib": kib.get("MemAvailable"),
        "swap_total_kib": kib.get("SwapTotal", 0),
        "swap_used_kib": max(0, kib.get("SwapTotal", 0) - kib.get("SwapFree", 0)),
        "oom_kills": sized(node.lines("/proc/vmstat")).get("oom_kill"),
    }


def limits(node):
    words = (node.read("/proc/loadavg") or "").split()
    threads = words[3].partition("/")[2] if len(words) > 3 else ""
    files = (node.read("/proc/sys/fs/file-nr") or "").split()
    ceilings = [(most, "kernel." + name) for name in ("pid_max", "threads-max") for most in [node.number("/proc/sys/kernel/" + name)] if most]
    ceiling, setting = min(ceilings, default=(None, None))
    pids = used(number(threads), ceiling)
    return {
        "conntrack": used(node.number("/proc/sys/net/netfilter/nf_conntrack_count"), node.number("/proc/sys/net/netfilter/nf_conntrack_max")),
        "pids": pids and {**pids, "setting": setting},
        "files": used(number(files[0]), number(files[2])) if len(files) == 3 else None,
        "neighbours_4": neighbours(node, "/proc/net/stat/arp_cache", "/proc/sys/net/ipv4/neigh/default/gc_thresh3"),
        "neighbours_6": neighbours(node, "/proc/net/stat/ndisc_cache", "/proc/sys/net/ipv6/neigh/default/gc_thresh3"),
        "inotify": {
            "instances": node.number("/proc/sys/fs/inotify/max_user_instances"),
            "watches": node.number("/proc/sys/fs/inotify/max_user_watches"),
            "in_use": inotify_instances(node),
        },
    }


def used(now, most):
    return None if now is None or most is None else {"used": now, "max": most}


def neighbours(node, statistics, ceiling):
    """Entries of one neighbour table, which all network namespaces share; the kernel's table has the same total in each CPU's line."""
    rows = [line.split() for line in node.lines(statistics)]
    return used(hexadecimal(rows[1][0]) if len(rows) > 1 and rows[1] else None, node.number(ceiling))


def inotify_instances(node):
    """Instances in use by root, where root asks. Newest processes first, and only so many; some may be refused: then it is a lower bound."""
    if os.geteuid() != 0:
        return None
    pids = sorted(map(int, filter(str.isdigit, node.list("/proc"))), reverse=True)
    found = looked = refused = 0
    for pid in pids[:OWNERS]:
        owner = node.stat("/proc/%d" % pid)
        for target in node.points("/proc/%d/fd" % pid) if owner and owner.st_uid == 0 else ():
            looked += 1
            found += target == "anon_inode:inotify"
            refused += target is None
        if looked >= DESCRIPTORS:
            break
    return {"root": found, "all": not refused and looked < DESCRIPTORS and len(pids) <= OWNERS}


FACTS = {"averages": averages, "cpus": cpus, "uptime": uptime, "pressure": pressure, "memory": memory, "limits": limits}
WAITING = {"window": window, "file_systems": file_systems}
UNITS = ()
