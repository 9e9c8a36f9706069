# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Load: how busy the node is, with what, and how near it is to its limits.

What the kernel only counts is read twice, at both ends of one window; in between the run queue is looked at several times.
"""

from __future__ import annotations

import os

PAUSES, PAUSE = 5, 0.05  # one window of 0.25 s
HEAVIEST = 5
PROCESSES = 20000  # so many are looked at, whatever the node runs
OWNERS, DESCRIPTORS = 300, 1500  # so many processes and descriptors are searched for inotify instances
NAME = 200
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


# -- how busy ----------------------------------------------------------------------------------------------------------


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


# -- how near to the limits --------------------------------------------------------------------------------------------


def limits(node):
    words = (node.read("/proc/loadavg") or "").split()
    threads = words[3].partition("/")[2] if len(words) > 3 else ""
    files = (node.read("/proc/sys/fs/file-nr") or "").split()
    ceilings = [node.number("/proc/sys/kernel/" + name) for name in ("pid_max", "threads-max")]
    return {
        "conntrack": used(node.number("/proc/sys/net/netfilter/nf_conntrack_count"), node.number("/proc/sys/net/netfilter/nf_conntrack_max")),
        "pids": used(number(threads), min((one for one in ceilings if one), default=None)),
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


# -- file systems ------------------------------------------------------------------------------------------------------

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
    for path in HOLDS:  # in this order, whichever answered first
        for key, found in [seen[path]] if path in seen else []:
            merged.setdefault(key, {**found, "paths": [], "holds": []})["paths"].append(path)
            if HOLDS[path] not in merged[key]["holds"]:
                merged[key]["holds"].append(HOLDS[path])
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
    """{device, mount, type, source} of a line of mountinfo, None for what is none."""
    words, _dash, more = line.partition(" - ")
    words, more = words.split(" "), more.split(" ")
    if len(words) < 6 or len(more) < 2:
        return None
    return {"device": words[2][:NAME], "mount": unescaped(words[4]), "type": more[0][:NAME], "source": unescaped(more[1])}


def unescaped(text):
    for sign in ("\\040", "\\011", "\\012", "\\134"):  # the backslash last, as it may precede a number
        text = text.replace(sign, chr(int(sign[1:], 8)))
    return text[:NAME]


def inside(path, above):
    return above == "/" or path == above or path.startswith(above + "/")


# -- one window --------------------------------------------------------------------------------------------------------


def window(node):
    first, running, blocked = sample(node), [], []
    for _pause in range(PAUSES):
        node.sleep(PAUSE)
        now = sized(node.lines("/proc/stat"))
        running.append(now.get("procs_running"))
        blocked.append(now.get("procs_blocked"))
    last = sample(node)
    seconds = last["at"] - first["at"]
    me = number(node.target("/proc/self") or "")
    spent = [delta(first["processes"], last["processes"], pid) for pid in last["processes"]]
    theirs = sorted((one for one in spent if me is None or me not in (one[1], one[2][1])), reverse=True)
    busy = [one for one in theirs if one[0] > 0]
    return {
        "seconds": round(seconds, 3),
        "cpu": shares(first["cpu"], last["cpu"]),
        "running": running,
        "blocked": blocked,
        "processes": [process(one, seconds) for one in busy[:HEAVIEST]],
        "largest": [process(one, seconds) for one in sorted(theirs, key=lambda one: one[2][3], reverse=True)[:3]],
        "waiting": [process(one, seconds) for one in theirs if one[2][5] == b"D"][:HEAVIEST],
        "cgroups": cgroups(node, busy, seconds),
        "own_cpus": rate(sum(one[0] for one in spent) - sum(one[0] for one in theirs), seconds),
        "seen_cpus": rate(sum(one[0] for one in busy), seconds),
        "process_count": len(last["processes"]),
        "unreadable": last["unreadable"],
        "disks": disks(first["disks"], last["disks"], seconds),
        "network": {name: [total, total - first["network"].get(name, total)] for name, total in last["network"].items()},
    }


def sample(node):
    """Everything that only means something as a difference."""
    processes, unreadable = processes_of(node)
    return {
        "at": node.stopwatch(),
        "cpu": (node.lines("/proc/stat") or [""])[0],
        "processes": processes,
        "unreadable": unreadable,
        "disks": dict(filter(None, map(disk, node.lines("/proc/diskstats")))),
        "network": {**dropped(node.lines("/proc/net/softnet_stat")), **overflows(node.lines("/proc/net/netstat"))},
    }


STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def shares(before, after):
    """What part of all CPUs' time went where, from two first lines of /proc/stat; None where no time went by."""
    was, now = ([number(word) or 0 for word in line.split()[1 : 1 + len(STATES)]] for line in (before, after))
    # iowait is known to count backwards at times.
    spent = [max(0, after - before) for before, after in zip(was, now)]
    total = sum(spent)
    return {name: round(part / total, 4) for name, part in zip(STATES, spent)} if total else None


def processes_of(node):
    """{pid: (ticks, parent, start, pages, name, state)} in one pass, and how many would not be read."""
    found, unreadable = {}, 0
    for pid in [name for name in node.list("/proc") if name.isdigit()][:PROCESSES]:
        text = node.glance("/proc/" + pid + "/stat", 1024)
        if text is None:
            unreadable += 1
            continue
        one = status(text)
        if one:
            found[int(pid)] = one
    return found, unreadable


def status(text):
    """The line of /proc/PID/stat: its name may hold anything, also brackets and spaces."""
    head, _bracket, tail = text.rpartition(b")")
    words = tail.split(None, 22)
    if len(words) < 22:
        return None
    state, parent, user, system, start, pages = words[0], words[1], words[11], words[12], words[19], words[21]
    if not (parent.isdigit() and user.isdigit() and system.isdigit() and start.isdigit() and pages.isdigit()):
        return None
    return int(user) + int(system), int(parent), start, int(pages), head.partition(b"(")[2], state


def delta(before, after, pid):
    """(ticks in the window, pid, its last status). A process that is new has spent all its time in the window."""
    now, was = after[pid], before.get(pid)
    return (now[0] - was[0] if was and was[2] == now[2] else now[0]), pid, now


def process(one, seconds):
    """Never its command line: that may hold secrets."""
    ticks, pid, (_ticks, _parent, _start, pages, name, _state) = one
    return {"name": name.decode("utf-8", "replace")[:64], "pid": pid, "cpus": rate(ticks, seconds), "rss_mib": pages * PAGE >> 20}


def rate(ticks, seconds):
    """So many CPUs' worth of work."""
    return round(ticks / TICKS / seconds, 2) if seconds > 0 else 0.0


def cgroups(node, busy, seconds):
    """The heaviest control groups, summed up from their processes: no walk through a tree that may hold thousands. Those who came and went are missed."""
    ticks = {}
    for spent, pid, _status in busy[:200]:
        path = cgroup((node.glance("/proc/%d/cgroup" % pid) or b"").decode("utf-8", "replace"))
        if path:
            ticks[path] = ticks.get(path, 0) + spent
    heaviest = sorted(ticks.items(), key=lambda one: (-one[1], one[0]))[:HEAVIEST]
    return [{"path": path[-NAME:], "cpus": rate(spent, seconds)} for path, spent in heaviest]


def cgroup(text):
    """The path in the unified hierarchy, or where that is not used in the one that has the cpu controller."""
    paths = {}
    for line in text.splitlines():
        number_of, _colon, rest = line.partition(":")
        controllers, _colon, path = rest.partition(":")
        for name in controllers.split(","):
            paths[name if number_of != "0" else "unified"] = path
    candidates = [paths.get(name) for name in ("unified", "cpuacct", "cpu", "name=systemd")]
    return next((path for path in candidates if path and path != "/"), next((path for path in candidates if path), None))


def disk(line):
    """(name, counters) of a line of /proc/diskstats; None for what is no disk of its own."""
    words = line.split()
    if len(words) < 14 or words[2].startswith(("loop", "ram", "zram")) or not all(word.isdigit() and word.isascii() for word in words[3:14]):
        return None
    reads, _merged, _sectors, read_ms, writes, _merged, _sectors, write_ms, now, busy_ms, waited_ms = map(int, words[3:14])
    return words[2][:64], {"device": ":".join(words[:2]), "done": reads + writes, "ms": read_ms + write_ms, "now": now, "busy": busy_ms, "waited": waited_ms}


def disks(before, after, seconds):
    """Latency, queue and use of the disks that did something; partitions are left to their disk."""
    found = []
    for name, now in after.items():
        was = before.get(name)
        if was is None or seconds <= 0 or any(partition(name, other) for other in after):
            continue
        # The kernel's milliseconds are 32-bit counters.
        done, spent, busy, waited = (now[key] - was[key] & 0xFFFFFFFF for key in ("done", "ms", "busy", "waited"))
        if done or now["now"]:
            found.append(
                {
                    "name": name,
                    "device": now["device"],
                    "done": done,
                    "ms_each": round(spent / done, 2) if done else None,
                    "queue": round(waited / 1000 / seconds, 2),
                    "busy": round(min(1.0, busy / 1000 / seconds), 3),
                    "in_flight": now["now"],
                }
            )
    return sorted(found, key=lambda one: -one["queue"])[:16]


def partition(name, whole):
    rest = name[len(whole) :]
    return name.startswith(whole) and (rest[:1] == "p" and rest[1:].isdigit() if whole[-1:].isdigit() else rest.isdigit())


def dropped(lines):
    """Packets that no CPU had room for."""
    rows = [line.split() for line in lines]
    return {"softnet_dropped": sum(hexadecimal(row[1]) or 0 for row in rows if len(row) > 1)} if rows else {}


def overflows(lines):
    """Connections that a program did not accept in time."""
    for names, values in zip(lines, lines[1:]):
        if names.startswith("TcpExt:") and values.startswith("TcpExt:"):
            row = dict(zip(names.split(), values.split()))
            return {key: number(row.get(name, "")) or 0 for key, name in (("listen_overflows", "ListenOverflows"), ("listen_drops", "ListenDrops"))}
    return {}


# -- numbers -----------------------------------------------------------------------------------------------------------


def sized(lines):
    """{name: number} of lines such as ``MemTotal: 16384 kB`` or ``oom_kill 0``."""
    rows = (line.split(None, 2) for line in lines)
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and number(row[1]) is not None}


def number(text):
    return int(text) if text.isdigit() and text.isascii() and len(text) < 30 else None


def hexadecimal(text):
    return int(text, 16) if text and len(text) < 30 and not set(text) - set("0123456789abcdefABCDEF") else None


def decimal(text):
    whole, _point, part = text.partition(".")
    return number(whole) is not None and (not part or number(part) is not None)


FACTS = {"averages": averages, "cpus": cpus, "uptime": uptime, "pressure": pressure, "memory": memory, "limits": limits}
WAITING = {"window": window, "file_systems": file_systems}
UNITS = ()
