# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A diagnosis for a terminal of 100 columns: each cause with what it explains, what would disprove it, and its repair."""

from __future__ import annotations

from . import groups
from .terminal import COLUMNS, INDENT, MARKS, paint
from .words import clip, counted, fold, natural, pad, safe, width, wrap, wrap_command

CAUSES, EFFECTS, REASONS = 10, 6, 5
LINES = 3  # of a message


def text(answers, symptom=None, untold=(), colour=False):
    """``answers`` and ``untold`` are those of the diagnosis, ``symptom`` what was asked for."""
    lines = [_headline(answers, symptom)]
    for number, answer in enumerate(answers[:CAUSES], 1):
        lines += ["", *_answer(number, answer, colour)]
    if len(answers) > CAUSES:
        lines += ["", INDENT + "and %s more" % counted(len(answers) - CAUSES, "cause")]
    return "\n".join(lines + _untold(untold, colour))


def asked(symptom):
    """What was asked for, in words."""
    if not symptom:
        return "all nodes"
    pod, node = symptom.get("pod"), symptom.get("node")
    return "pod %s%s" % (safe(pod), " on %s" % safe(node) if node else "") if pod else safe(node)


def _headline(answers, symptom):
    if not answers:
        return "%s: nothing that was read is wrong" % asked(symptom)
    return "%s: %s" % (asked(symptom), counted(len(answers), "cause") + (", that with the most evidence first" if len(answers) > 1 else ""))


def _answer(number, answer, colour):
    cause = answer["cause"]
    named = "  [%s]" % clip(safe(cause["id"]), 50)
    who = "%s: " % clip(safe(cause["node"]), 30)
    title = who + clip(safe(cause["title"]), COLUMNS - len(INDENT) - width(who + named)) + named
    lines = [paint(pad("%2d %s" % (number, MARKS[cause["status"]]), len(INDENT)), cause["status"], colour) + title]
    lines += _wrapped("", cause["message"])
    if answer["unexplained"]:
        lines += _wrapped("", "This is what is seen; what is behind it was not found.")
    lines += _effects(answer["explains"])
    lines += _wrapped("Disproved if: ", answer["disproved_by"])
    for place, repair in enumerate(answer["repair"]):
        lines += _repair("Repair" if place == 0 else "Then", repair["command"], groups.cautions(repair))
    for one in answer["for_good"]:
        lines += _wrapped("So that it does not come back (%s): " % one["id"], one["message"])
        lines += _repair("Repair", groups.command(one["remedy"], [one["node"]]), groups.cautions(one["remedy"])) if one["remedy"] else []
    return lines


def _effects(explains):
    """One line a rule, with its nodes; the words of the first."""
    lines, rules = [], groups.alike(explains, lambda one: one["id"])
    for (rule_id,), them in rules[:EFFECTS]:
        nodes = sorted(groups.nodes_of(them), key=natural)
        lines += _wrapped("Explains ", "%s on %s: %s" % (rule_id, fold(nodes, 40), them[0]["message"]), 2)
    return lines + ([INDENT + "and %s more" % counted(len(rules) - EFFECTS, "finding")] if len(rules) > EFFECTS else [])


def _repair(word, command, cautions):
    note = ", ".join(cautions)
    head = INDENT + ("%s (%s):" % (word, note) if note else "%s:" % word)
    return [head, *(INDENT + "  " + line for line in wrap_command(command, COLUMNS - len(INDENT) - 2))]


def _wrapped(label, message, most=LINES):
    return [INDENT + line for line in wrap(label + safe(message), COLUMNS - len(INDENT), most)]


def _untold(findings, colour):
    """What was not looked at and might explain the rest."""
    if not findings:
        return []
    lines = ["", paint(pad("?", len(INDENT)), "unknown", colour) + "Could not be looked at, and might explain it:"]
    for one in findings[:REASONS]:
        lines += _wrapped("%s on %s: " % (one["id"], safe(one["node"])), one["message"].removeprefix("cannot tell: "), 2)
    return lines + ([INDENT + "and %s more" % counted(len(findings) - REASONS, "rule")] if len(findings) > REASONS else [])
