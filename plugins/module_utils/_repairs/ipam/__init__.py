# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Addresses of an earlier pod network, moved out of the way of calico-node's upgrade-ipam, and back."""

from __future__ import annotations

import contextlib
import os
import re
from collections import namedtuple

from ..._changes import Paths, Unchangeable
from ..._journal import DONE, UNDONE, Busy, Journal
from ..._node import Node
from ..._probes import links
from .. import BOOT_ID, Refused, under_way

__all__ = ["absent", "earlier", "lost"]

REPAIR = "ipam"
NETWORK = "k8s-pod-network"
PATH = "/var/lib/cni/networks/" + NETWORK
AWAY = "/var/lib/cni/%s.left-over" % NETWORK
HELD_S = 10.0  # a migration that fails again and again has the lock for a moment each time
LOOKS_S = 3.0  # between two looks: a migration that gets on takes an address away within that time
OWNER = re.compile(r"[0-9a-f]{32,64}$")  # a container's id, the first line of each file

Moved = namedtuple("Moved", "conflict diff bring")


def absent(check=False, root="/", deadline=5.0):
    """Move the directory away, unless any of its addresses may still be in use."""
    node, paths = Node(root, deadline), Paths(root)
    journal = Journal(paths, (node.read(BOOT_ID) or "").strip())
    answer = {"changed": False, "path": PATH, "moved_to": None, "entries": 0, "diff": [], "journal": None, "earlier": earlier(root)}
    if paths.state(PATH).kind == "absent":
        return answer
    facts = node.look("links", lambda node: node.facts({name: links.FACTS[name] for name in ("cni", "ipam")}))
    kept = next((one for one in facts["ipam"] or [] if one["network"] == NETWORK), None)
    away = _free(paths)
    for why in _refusals(node, paths, facts, kept, away):
        raise Refused(why)
    answer.update(changed=True, moved_to=away, entries=kept["entries"], diff=[_diff(PATH, away)])
    if check:
        return answer
    with journal.alone(), _nobody_migrates(node, paths):
        if node.list(PATH) != _names(node, LOOKS_S):
            raise Refused("a migration is at work on %s and gets on: leave it its time" % PATH)
        entry = journal.begin(REPAIR, [], node.clock())
        entry.note(moved={"from": PATH, "to": away})
        try:
            _rename(paths, PATH, away)
        except Unchangeable:
            entry.note(state=UNDONE)
            raise
        with under_way():
            entry.note(state=DONE)
    return {**answer, "journal": entry.name}


def earlier(root="/"):
    """What earlier runs have moved away and nobody has brought back, by its entries in the journal."""
    return [entry.name for entry in Journal(Paths(root)).standing(REPAIR)]


def _names(node, after):
    node.sleep(after)
    return node.list(PATH)


def _free(paths):
    names = [AWAY, *("%s-%d" % (AWAY, number) for number in range(2, 100))]
    return next((one for one in names if paths.state(one).kind == "absent"), None)


def _refusals(node, paths, facts, kept, away):
    """Each reason, the most telling first."""
    if paths.state(PATH).kind != "directory" or kept is None:
        yield "%s is no directory" % PATH
    seen = next((one for one in node.problems if one["fact"].startswith("links.")), None)
    if seen or facts["cni"] is None or facts["cni"].get("unread"):
        yield "cannot tell whether a CNI configuration uses %s: %s" % (PATH, "%(what)s: %(why)s" % seen if seen else "it could not be read")
    for directory in facts["cni"]["directories"]:
        for conf in directory["files"]:
            if conf.get("name") == NETWORK and "host-local" in conf.get("ipam", []):
                yield "%s/%s keeps its addresses there: it is the node's own network" % (directory["path"], conf["file"])
    if kept["routed"]:
        yield "%d of its addresses still have a route, and so a pod: drain the node first (kubectl drain --ignore-daemonsets)" % kept["routed"]
    alive = _alive(node)
    used = [name for name in node.list(PATH) if _owner(node, name) in alive]
    if used:
        yield "the containers of %s still run: drain the node first (kubectl drain --ignore-daemonsets)" % ", ".join(used[:3])
    if away is None:
        yield "there are too many %s* already: remove those that nobody needs" % AWAY
    for path in (PATH, away):
        if paths.why_not(path):
            yield paths.why_not(path)


def _owner(node, name):
    lines = (node.read("%s/%s" % (PATH, name), 256) or "").splitlines()
    return lines[0].strip() if lines and OWNER.match(lines[0].strip()) else None


def _alive(node):
    """The ids of all containers that have a process."""
    found = set()
    for name in node.list("/proc"):
        if name.isdigit():
            found.update(re.findall("[0-9a-f]{32,64}", node.read("/proc/%s/cgroup" % name, 4096) or ""))
    return found


@contextlib.contextmanager
def _nobody_migrates(node, paths):
    """host-local's own lock, which upgrade-ipam holds while it migrates."""
    try:
        handle = os.open(paths.at(PATH + "/lock"), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # it has never been used
        yield
        return
    try:
        until = node.stopwatch() + HELD_S
        while not _locked(handle):
            if node.stopwatch() >= until:
                raise Busy("somebody holds the lock of %s, as a migration does that is at work: leave it its time" % PATH)
            node.sleep(0.1)
        yield
    finally:
        os.close(handle)


def _locked(handle):
    import fcntl  # noqa: PLC0415 - not every Python has it

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _rename(paths, old, new):
    """At one stroke: whoever looks sees all of it or nothing."""
    try:
        os.rename(paths.at(old), paths.at(new))
    except OSError as error:
        raise Unchangeable("%s cannot be moved to %s: %s" % (old, new, error.strerror)) from None


def _diff(old, new):
    return {"prepared": "--- before: %s\n+++ after: %s\n-(a directory)\n+(the same directory)\n" % (old, new)}


# -- and back --------------------------------------------------------------------------------------------------------------


def lost(node, said):
    """What an entry of the journal has moved away, and how it comes back."""
    moved = said.get("moved")
    if not moved:
        return []
    paths = Paths(node.root or "/")
    here, there = moved["from"], moved["to"]
    if paths.state(there).kind == "absent" and paths.state(here).kind == "directory":
        return []  # it was never moved, or is back already
    conflict = None
    if paths.state(there).kind != "directory":
        conflict = "%s, to which %s was moved, is not there any more" % (there, here)
    elif paths.state(here).kind != "absent":
        conflict = "%s has been made anew since; what was there before is in %s" % (here, there)
    return [Moved(conflict, _diff(there, here), lambda: _back(paths, there, here))]


def _back(paths, there, here):
    try:
        _rename(paths, there, here)
    except Unchangeable as why:
        return [str(why)]
    return []
