# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the kernel only counts, read at both ends of one window; in between the run queue is looked at several times."""

from __future__ import annotations

import os

from ._numbers import hexadecimal, number, sized

PAUSES, PAUSE = 5, 0.05  # one window of 0.25 s
HEAVIEST = 5
NAME = 200
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def window(node):
    first, running, blocked = sample(node), [], []
    for _pause in range(PAUSES):
        node.sleep(PAUSE)
        now = sized(node.lines("/proc/stat"))
        running.append(now.get("procs_running"))
        blocked.append(now.get("procs_blocked"))
    last = sample(node, again=True)
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


def sample(node, again=False):
    """Everything that only means something as a difference."""
    at, read = node.statuses(again)
    return {
        "at": at,
        "cpu": (node.lines("/proc/stat") or [""])[0],
        "processes": {int(pid): one for pid, one in ((pid, status(text)) for pid, text in read.items() if text) if one},
        "unreadable": sum(text is None for text in read.values()),
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
