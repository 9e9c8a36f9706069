# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A container runtime that does not answer is brought back, with its containers as they were.

One call goes as far as it can within a few seconds; what it waits for, and what it has to know for that, is in the journal's entry.
So a call that is cut off is gone on with by the next, from whichever controller.
"""

from __future__ import annotations

import contextlib
from collections import namedtuple

from ..._changes import Paths, Unchangeable
from ..._journal import TOLD, Journal
from .. import BOOT_ID, Failed, Refused
from . import _acts, _containers, _material
from ._look import ROWS, asked, look
from ._plan import CONTINUE, RESTART, plan

__all__ = ["DrainFirst", "Settings", "restarted"]

REPAIR = "runtime"
PATIENCE_S = 8.0  # of one call; whoever waits longer calls again
EVERY_S = 0.5
STALE_S = 60.0  # an entry that nobody has touched for so long belongs to a run that has ended
CONTINUE_S = 20.0  # what a process that was stopped gets to catch up
GRACE_S = 30.0  # what comes back by itself gets for that
AGAIN = "%s goes on since a signal told it to, but that was not all (%s). "

Settings = namedtuple("Settings", "drained settle deadline")
Settings.__new__.__defaults__ = (False, 30.0, 5.0)


class DrainFirst(Refused):
    """Containers would end with the restart."""

    def __init__(self, reasons):
        super().__init__("%s. Drain the node first" % "; ".join(reasons))
        self.reasons = reasons


def restarted(settings, check=False, root="/"):
    """Bring the runtimes back as far as one call can, and answer what was done and what is waited for."""
    node = asked(root, settings.deadline)
    journal = Journal(Paths(root), (node.read(BOOT_ID) or "").strip())
    begun = next((one for one in journal.standing(REPAIR) if one.said.get("boot_id") == journal.boot_id and "touched" in one.said), None)
    if begun and not check and node.stopwatch() - begun.said["touched"] <= STALE_S:
        with journal.alone():
            return {**_answer([], [], begun.said["kills_pods"]), **_advance(root, begun, settings)}
    facts = look(node)
    wanted = plan(facts)
    steps = [_noted(step, wanted.ill) for step in wanted.steps]
    if wanted.refusals:
        raise Refused("; ".join(wanted.refusals))
    if wanted.kills_pods and not settings.drained:
        raise DrainFirst(wanted.kills_pods)
    answer = _answer(wanted.ill, steps, wanted.kills_pods)
    if check or not (steps or begun):
        return {**answer, "changed": bool(steps), "waiting": []}
    with journal.alone():
        entry = _entry(node, journal, begun, facts, steps, wanted.kills_pods)
        return {**answer, **_advance(root, entry, settings)}


def _answer(found, steps, reasons):
    """What there is to say before anything was done."""
    return {
        "changed": False,
        "ill": [{"runtime": one.runtime, "unit": one.unit, "why": one.why} for one in found],
        "steps": [_told(step) for step in steps],
        "kills_pods": reasons,
        "containers": None,
        "silent_s": None,
        "journal": None,
        "warnings": [],
        "diff": [_diff(step) for step in steps],
    }


def _noted(step, found):
    """A step as the entry holds it."""
    socket = next((one.socket for one in found if one.runtime == step.runtime), ROWS.get(step.runtime, {}).get("socket"))
    return {**step._asdict(), "socket": socket}


def _told(step):
    return {key: step.get(key) for key in ("act", "unit", "why", "unless_well", "done", "seconds", "killed")}


def _diff(step):
    if_needed = ", unless it comes back by itself" if step["unless_well"] else ""
    return {"prepared": "--- before: %(unit)s\n+++ after: %(unit)s\n-%(why)s\n" % step + "+%s%s\n" % (step["act"], if_needed)}


def _entry(node, journal, begun, facts, steps, reasons):
    """The entry of this repair. One that was cut off is finished, unless there is something to be done anew."""
    if begun and not steps:
        begun.note(touched=node.stopwatch(), at_step=len(begun.said["steps"]))
        return begun
    for earlier in journal.standing(REPAIR):
        earlier.note(state=TOLD, ended="cut off; it was begun anew")
    entry = journal.begin(REPAIR, [], node.clock())
    now, before = node.stopwatch(), _containers.snapshot(node)
    kubelet = (facts["kubelet"].get("installed") or {}).get("unit") if (facts["kubelet"].get("healthz") or {}).get("code") == 200 else None
    for step in steps:
        unit = facts["here"]["units"].get(step["unit"]) or {"daemons": {}, "main": 0}
        if step["act"] == RESTART and unit["main"] in unit["daemons"]:
            step["kept"] = _material.keep(node, entry, unit["main"], unit["daemons"][unit["main"]]["name"])
    entry.note(began=now, touched=node.stopwatch(), steps=steps, at_step=0, kills_pods=reasons, before=before, kubelet=kubelet)
    return entry


# -- step by step --------------------------------------------------------------------------------------------------------


def _advance(root, entry, settings):
    """As far as the patience of one call goes."""
    clock, did = asked(root), []
    until = clock.stopwatch() + PATIENCE_S
    try:
        while True:
            waiting = _one_look(root, entry, settings, did)
            entry.note(touched=clock.stopwatch())
            if waiting is None:
                return {"changed": bool(did), "waiting": [], **_ended(root, entry, settings)}
            if clock.stopwatch() >= until:
                return {"changed": bool(did), "waiting": [waiting], "steps": [_told(step) for step in entry.said["steps"]], "journal": entry.name}
            clock.sleep(EVERY_S)
    except Unchangeable as why:
        raise Failed("what is done cannot be noted any more: %s" % why) from None
    except Failed as why:
        with contextlib.suppress(Unchangeable):
            entry.note(state=TOLD, ended=str(why))
        raise


def _one_look(root, entry, settings, did):
    """Do what is next, where it is time for that; answers what is waited for, None at the end."""
    node, said = asked(root, settings.deadline), entry.said
    now = node.stopwatch()
    if said["at_step"] >= len(said["steps"]):
        only_went_on = said["steps"][-1]["act"] == CONTINUE and not said.get("looked_anew")
        return _look_anew(root, entry, settings) if only_went_on else _settled(node, entry, settings, now)
    step = said["steps"][said["at_step"]]
    lacks = _acts.lacking(node, step)
    if lacks is None and ("since" in step or step["unless_well"]):
        return _next(entry, step, now)
    if "since" not in step:
        grace = step.setdefault("waits_since", now)
        if step["unless_well"] and now - grace < GRACE_S:
            return lacks + ", which may come by itself"
        step["since"] = now
        entry.note()  # before: a run that is cut off here has given the order, or is about to
        _acts.do(node, step)
        did.append(step["unit"])
        step["done"] = True
        return lacks or "%s: an answer" % step["unit"]
    if step["act"] == CONTINUE and now - step["since"] > CONTINUE_S:
        return _look_anew(root, entry, settings, lacks)
    if _acts.insist(node, step, now - step["since"]):
        step["killed"] = True
        did.append(step["unit"])
    if node.unit(step["unit"]).get("ActiveState") == "failed":
        raise Failed("%s did not come up (%s): journalctl -u %s -n 50" % (step["unit"], node.unit(step["unit"]).get("Result"), step["unit"]))
    return lacks


def _next(entry, step, now):
    if "since" in step:
        step["seconds"] = round(now - step["since"], 1)
    if step["runtime"] != "kubelet":
        entry.said["silent_s"] = round(now - entry.said["began"], 1)
    entry.note(at_step=entry.said["at_step"] + 1)
    return "what follows %s" % step["unit"]


def _look_anew(root, entry, settings, lacks=None):
    """What a signal had stopped goes on. Whether that was all is looked at anew, and what is still ill, or was behind it, is restarted."""
    wanted, said = plan(look(asked(root, settings.deadline))), entry.said
    steps = [one for one in wanted.steps if one.act != CONTINUE]
    against = wanted.refusals + (wanted.kills_pods if not settings.drained else [])
    if (wanted.ill and against) or (lacks and not steps):
        still = lacks or "; ".join(one.why for one in wanted.ill)
        hint = "; drain the node first" if wanted.kills_pods and not settings.drained else ""
        raise Failed(AGAIN % (said["steps"][-1]["unit"], still) + ("; ".join(against) or "Run this again") + hint)
    noted = [_noted(one, wanted.ill) for one in steps]
    entry.note(steps=[*said["steps"], *noted], at_step=len(said["steps"]), kills_pods=wanted.kills_pods, looked_anew=True)
    return "what else is ill"


def _settled(node, entry, settings, now):
    """All is done: it has to stay well for a while, with no restart."""
    said = entry.said
    done = [step for step in said["steps"] if step.get("done")]
    lacks = next((one for one in (_acts.lacking(node, step) for step in said["steps"]) if one), None)
    if lacks is None and said.get("kubelet"):
        lacks = _acts.kubelet_lacks(node, said["kubelet"])
    marks = _acts.marks(node, done)
    if lacks or marks != said.get("marks"):
        entry.note(marks=None if lacks else marks, settled_since=now)
        return lacks or "%g s without another restart" % settings.settle
    left = settings.settle - (now - said["settled_since"])
    return "%.0f s without another restart" % left if left > 0 else None


def _ended(root, entry, settings):
    """What has become of the containers."""
    node, said = asked(root, settings.deadline), entry.said
    sockets = dict.fromkeys(step["socket"] for step in said["steps"] if step["socket"])
    names = {container: name for socket in sockets for container, name in _containers.names(node, socket).items()}
    containers = _containers.compared(said["before"]["containers"], _containers.snapshot(node)["containers"], names)
    entry.note(state=TOLD, containers=containers)
    steps = [_told(step) for step in said["steps"]]
    told = {"silent_s": said.get("silent_s"), "journal": entry.name, "kills_pods": said["kills_pods"], "warnings": _missing(containers)}
    return {"steps": steps, "containers": containers, **told}


def _missing(containers):
    """In words, what ran before and does not any more."""
    if not containers["gone_count"]:
        return []
    shown = ", ".join(one["name"] or one["id"][:13] for one in containers["gone"][:8])
    return ["%(gone_count)d of %(before)d containers are gone" % containers + ": " + shown]
