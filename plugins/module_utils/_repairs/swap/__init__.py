# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap off, now and for good."""

from __future__ import annotations

from collections import namedtuple

from ..._changes import Paths
from ..._foreseen import Foreseen
from ..._journal import BEGUN, DONE, Journal, make
from ..._node import Node
from ..._probes import kubelet, swap
from ..._swap import RESERVE_MIB, RESERVE_PERCENT, needed, returning, shortage
from .. import BOOT_ID, Failed, Refused, daemon_reload, told, under_way
from . import _off, _sources
from ._refusals import LARGE_MIB, refusals

__all__ = ["LARGE_MIB", "Settings", "absent"]

REPAIR = "swap"
ROUNDS = 8  # one source that is stopped may wake another
STOP_S = 60  # what a service gets to end

Settings = namedtuple("Settings", "even_if_tolerated allow_disruption reserve_mib reserve_percent deadline")
Settings.__new__.__defaults__ = (False, False, RESERVE_MIB, RESERVE_PERCENT, 5.0)


def absent(settings, check=False, root="/"):
    """Bring it about as far as one look can, and answer what was done, what is under way and what is foreseen."""
    node = Node(root, settings.deadline)
    facts = {**look(node), "at_work": _off.at_work(node)}
    view, foreseen = plan(root, settings.deadline)
    changes, areas = view.changes(), facts["swap"]["active"]
    journal = Journal(Paths(root), (node.read(BOOT_ID) or "").strip())
    if areas or changes or problems(facts) or returning(foreseen["swap"]["sources"], foreseen["swap"]["boot"]):
        for why in refusals(view, facts, foreseen, changes, settings):
            raise Refused(why)
    answer = {
        "changed": bool(areas or changes or _begun(journal)),
        "changes": told(changes),
        "diff": [one.diff() for one in changes] + [_off_diff(area) for area in areas],
        "was_active": areas,
        "left": left(foreseen),
        "warnings": [],
        "journal": None,
    }
    if check or not answer["changed"]:
        return {**answer, "active": [] if check else areas, "waiting": [], "for_good": "predicted" if check else proof(journal)}
    return {**answer, **_carry_out(node, journal, changes, facts, settings)}


def look(node):
    """What the probes say about swap, and about the kubelet's opinion of it."""
    parts = {"swap": swap.FACTS, "kubelet": {name: kubelet.FACTS[name] for name in ("installed", "config")}}
    facts = {area: node.look(area, lambda node, table=table: node.facts(table)) for area, table in parts.items()}
    return {**facts, "problems": node.problems}


def plan(root, deadline):
    """(the node as it will be, what the probes say of it): the sources are stopped until the probe finds none that would return."""
    view = Foreseen(root, deadline)
    for number in range(ROUNDS):
        facts = look(view)
        before, boot = view.changes(), facts["swap"]["boot"] or {}
        coming = returning(facts["swap"]["sources"], boot)
        for source in coming:
            _sources.stop(view, source, boot)
        if (coming or problems(facts)) and (view.changes() == before or number == ROUNDS - 2):
            _sources.last_resort(view, boot)
        if view.changes() == before:
            break
        view = view.look_again()
    return _without_cloud_init(view, facts)


def _without_cloud_init(view, facts):
    """cloud-init is told where telling helps: what an instance's own data ask for is only named."""
    if not any(one["kind"] == "cloud_init" for one in facts["swap"]["suspects"] or []):
        return view, facts
    with_file = view.look_again()
    _sources.cloud_init(with_file)
    better = look(with_file)
    if len(better["swap"]["suspects"] or []) < len(facts["swap"]["suspects"]):
        return with_file, better
    return view, facts


def problems(facts):
    """What could not be seen, of what decides."""
    return [one for one in facts["problems"] if one["fact"].startswith(("swap.active", "swap.sources", "swap.boot"))]


def left(facts):
    """What nobody can foresee, and an administrator has to look at."""
    return [{"kind": one["kind"], "by": one["by"], "line": one["line"]} for one in facts["swap"]["suspects"] or []]


def proof(journal):
    """Whether a boot after the repair has already shown that swap stays off."""
    boots = [entry.said.get("boot_id") for entry in journal.standing(REPAIR) if entry.said["state"] == DONE]
    return "proven" if any(boot and boot != journal.boot_id for boot in boots) else "predicted"


def _off_diff(area):
    return {"prepared": "--- before: /proc/swaps\n+++ after: /proc/swaps\n-%(device)s (%(kind)s, %(size_kib)d KiB, in use: %(used_kib)d KiB)\n" % area}


# -- the real thing ------------------------------------------------------------------------------------------------------


def _carry_out(node, journal, changes, facts, settings):
    warnings = []
    with journal.alone():
        entry = _entry(node, journal, changes, facts["swap"])
        if changes:
            make(journal, entry, changes)
        config = facts["kubelet"]["config"]
        with under_way():
            on = _off.turn_off(node, lambda node, area: _allow(node, area, config, settings))
            if not on:
                # systemd is told afterwards: of a unit that is masked it no longer knows how it is stopped
                warnings += _end_services(node, entry) + daemon_reload(node)
                on = swap.active(node)
            if not on:
                entry.note(state=DONE)
    again = look(Node(node.root or "/", settings.deadline))
    returns = returning(again["swap"]["sources"], again["swap"]["boot"])
    if returns:
        raise Failed("%(what)s would still be activated by %(by)s at the next boot, against what was foreseen" % returns[0])
    waiting = [{"device": area["device"], "used_kib": area["used_kib"]} for area in on]
    return {"active": on, "waiting": waiting, "warnings": warnings, "for_good": "predicted", "journal": entry.name}


def _entry(node, journal, changes, found):
    """The entry of this repair: a look that only waits for swapoff goes on with the one that began it."""
    begun = _begun(journal)
    if begun and not changes:
        return begun
    entry = journal.begin(REPAIR, changes, node.clock())
    swaps = [{"device": area["device"], "priority": area["priority"]} for area in found["active"]]
    entry.note(swaps=swaps, ends=_services(found), services=[])
    return entry


def _begun(journal):
    """The entry of a repair that has begun in this boot and has not come to its end, as where swapoff has ended between two looks."""
    last = next(iter(journal.standing(REPAIR)), None)
    return last if last and last.said["state"] == BEGUN and last.said.get("boot_id") == journal.boot_id else None


def _services(found):
    """Those that make swap at a boot."""
    units = [one.get("unit") or "" for one in returning(found["sources"], found["boot"])]
    return [unit for unit in units if unit.endswith(".service") and found["boot"]["running"]]


def _allow(node, area, config, settings):
    """Memory may have become scarce while the device before was turned off."""
    need = needed([area], swap.memory(node), config, settings.reserve_mib, settings.reserve_percent)
    if need is None or shortage(need):
        raise Failed("%s is left on: %s" % (area["device"], shortage(need) if need else "the node does not say how much memory is available"))


def _end_services(node, entry):
    """Services that made swap and still run could make it again; those that only ran once give back the memory of their zram."""
    warnings = []
    for name in entry.said.get("ends", []):
        if node.run(["systemctl", "is-active", "--quiet", name]).ok:
            entry.note(services=entry.said.get("services", []) + [name])
            answer = node.run(["systemctl", "stop", name], STOP_S)
            if not answer.ok:
                warnings.append("%s did not stop (%s)" % (name, answer.err.strip() or answer.state))
    return warnings
