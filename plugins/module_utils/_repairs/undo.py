# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The journal, taken back: the newest entry first, each as if it had never been."""

from __future__ import annotations

from .._changes import Paths
from .._foreseen import Foreseen
from .._journal import UNDONE, Conflict, Journal, carry_out
from .._node import Node
from .._probes import swap
from . import BOOT_ID, Refused, bridge, daemon_reload, ipam, told, under_way
from .swap._off import at_work

# Until then the device is on, and afterwards nothing would turn it on again.
SWAPOFF = "swapoff of %s is still at work: wait until it is through, then undo"
START_S = 60  # what a service or a swap area gets to start


def take_back(repair=None, name=None, check=False, root="/"):
    """All entries that stand, or those of one repair, or one; where any of them cannot be taken back, nothing is."""
    node, view = Node(root), Foreseen(root)
    journal = Journal(Paths(root), (node.read(BOOT_ID) or "").strip())
    entries = _chosen(journal, repair, name)
    conflicts = [conflict for entry in entries for conflict in entry.take_back(view)]
    changes = view.changes()
    conflicts += [why for why in (journal.paths.why_not(one.path) for one in changes) if why]
    running = [entry.said for entry in entries if entry.said.get("boot_id") == journal.boot_id]
    lost = [one for entry in entries for one in bridge.lost(node, entry.said, entry.said in running)]
    lost += [one for entry in entries for one in ipam.lost(node, entry.said)]
    conflicts += [one.conflict for one in lost if one.conflict]
    conflicts += [SWAPOFF % device for device in at_work(node) if any(device == area["device"] for said in running for area in said.get("swaps") or [])]
    if conflicts:
        raise Conflict("; ".join(dict.fromkeys(conflicts)))
    answer = {
        "changed": bool(entries),
        "entries": [entry.name for entry in entries],
        "changes": told(changes),
        "diff": [one.diff() for one in changes] + [_on_diff(area) for said in running for area in _off(node, said)] + [one.diff for one in lost],
        "warnings": [],
    }
    if not check and entries:
        with journal.alone():
            carry_out(journal.paths, changes)
            answer["warnings"] = daemon_reload(node) if changes else []
            for said in running:
                answer["warnings"] += _as_it_ran(node, said)
            with under_way():
                for one in lost:
                    answer["warnings"] += one.bring()
                for entry in entries:
                    entry.note(state=UNDONE, undone_at=node.clock())
    return answer


def _chosen(journal, repair, name):
    if name is None:
        return journal.standing(repair)
    known = [entry.name for entry in journal.entries()]
    if name not in known:
        raise Refused("the journal has no entry %s; it has %s" % (name, ", ".join(known) or "none"))
    return [entry for entry in journal.standing(repair) if entry.name == name]


def _off(node, said):
    """The swap areas that were on before, and are not now."""
    on = {area["device"] for area in swap.active(node)}
    return [area for area in said.get("swaps") or [] if area["device"] not in on]


def _as_it_ran(node, said):
    """What ran before the repair runs again, as long as it is still the same boot: after another one it has come back by itself.

    Services come first: they make what they turn on.
    """
    warnings = []
    for name in said.get("services") or []:
        warnings += _started(node, ["systemctl", "start", name])
    for area in _off(node, said):
        priority = ["-p", str(area["priority"])] if area["priority"] >= 0 else []
        warnings += _started(node, ["swapon", *priority, area["device"]])
    return warnings


def _started(node, argv):
    answer = node.run(argv, START_S)
    return [] if answer.ok else ["%s: %s" % (" ".join(argv), answer.err.strip() or answer.state)]


def _on_diff(area):
    return {"prepared": "--- before: /proc/swaps\n+++ after: /proc/swaps\n+%(device)s\n" % area}
