# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the kernel, the leftovers and the journal tell about a runtime."""

from __future__ import annotations

from ..._policy import threshold
from .._rule import by_hand, fail, repaired_by, rule, skip, unknown, warn
from ._words import NO_UNIT, recent, span

BLOCKED = threshold("runtime_blocked_tasks", 3, "Blocked tasks from which on a node counts as stuck, whatever they are.")
BLOCKED_LONG = threshold("runtime_blocked_s", 10.0, "Seconds for which a task must not have run, where the kernel tells, to count as stuck rather than slow.")
SHIM_AGE = threshold("runtime_shim_age_s", 300, "Seconds for which a shim may have no container: while a pod starts or ends it has none.")
DEADLINES = threshold("runtime_journal_deadlines", 5, "Lines with 'context deadline exceeded' in a runtime's journal, from which on they are reported.")


FIND = "cat /proc/%(pid)s/stack; dmesg | tail  # find the disk or mount; a restart of the runtime cannot end such a wait, a reboot of the drained node can"
SLOW = by_hand(
    "look again in a minute: what is still there then is stuck. Which disk is slow: load.disk, or on %(node)s: iostat -x 1 3; cat /proc/%(pid)s/stack"
)
OURS = ("containerd", "dockerd", "docker", "crio", "conmon", "runc", "kubelet", "k3s", "rke2")


@rule(
    "runtime.blocked_tasks",
    "Tasks wait for the kernel and do not get on",
    needs="runtime.processes.blocked",
    remedy=by_hand(FIND, disruptive=True, reboot=True),
)
def blocked_tasks(blocked, policy):
    """A task in state D cannot be killed. When it belongs to the runtime, containers neither start nor stop, and every tool that asks about them hangs.

    A disk that is only slow lets its waiters run again after some seconds, so that those are a warning where the kernel tells since when they wait.
    """
    if not blocked["count"]:
        return None
    ours = [task for task in blocked["tasks"] if task["name"].startswith(OURS)]
    shown = sorted(ours or blocked["tasks"], key=lambda task: -task["for_s"])
    first = shown[0]
    names = ", ".join("%s (%d%s)" % (task["name"], task["pid"], ", in " + task["waits_in"] if task["waits_in"] else "") for task in shown[:4])
    message = "%d task%s did not run once in %s, waiting for the kernel: %s" % (blocked["count"], "s"[: blocked["count"] != 1], _lasting(first["for_s"]), names)
    slow = first["for_s"] < policy[BLOCKED_LONG] and not first["at_least"]
    stuck = (ours or blocked["count"] >= policy[BLOCKED]) and not slow
    verdict, remedy = (fail, repaired_by("repair_overload", FIND, disruptive=True, reboot=True)) if stuck else (warn, SLOW if slow else None)
    return verdict(message, remedy, count=blocked["count"], **{name: first[name] for name in ("pid", "name", "waits_in", "for_s")})


def _lasting(seconds):
    return span(seconds) if seconds >= 60 else "%.1f s" % seconds


@rule(
    "runtime.leaked_shims",
    "Shims run for containers that are gone",
    severity="warning",
    needs="runtime.processes.shims",
    remedy=repaired_by(
        "repair_overload",
        "kubectl drain %(node)s --ignore-daemonsets  # then reboot it: ending shims by hand may leave mounts behind",
        disruptive=True,
        reboot=True,
    ),
)
def leaked_shims(shims, policy):
    """Each holds memory, inotify instances and perhaps a container that nobody manages any more: a port or a volume stays taken."""
    old = [one for one in shims["without_container"] if one["age_s"] >= policy[SHIM_AGE]]
    if old:
        count = max(len(old), shims["without"] - (len(shims["without_container"]) - len(old)))
        shown = ", ".join("%.13s (%s, pid %d, %s old)" % (one["id"], one["namespace"], one["pid"], span(one["age_s"])) for one in old[:3])
        return warn(
            "%d of %d shims belong to no container: %s" % (count, shims["count"], shown), count=count, shims=shims["count"], id=old[0]["id"], pid=old[0]["pid"]
        )
    if not shims["count"]:
        return skip("no shim runs")
    return unknown("their runtime could not be asked what it runs") if shims["unasked"] else None


# what it means, what to do
COMPLAINTS = {
    "inotify": ("inotify instances or watches have run out", "sysctl -w fs.inotify.max_user_instances=8192, and write it to /etc/sysctl.d"),
    "disk_full": ("a file system or its inodes are full", "free space before any restart, or the runtime may not come up again: df -h; df -i"),
    "database": ("containerd's database is corrupt, as after a power failure", "stop containerd, move meta.db away, start it, pull the images again"),
    "config": ("the configuration is refused", "correct the file that the line names; journalctl --unit=containerd"),
    "name_reserved": ("an earlier create of the same pod still hangs", "find what it waits for (runtime.blocked_tasks), then restart the runtime"),
    "sandbox_image": ("the pause image cannot be had", "set the sandbox image to one that this node can pull, or load it"),
    "systemd_silent": ("systemd does not answer on D-Bus", "start fewer pods at once; where PID 1 is stuck, drain and reboot"),
    "address_pool": ("leftover docker networks have used up all address pools", "docker network prune"),
    "files": ("the runtime may open too few files", "systemctl show -p LimitNOFILE containerd, and raise it in a drop-in"),
    "pids": ("processes or threads have run out", "find the process with the most threads; sysctl kernel.pid_max"),
    "oom": ("the kernel killed a part of the runtime for want of memory", "see load.memory; restart docker after containerd was killed"),
    "deadline": ("calls take longer than their callers wait", "look at load.disk and load.saturated first"),
}


@rule("runtime.journal", "A runtime's journal complains", severity="warning", needs="runtime.journal", uses="runtime.daemons")
def journal(complaints, daemons, policy):
    """Known complaints with what they mean. The same picture at the pods has several causes; the runtime's own words often tell which."""
    if not daemons and not complaints:
        return skip(NO_UNIT)
    found = []
    for one in complaints:
        known = COMPLAINTS.get(one["signature"])
        if known and recent(one, policy) and (one["signature"] != "deadline" or one["count"] >= policy[DEADLINES]):
            when = "" if one["age_s"] is None else ", the last time %s ago" % span(max(0, one["age_s"]))
            message = "%s (%d times%s): %s" % (known[0], one["count"], when, one["line"])
            found.append(warn(message, by_hand(known[1].replace("%", "%%")), **one))
    return found
