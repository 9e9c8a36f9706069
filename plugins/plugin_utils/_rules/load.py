# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Load: is the node busier than it can bear, busier than the others, or near one of its limits?"""

from __future__ import annotations

from statistics import median

from .._outliers import load_per_cpu, stall, standings
from .._policy import threshold
from ._rule import across, by_hand, fail, passed, repaired_by, rule, skip, unknown, warn

DAY = 86400.0
GIB = 1 << 30

threshold("load_per_cpu", 2.0, "Load average per CPU, over one minute and over five, from which a node is overloaded.")
threshold("run_queue_per_cpu", 2.0, "Runnable tasks per CPU from which tasks are said to queue for a CPU.")
threshold("pressure_cpu_percent", 60.0, "Percent of the time in which some task waits for a CPU (PSI) that is too much.")
threshold("pressure_io_percent", 40.0, "Percent of the time in which some task waits for I/O (PSI) that is too much.")
threshold("pressure_memory_percent", 10.0, "Percent of the time in which some task waits for memory (PSI) that is too much.")
threshold("steal_percent", 10.0, "Percent of the CPU time taken by the hypervisor for others that is too much.")
threshold("iowait_percent", 10.0, "Percent of the CPU time idle for waiting for I/O that is too much while tasks are blocked.")

# -- overload ----------------------------------------------------------------------------------------------------------

LOOK = by_hand(
    "see what to limit or move: systemd-cgtop --order=cpu --iterations=2; when it must be emptied: kubectl drain %(node)s --ignore-daemonsets",
    disruptive=True,
)
RECYCLE = repaired_by(
    "repair_overload",
    "see what to limit or move: systemd-cgtop --order=cpu --iterations=2; where that does not help: kubectl drain %(node)s --ignore-daemonsets, then reboot it",
    disruptive=True,
    reboot=True,
)
OWNER = by_hand("report to whoever runs the hypervisor: %(steal_percent)s %% of the CPU time of %(node)s is stolen; no repair inside the node helps")
STORAGE = by_hand("look at the disk or mount that these wait for: ps -eo pid,stat,wchan:30,comm | awk '$2 ~ /^D/'")
COMMON = by_hand("repair no single node, but see what all do alike, and limit it or add nodes: kubectl top pods -A --sort-by=cpu")


@rule(
    "load.saturated",
    "The node is overloaded",
    needs=("load.averages", "load.cpus", "load.pressure", "load.window"),
    remedy=LOOK,
)
def saturated(averages, cpus, pressure, window, policy):
    """Probes have one second by default: a node whose tasks queue for a CPU or a disk kills healthy pods by their liveness probes.

    The load must be high over one and five minutes, and tasks must be seen to wait now. Time stolen by the hypervisor and
    tasks blocked on I/O are told apart from work, because no repair of the node helps against the first.
    """
    seen = _signals({"averages": averages, "cpus": cpus, "pressure": pressure}, window)
    high = {name for name, least in LEAST.items() if seen[name] is not None and seen[name] >= policy[least]}
    evidence = {**{name: value for name, value in seen.items() if value is not None}, "cpus": cpus, **_heaviest(window)}
    load = "load %.1f on %s, %.1f per CPU (%g is too much)" % (seen["load_per_cpu"] * cpus, _cpus(cpus), seen["load_per_cpu"], policy["load_per_cpu"])
    causes, remedy = _causes(seen, high, window)
    if "load_per_cpu" in high:
        if causes:
            return fail("%s; %s" % (load, "; ".join(causes)), RECYCLE if remedy is LOOK else remedy, **evidence)
        return warn("%s, but now only %.1f tasks per CPU want to run: it is passing, or has just passed" % (load, seen["run_queue_per_cpu"] or 0), **evidence)
    if (
        {"pressure_cpu_percent", "run_queue_per_cpu"} <= high
        or (causes and remedy is STORAGE and "pressure_io_percent" in high)
        or (remedy is OWNER and seen["load_per_cpu"] >= 1)
    ):
        return warn("%s, but %s" % (load.replace("is too much", "would be too much"), "; ".join(causes)), remedy, **evidence)
    return passed("load %.1f on %s" % (seen["load_per_cpu"] * cpus, _cpus(cpus)))


LEAST = {name: name for name in ("load_per_cpu", "run_queue_per_cpu", "pressure_cpu_percent", "pressure_io_percent", "steal_percent", "iowait_percent")}


def _signals(load, window):
    cpu = window["cpu"] or {}
    return {
        "load_per_cpu": _rounded(load_per_cpu(load)),
        # The reader of /proc/stat is itself running.
        "run_queue_per_cpu": _rounded(max(0.0, (_middle(window["running"]) or 1) - 1) / load["cpus"]),
        "blocked": _middle(window["blocked"]),
        "pressure_cpu_percent": stall("cpu")(load),
        "pressure_io_percent": stall("io")(load),
        "steal_percent": _percent(cpu.get("steal")),
        "iowait_percent": _percent(cpu.get("iowait")),
    }


def _causes(seen, high, window):
    """What the tasks wait for, in words, and what helps against the last of it."""
    causes, remedy = [], None
    if high & {"pressure_cpu_percent", "run_queue_per_cpu"}:
        remedy = LOOK
        causes.append("%g tasks per CPU want to run" % round(seen["run_queue_per_cpu"], 1) + _wait(seen["pressure_cpu_percent"], "for a CPU"))
        heaviest = [_process(one) for one in window["processes"][:1]] + [
            "%s (%.1f CPUs)" % (_clean(one["path"]), one["cpus"]) for one in window["cgroups"][:1] if one["path"] != "/"
        ]
        if heaviest:
            causes.append("heaviest: %s" % " and ".join(heaviest))
    blocked = seen["blocked"] or 0
    # One task that waits for a disk while dozens queue for a CPU is no cause; a load of which nothing runs is made of blocked ones.
    if "pressure_io_percent" in high or (blocked >= 1 and ("iowait_percent" in high or not causes)):
        remedy = STORAGE
        causes.append("%d tasks are blocked on I/O" % blocked + _wait(seen["pressure_io_percent"], "for I/O"))
        if window["waiting"]:
            causes.append("blocked: %s" % ", ".join(_process(one, cpus=False) for one in window["waiting"][:3]))
    if "steal_percent" in high:
        remedy = OWNER
        causes.append("the hypervisor gives %.0f %% of its CPU time to others: the cause is outside this node" % seen["steal_percent"])
    return causes, remedy


def _wait(percent, what):
    return "" if percent is None else ", some wait %s %.0f %% of the time" % (what, percent)


def _heaviest(window):
    first = {"heaviest": window["processes"][:1], "cgroup": window["cgroups"][:1]}
    return {name: found[0] for name, found in first.items() if found}


@across("load.saturated")
def saturated_alike(nodes, policy):
    """Where the nodes are overloaded alike, their cause is common, and repairing one of them helps nobody."""
    loads = {name: dict(zip(("averages", "cpus", "pressure"), facts)) for name, facts in nodes.items()}
    common = {one.node: one for one in standings(loads, policy)[0] if one.metric == "load_per_cpu" and one.common}
    said = {name: saturated(*nodes[name], policy) for name in common}
    many = sum(load_per_cpu(load) is not None and load_per_cpu(load) >= policy["load_per_cpu"] for load in loads.values())
    return {
        name: fail(
            "%s; %d of %d nodes are as loaded: the cause is common to them" % (verdict.message, many, len(nodes)), COMMON, **verdict.evidence, common=many
        )
        for name, verdict in said.items()
        if verdict.status == "fail"
    }


# -- compared with the other nodes -------------------------------------------------------------------------------------

threshold("outlier_score", 3.5, "Modified z score (five nodes or more) from which a node stands out.")
threshold("outlier_ratio", 3.0, "Ratio to the median of the others (fewer than five nodes) from which a node stands out.")
threshold("outlier_uptime_seconds", 600.0, "Uptime below which a node is not compared, as it is still starting.")


@across(
    "load.outlier",
    "The node is far busier than the others",
    needs=("load.averages", "load.cpus", "load.uptime", "load.pressure"),
    uses="load.window",
    remedy=LOOK,
)
def outlier(nodes, policy):
    """One node with many times the load of its peers starts pods too slowly for their probes: they are killed again and again, there and nowhere else.

    A node is called an outlier only if it is far above the median of its peers and also above what any node may have. If
    the peers are overloaded too, the cause is common and load.saturated says so. A reboot is called for only where its own
    tasks queue for its CPUs, as load.saturated tells.
    """
    loads = {name: dict(zip(("averages", "cpus", "uptime", "pressure"), facts)) for name, facts in nodes.items()}
    found, left_out = standings(loads, policy)
    said = {name: skip(reason) for name, reason in left_out.items()}
    signals = {}
    for one in found:
        signals.setdefault(one.node, []).append(one)
    return {**said, **{name: _compared(of, len(loads) - len(left_out), nodes[name], policy) for name, of in signals.items()}}


def _compared(standing, many, facts, policy):
    out = [one for one in standing if one.stands_out]
    if out:
        first, signals = out[0], [one.metric for one in out]
        evidence = {"metric": first.metric, "value": first.value, "median": first.median, "score": first.score, "by": first.by, "signals": signals}
        # Pressure alone may be one busy minute; with the load, or of two kinds, it is the node.
        verdict = fail if first.metric == "load_per_cpu" or len(out) > 1 else warn
        return verdict("; ".join(one.reason for one in out), RECYCLE if verdict is fail and _recycled(facts, policy) else LOOK, **evidence)
    if any(one.common for one in standing):
        return passed("it is overloaded, but so are the others: see load.saturated")
    return passed("load %.2f per CPU, the median of %d nodes is %.2f" % (standing[0].value, many, standing[0].median))


def _recycled(facts, policy):
    """Whether the playbook would do anything: it goes by load.saturated alone."""
    averages, cpus, _uptime, pressure, window = facts
    return window is not None and saturated(averages, cpus, pressure, window, policy).remedy is RECYCLE


# -- memory ------------------------------------------------------------------------------------------------------------

threshold("memory_available_percent", 10.0, "Percent of the memory that should be available.")
threshold("memory_available_mib", 100.0, "MiB of available memory below which the kubelet evicts pods.")
threshold("oom_kills_per_day", 1.0, "Processes killed for lack of memory per day, since the boot, that are too many.")


@rule(
    "load.memory",
    "Memory is short",
    needs=("load.memory", "load.pressure", "load.uptime"),
    uses="load.window",
    remedy=by_hand("see who holds it, and limit or move those pods: ps -eo pid,rss,comm --sort=-rss | head"),
)
def memory(memory, pressure, uptime, window, policy):
    """By default the kubelet evicts pods once less than 100 MiB is available, and before that the kernel makes everything slow by reclaiming.

    Processes that the kernel killed for lack of memory are counted too, also those that met their own control group's limit.
    """
    largest = window["largest"][0] if window and window["largest"] else None
    evidence = {**memory, **({"largest": largest} if largest else {})}
    holder = "; largest: %s with %d MiB" % (_process(largest, cpus=False), largest["rss_mib"]) if largest else ""
    percent = None if memory["available_kib"] is None else 100 * memory["available_kib"] / max(1, memory["total_kib"])
    short = percent is not None and percent < policy["memory_available_percent"]
    return [
        _available(memory, percent, short, holder, evidence, policy),
        *_reclaiming(stall("memory")({"pressure": pressure}), short, holder, evidence, policy),
        *_killed(memory["oom_kills"] or 0, uptime, evidence, policy),
    ]


def _available(memory, percent, short, holder, evidence, policy):
    if percent is None:
        return unknown("this kernel does not say how much memory is available (MemAvailable)")
    available = memory["available_kib"] / 1024
    said = "%.0f of %.0f MiB (%.0f %%) are available" % (available, memory["total_kib"] / 1024, percent)
    if available < policy["memory_available_mib"]:
        return fail("%s; the kubelet evicts below %.0f MiB%s" % (said, policy["memory_available_mib"], holder), **evidence)
    if short:
        return warn("%s; at least %g %% should be%s" % (said, policy["memory_available_percent"], holder), **evidence)
    return passed(said)


def _reclaiming(waits, short, holder, evidence, policy):
    if waits is not None and waits >= policy["pressure_memory_percent"]:
        said = "tasks wait for memory %.0f %% of the time (%g %% is too much)" % (waits, policy["pressure_memory_percent"])
        where = "" if short else ", though enough is available: a control group is at its own limit"
        yield (fail if short else warn)(said + where + holder, pressure_memory_percent=waits, **evidence)


def _killed(kills, uptime, evidence, policy):
    if kills and kills / max(uptime / DAY, 1 / 24) >= policy["oom_kills_per_day"]:
        yield warn("%d processes were killed for lack of memory since the boot %s ago" % (kills, _ago(uptime)), uptime=uptime, **evidence)


# -- disks -------------------------------------------------------------------------------------------------------------

threshold("nodefs_available_percent", 10.0, "Percent of the kubelet's file system below which it evicts pods.")
threshold("imagefs_available_percent", 15.0, "Percent of the images' file system below which the kubelet evicts pods.")
threshold("other_available_percent", 5.0, "Percent of any other file system of the node (/, etcd, logs) that must be available.")
threshold("inodes_free_percent", 5.0, "Percent of a file system's inodes below which the kubelet evicts pods.")
threshold("disk_margin_percent", 5.0, "So many percentage points before these levels a warning is given.")
threshold("disk_latency_ms", 100.0, "Milliseconds for one disk operation that are too much while operations queue.")
threshold("disk_queue", 10.0, "Operations in a disk's queue that are too many.")

WHO_WRITES = by_hand("see whether it lasts, and who writes: iostat -dx 5 2 %(name)s; pidstat -d 5 1")
LEVELS = {"kubelet": "nodefs_available_percent", "images": "imagefs_available_percent"}


@rule(
    "load.disk",
    "A disk is nearly full, or too slow",
    needs="load.file_systems",
    uses=("load.window", "load.pressure"),
    remedy=by_hand("see what fills it, and remove that: du -xhd2 %(mount)s | sort -h | tail"),
)
def disk(file_systems, window, pressure, policy):
    """When a file system falls below the kubelet's eviction level, the kubelet throws pods out and the node takes no new ones.

    The levels are the kubelet's defaults. Where images share the kubelet's file system, the higher level of the two counts.
    A disk that answers slowly while operations queue makes the runtime, the kubelet and etcd miss their deadlines.
    """
    nothing = [] if file_systems else [unknown("no file system was seen")]
    return nothing + [verdict for one in file_systems for verdict in _room(one, policy)] + list(_slow(window, pressure, policy))


def _room(one, policy):
    where = "%s (%s)" % (_clean(one.get("mount") or one["paths"][0]), ", ".join(one["paths"]))
    evidence = {**one, "mount": one.get("mount") or one["paths"][0]}
    if one["read_only"] and set(one["paths"]) - {"/"}:
        yield fail(
            "%s is mounted read-only" % where,
            by_hand("see why, and repair the disk first: journalctl -k -g 'read-only|I/O error'; then: mount -o remount,rw %(mount)s"),
            **evidence,
        )
    if one["read_only"]:
        return  # nothing can be written there, so it is as full as it was made: an image that a system is started from
    level = max(policy[LEVELS.get(what, "other_available_percent")] for what in one["holds"])
    evicts = "the kubelet evicts below %g %%" if set(one["holds"]) & set(LEVELS) else "it should have %g %%"
    if one["size"]:
        free = 100 * one["available"] / one["size"]
        said = "%s has %.1f of %.1f GiB (%.0f %%) available" % (where, one["available"] / GIB, one["size"] / GIB, free)
        yield from _judged(said, evicts, free, level, policy, evidence)
    if one["inodes"]:
        free = 100 * one["inodes_free"] / one["inodes"]
        said = "%s has %d of %d inodes (%.0f %%) free" % (where, one["inodes_free"], one["inodes"], free)
        yield from _judged(said, evicts, free, policy["inodes_free_percent"], policy, evidence)


def _judged(said, evicts, free, level, policy, evidence):
    if free < level + policy["disk_margin_percent"]:
        yield (fail if free < level else warn)("%s; %s" % (said, evicts % level), **evidence)


def _slow(window, pressure, policy):
    stalled = stall("io")({"pressure": pressure}) or 0
    for one in (window or {}).get("disks", ()):
        queues = one["queue"] >= policy["disk_queue"] or stalled >= policy["pressure_io_percent"]
        slow = one["ms_each"] is not None and one["ms_each"] >= policy["disk_latency_ms"]
        if queues and slow:
            answer = (_clean(one["name"]), one["ms_each"], one["queue"], policy["disk_latency_ms"])
            yield warn("%s takes %.0f ms for one operation with %.1f in its queue (%g ms is too much)" % answer, WHO_WRITES, **one)
        elif queues and one["ms_each"] is None and one["in_flight"]:
            answer = (_clean(one["name"]), one["in_flight"], window["seconds"])
            yield warn("%s has %d operations in flight and finished none within %.2f s" % answer, WHO_WRITES, **one)


# -- limits ------------------------------------------------------------------------------------------------------------

threshold("limit_warn_percent", 75.0, "Percent of a kernel table (conntrack, pids, files, neighbours) in use from which to warn.")
threshold("limit_fail_percent", 90.0, "Percent of a kernel table in use that is too much.")
threshold("inotify_instances", 512.0, "Inotify instances that a user should be allowed; the kernel's default of 128 is too few for some forty pods.")
threshold("inotify_watches", 65536.0, "Inotify watches that a user should be allowed.")

TABLES = {  # what it is called, which setting raises it
    "conntrack": ("connections tracked (conntrack)", "net.netfilter.nf_conntrack_max"),
    "pids": ("processes and threads", "kernel.pid_max"),
    "files": ("open files", "fs.file-max"),
    "neighbours_4": ("IPv4 neighbours", "net.ipv4.neigh.default.gc_thresh3"),
    "neighbours_6": ("IPv6 neighbours", "net.ipv6.neigh.default.gc_thresh3"),
}
RAISE = by_hand(
    "find out who uses it up, and raise it: echo %(setting)s=%(raise_to)s | tee -a /etc/sysctl.d/90-nodecare.conf && sysctl -p /etc/sysctl.d/90-nodecare.conf"
)
GROWS = {
    "softnet_dropped": "packets were dropped because no CPU took them in time (net.core.netdev_max_backlog)",
    "listen_overflows": "connections were refused because a program did not accept them in time",
}


@rule("load.limits", "A limit of the kernel is near or too low", needs="load.limits", uses="load.window", remedy=RAISE)
def limits(limits, window, policy):
    """A full kernel table drops packets, refuses connections or keeps the runtime from starting, on a node that is otherwise idle.

    Raising the limit is safe; what uses it up still has to be found.
    """
    unread = [words for name, (words, _setting) in TABLES.items() if limits[name] is None and name in ("pids", "files")]
    nothing = [unknown("%s were not counted" % " and ".join(unread))] if unread else []
    return [*nothing, *_tables(limits, policy), *_inotify(limits["inotify"], policy), *_grows(window)]


def _tables(limits, policy):
    for name, (words, setting) in TABLES.items():
        table = limits[name]
        percent = 100 * table["used"] / table["max"] if table and table["max"] else 0
        if percent >= min(policy["limit_warn_percent"], policy["limit_fail_percent"]):
            verdict = fail if percent >= policy["limit_fail_percent"] else warn
            said = "%d of %d %s are in use (%.0f %%; %g %% is too much)" % (table["used"], table["max"], words, percent, policy["limit_fail_percent"])
            yield verdict(said, **{"limit": name, "setting": setting, "raise_to": 2 * table["max"], **table})


def _inotify(inotify, policy):
    in_use, instances = inotify["in_use"], inotify["instances"]
    setting = "fs.inotify.max_user_instances"
    if instances and in_use and in_use["root"] >= instances * policy["limit_fail_percent"] / 100:
        said = "%d of %d inotify instances of root are in use: the runtime and the kubelet may fail to start" % (in_use["root"], instances)
        yield fail(said, limit="inotify_instances", setting=setting, raise_to=8192, used=in_use["root"], max=instances)
    elif instances is not None and instances < policy["inotify_instances"]:
        said = "%s is %d; a node with many pods needs at least %d" % (setting, instances, policy["inotify_instances"])
        yield warn(said, limit="inotify_instances", setting=setting, raise_to=8192, max=instances)
    watches, setting = inotify["watches"], "fs.inotify.max_user_watches"
    if watches is not None and watches < policy["inotify_watches"]:
        said = "%s is %d; a node with many pods needs at least %d" % (setting, watches, policy["inotify_watches"])
        yield warn(said, limit="inotify_watches", setting=setting, raise_to=524288, max=watches)


def _grows(window):
    for name, words in GROWS.items():
        total, grown = (window or {}).get("network", {}).get(name, (0, 0))
        if grown > 0:
            remedy = by_hand(
                "relieve the CPUs first, then see whether it still grows: nstat -az TcpExtListenOverflows TcpExtListenDrops; cat /proc/net/softnet_stat"
            )
            yield warn("%d %s within %.2f s (%d since the boot)" % (grown, words, window["seconds"], total), remedy, limit=name, grown=grown, total=total)


# -- words -------------------------------------------------------------------------------------------------------------


def _process(one, cpus=True):
    return "%s (pid %d%s)" % (_clean(one["name"]), one["pid"], ", %.1f CPUs" % one["cpus"] if cpus else "")


def _clean(text):
    """Names come from the node: a message stays one line, whatever they hold."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _cpus(cpus):
    return "1 CPU" if cpus == 1 else "%d CPUs" % cpus


def _ago(seconds):
    return "%.0f days" % (seconds / DAY) if seconds >= 2 * DAY else "%.0f h" % (seconds / 3600) if seconds >= 7200 else "%.0f min" % (seconds / 60)


def _middle(values):
    known = [value for value in values or () if value is not None]
    return median(known) if known else None


def _percent(share):
    return None if share is None else round(100 * share, 1)


def _rounded(value):
    return None if value is None else round(value, 2)
