# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Tasks that the kernel keeps waiting, and shims that no container belongs to: one pass over /proc."""

from __future__ import annotations

import os
import re

from ..._grpc import fields
from ..._grpc import text as text_of
from ._answers import CRI

LOOKS = (0.25, 0.75)  # a task counts as blocked when it has not run once from the first look to the last
KERNEL_THREAD = 0x00200000
DAEMONS = (b"containerd", b"dockerd", b"crio", b"k3s-server", b"k3s-agent", b"rke2", b"kubelet", b"kubelite", b"runc", b"cri-dockerd")
SHOWN = 10
TICKS = os.sysconf("SC_CLK_TCK")
LAST_RUN = re.compile(rb"se\.exec_start\s*:\s*([0-9]+\.[0-9]+)")  # milliseconds


def processes(node):
    suspects, shims = {}, []
    if os.geteuid() and "hidepid=" in (node.read("/proc/mounts") or "").replace("hidepid=0", "").replace("hidepid=off", ""):
        node.problem("/proc", "shows each user only their own processes", "denied")
    for pid, text in node.statuses()[1].items():
        one = status(text)
        if one is None:
            continue
        name, state, flags, _start = one
        if name == b"containerd-shim":
            shims.append((pid, one))
        if state == b"D" and not flags & KERNEL_THREAD:
            suspects["/proc/" + pid] = one
        elif name in DAEMONS:
            suspects.update(threads(node, pid))
    return {"blocked": node.look("blocked", lambda node: blocked(node, suspects)), "shims": node.look("shims", lambda node: orphans(node, shims))}


def status(said):
    """(name, state, flags, start) of /proc/PID/stat: the name may hold anything, also brackets and blanks."""
    head, _bracket, tail = (said or b"").rpartition(b")")
    words = tail.split(None, 20)
    if len(words) < 20 or not (words[6].isdigit() and words[19].isdigit()):
        return None
    return head.partition(b"(")[2], words[0], int(words[6]), int(words[19])


def threads(node, pid):
    """A daemon's threads that wait: its first thread may idle while another is stuck."""
    paths = ["/proc/%s/task/%s" % (pid, thread) for thread in node.list("/proc/%s/task" % pid)[:500]]
    read = ((path, status(node.glance(path + "/stat", 1024))) for path in paths)
    return {path: one for path, one in read if one and one[1] == b"D"}


def blocked(node, suspects):
    """Those that have not run between the looks: a busy disk lets its waiters run now and then, a dead one does not."""
    switches = {path: switched(node, path) for path in suspects}
    waited = 0.0
    for nap in LOOKS:
        if not suspects:
            break
        node.sleep(nap)
        waited += nap
        suspects = {path: one for path, one in suspects.items() if status(node.glance(path + "/stat", 1024)) == one and switched(node, path) == switches[path]}
    suspects = {path: one for path, one in suspects.items() if not forks(node, path, one[0])}
    found = [waiting(node, path, one, waited) for path, one in suspects.items()]
    # A frozen container looks the same on cgroup v1, and is meant to.
    found = [one for one in found if "refrigerator" not in one["waits_in"] and "freeze" not in one["waits_in"]]
    return {"count": len(found), "tasks": found[:SHOWN]}


def forks(node, path, name):
    """vfork, by which Go's daemons start programs, waits in the same state until the child runs one: while that is in want of a processor, no disk is dead."""
    thread = path if "/task/" in path else "%s/task/%s" % (path, path.rpartition("/")[2])
    children = (status(node.glance("/proc/%s/stat" % pid, 1024)) for pid in (node.glance(thread + "/children") or b"").decode().split())
    return any(child[:2] == (name, b"R") for child in children if child)


def switched(node, path):
    said = (node.glance(path + "/status", 8192) or b"").decode("utf-8", "replace")
    return [line for line in said.splitlines() if "ctxt_switches" in line]


def waiting(node, path, one, waited):
    channel = (node.glance(path + "/wchan", 100) or b"").decode("utf-8", "replace")
    idle = not_run_for(node, path)
    return {
        "pid": int(path.rpartition("/")[2]),
        "name": one[0].decode("utf-8", "replace")[:64],
        "waits_in": "" if channel == "0" else channel,
        "for_s": waited if idle is None else max(waited, idle),
        "at_least": idle is None,
    }


def not_run_for(node, path):
    """Seconds, None where the kernel does not tell. By the scheduler's clock, which is read in our own entry, for we run."""
    last, now = (LAST_RUN.search(node.glance(one + "/sched", 4096) or b"") for one in (path, "/proc/thread-self"))
    return round(max(0.0, float(now.group(1)) - float(last.group(1))) / 1000, 1) if last and now else None


def orphans(node, shims):
    """Shims whose id their runtime does not know. Only ids are kept of a command line."""
    uptime = float((node.read("/proc/uptime") or "0").split()[0])
    known, without = {}, []
    for pid, (_name, _state, _flags, start) in shims:
        argument = arguments(node.glance("/proc/%s/cmdline" % pid, 4096))
        where = argument.get("namespace"), argument.get("address")
        if where not in known:
            known[where] = ids(node, *where)
        if known[where] is not None and argument.get("id") not in known[where]:
            without.append({"id": argument.get("id", "")[:64], "namespace": where[0], "pid": int(pid), "age_s": round(uptime - start / TICKS)})
    return {"count": len(shims), "unasked": sum(said is None for said in known.values()), "without_container": without[:SHOWN], "without": len(without)}


def arguments(line):
    """What a shim was told: its flags, however they are written. One of the first generation has its id only in its directory's name."""
    words = (line or b"").decode("utf-8", "replace").split("\0")
    found = {}
    for word, after in zip(words, [*words[1:], ""]):
        flag, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag:
            found[flag] = value if equals else after
    return {"id": found.get("workdir", "").rstrip("/").rpartition("/")[2], **found}


def ids(node, namespace, address):
    """What the runtime says it runs; None where it cannot be asked."""
    if namespace == "moby":
        answer = node.http("/run/docker.sock", "/containers/json", deadline=node.deadline / 2)
        rows = answer.json()
        return {row.get("Id") for row in rows if isinstance(row, dict)} if isinstance(rows, list) else None
    if namespace != "k8s.io" or not address:
        return None
    # A container has a shim of its own where that of its pod did not answer in time when it was started.
    answers = [node.call(address, CRI + what, deadline=node.deadline / 2) for what in ("ListPodSandbox", "ListContainers")]
    return {text_of(fields(row), 1) for answer in answers for row in fields(answer.out).get(1, [])} if all(answer.ok for answer in answers) else None
