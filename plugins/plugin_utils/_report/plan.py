# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A plan of repairs for a terminal of 100 columns: a table of nodes and repairs, then what is left to people."""

from __future__ import annotations

from . import groups
from .terminal import COLUMNS, INDENT, paint
from .words import clip, counted, fold, natural, pad, safe, width, wrap, wrap_command

HEADS = ("turn", "node", "repair")
NODE, REPAIR = 30, 24  # columns at most
HANDS, OUTSIDE, NODES = 12, 8, 60  # so many of them are shown
LINES = 3
WHAT = {True: "control plane", False: "", None: "perhaps control plane"}


def text(plan, colour=False):
    lines = [_headline(plan)]
    for reason in plan["stop"]:
        lines += ["", *_marked("STOP", "fail", "Nothing is to be repaired node by node: " + reason, colour)]
    lines += ["", *_table(plan["turns"], colour)] if plan["turns"] else []
    lines += _outside(plan["outside"])
    return "\n".join(lines + _by_hand(plan["by_hand"]))


def _headline(plan):
    steps = [step for turn in plan["turns"] for step in turn["steps"]]
    if not steps:
        return "Plan: nothing that a playbook repairs is wrong with these nodes"
    held = sum(bool(step["held"]) for step in steps)
    much = "%s on %s, one node after the other" % (counted(len(steps), "repair"), counted(len(plan["turns"]), "node"))
    return "Plan: " + much + ("; %d held back" % held if held else "")


def _table(turns, colour):
    rows = [_row(number, turn, step) for number, turn in enumerate(turns[:NODES], 1) for step in turn["steps"]]
    room = [max(width(head), *(width(row[0][place]) for row in rows)) + 2 for place, head in enumerate(HEADS)]
    lines = ["".join(pad(*pair) for pair in zip(HEADS, room)) + "heals"]
    for cells, heals, notes, held in rows:
        indent = " " * sum(room)
        first, *more = wrap(heals, COLUMNS - len(indent), LINES)
        lines.append("".join(pad(*pair) for pair in zip(cells, room)) + first)
        lines += [indent + line for line in more]
        lines += [indent + line for note in notes for line in wrap(note, COLUMNS - len(indent), LINES)]
        lines += [indent + paint(line, "warn", colour) for reason in held for line in wrap(reason, COLUMNS - len(indent), LINES)]
    return lines + (["and %s more" % counted(len(turns) - NODES, "node")] if len(turns) > NODES else [])


def _row(number, turn, step):
    """(cells, what it heals, remarks, why it is held back); a node is named in the first of its rows."""
    first = step is turn["steps"][0]
    cells = (str(number) if first else "", clip(safe(turn["node"]), NODE) if first else "", clip(safe(step["playbook"].rpartition(".")[2]), REPAIR))
    notes = [", ".join([*([WHAT[turn["control_plane"]]] if first and WHAT[turn["control_plane"]] else []), *groups.cautions(step)])]
    notes += ["changes all nodes of the cluster"] if step["everywhere"] else []
    return cells, ", ".join(map(safe, step["why"])), [note for note in notes if note], _held(step)


def _held(step):
    if step["held"] and step["held"].startswith("needs your consent"):
        return ["held back: needs your consent:", *step["needs"]]
    return ["held back: " + safe(step["held"])] if step["held"] else []


def _outside(entries):
    if not entries:
        return []
    lines = ["", "Not among the hosts of this run:"]
    for one in entries[:OUTSIDE]:
        lines += ["  " + line for line in wrap_command(one["command"], COLUMNS - 2)]
    return lines + _more(len(entries) - OUTSIDE, "repair")


def _by_hand(entries):
    """What says the same of several nodes is said once."""
    if not entries:
        return []
    alike = groups.alike(entries, lambda one: one["id"], lambda one: one["title"], lambda one: one["command"])
    lines = ["", "By hand:"]
    for (rule_id, title, command), them in alike[:HANDS]:
        nodes = fold(sorted(groups.nodes_of(them), key=natural), 40)
        note = ", ".join(groups.cautions(them[0]))
        words = "%s: %s [%s]%s" % (nodes, safe(title), safe(rule_id), " (%s)" % note if note else "")
        lines += ["  " + line for line in wrap(words, COLUMNS - 2, LINES)]
        lines += [INDENT + line for line in wrap_command(command or "see %s" % safe(them[0]["see"]), COLUMNS - len(INDENT))]
    return lines + _more(len(alike) - HANDS, "finding")


def _more(number, what):
    return ["  and %s more" % counted(number, what)] if number > 0 else []


def _marked(mark, status, message, colour):
    first, *more = wrap(safe(message), COLUMNS - len(INDENT), LINES)
    return [paint(pad(mark, len(INDENT)), status, colour) + first, *(INDENT + line for line in more)]
