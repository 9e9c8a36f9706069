# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report for a terminal of 100 columns: a matrix of nodes and areas, what was found by rule, what could not be told."""

from __future__ import annotations

import io

from .._rules._rule import CLUSTER
from . import groups
from .words import clip, counted, fold, natural, pad, safe, width, wrap, wrap_command

try:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
except ImportError:
    Table = None

COLUMNS = 100
INDENT = " " * 9
MARKS = {"fail": "FAIL", "warn": "warn", "unknown": "?", "pass": "ok", "skip": "-", None: ""}
WELL = ("pass", "skip")
EACH = 25  # up to so many nodes, each has its row
SHORTEST = 20  # columns at least for a node's name
AREAS = 11  # more of them leave no room
ROWS = 40  # and never more rows than these
LINES = 2  # of a message
SAYINGS, REMEDIES, REASONS, NAMES = 3, 3, 8, 4
ANSI = {"fail": "1;31", "warn": "33", "unknown": "36", "pass": "32", "skip": "2", None: ""}
RICH = {"fail": "bold red", "warn": "yellow", "unknown": "cyan", "pass": "green", "skip": "dim", None: ""}


def text(report, colour=False, fancy=True):
    """Everything that an operator has to know now. ``fancy`` draws the matrix with rich where that is installed."""
    lines = [*headline(report).split("; "), ""]
    lines += (_drawn if fancy and Table else _plain)(*_matrix(report), colour)
    for rule_id, findings in groups.by_rule(report["findings"]):
        lines += ["", *_rule(rule_id, findings, colour)]
    lines += _unknowns(report["findings"], colour)
    return "\n".join(lines)


def headline(report):
    worst = [node["worst"] for name, node in report["nodes"].items() if name != CLUSTER]
    said = (("fail", "failed"), ("warn", "with warnings"), ("unknown", "not wholly read"))
    parts = ["%d %s" % (worst.count(status), words) for status, words in said if status in worst]
    parts.append("%d well" % sum(status in WELL for status in worst))
    return "%s: %s; %s" % (
        counted(len(worst), "node"),
        ", ".join(parts),
        ", ".join("%d %s" % (report["summary"][status], status) for status in ("fail", "warn", "unknown", "pass", "skip")),
    )


def _matrix(report):
    """The areas, the rows that are worth showing as (name, statuses), and a line about the others."""
    nodes = report["nodes"]
    shown = list(nodes) if len(nodes) <= EACH else sorted((name for name in nodes if nodes[name]["worst"] not in WELL), key=lambda name: _badness(nodes[name]))
    rest = ""
    if len(shown) > ROWS:
        rest = "%s more with findings, see the other reports" % counted(len(shown) - ROWS, "node")
        shown = shown[:ROWS]
    well = sum(node["worst"] in WELL for name, node in nodes.items() if name != CLUSTER)
    if len(nodes) > EACH and well:
        rest = " and ".join(part for part in (rest, "%s with nothing found" % counted(well, "node")) if part)
    areas = list(next(iter(nodes.values()))["areas"])[:AREAS] if nodes else []
    return areas, [(name, [nodes[name]["areas"][area] for area in areas]) for name in shown], rest


def _badness(node):
    return tuple(-node["counts"][status] for status in ("fail", "warn", "unknown"))


def _drawn(areas, rows, rest, colour):
    table = Table("name", box=box.ROUNDED, header_style="bold")
    heads, spare = _heads(areas, 3)
    for head in heads:
        table.add_column(head, justify="center")
    for name, statuses in rows:
        table.add_row(Text(clip(safe(name), spare - 4)), *(Text(MARKS[status], RICH[status]) for status in statuses))
    out = io.StringIO()
    Console(
        file=out,
        width=COLUMNS,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    ).print(table)
    return [line.rstrip() for line in [*out.getvalue().splitlines(), rest] if line]


def _heads(areas, between):
    """The areas' names, cut so that they leave room for the nodes' names, and how much that is."""
    room = (COLUMNS - SHORTEST) // max(1, len(areas)) - between
    crowded = sum(max(len(area), 4) + between for area in areas) > COLUMNS - SHORTEST
    heads = [clip(area, max(4, room)) if crowded else area for area in areas]
    return heads, COLUMNS - sum(max(width(head), 4) + between for head in heads)


def _plain(areas, rows, rest, colour):
    heads, spare = _heads(areas, 2)
    cells = [max(width(head), 4) + 2 for head in heads]
    names = [clip(safe(name), spare - 2) for name, _statuses in rows]
    first = max([4, *(width(name) for name in names)]) + 2
    lines = [pad("name", first) + "".join(pad(head, room) for head, room in zip(heads, cells))]
    for name, (_name, statuses) in zip(names, rows):
        marks = (paint(MARKS[status], status, colour) + " " * (room - len(MARKS[status])) for status, room in zip(statuses, cells))
        lines.append(pad(name, first) + "".join(marks))
    return [line.rstrip() for line in [*lines, rest] if line]


def _rule(rule_id, findings, colour):
    nodes = _sorted(findings)
    status = findings[0]["status"]
    severity = findings[0]["severity"]
    importance = " (%s)" % severity if status == "fail" and severity != "error" else ""
    named = "  [%s]" % clip(safe(rule_id), 50)
    title = clip(safe(findings[0]["title"]), COLUMNS - len(INDENT) - width(importance + named)) + importance + named
    lines = [paint(pad(MARKS[status], len(INDENT)), status, colour) + title]
    sayings = groups.alike(findings, lambda one: one["message"])
    if len(nodes) > 1:
        lines.append(INDENT + "on %d nodes: %s" % (len(nodes), fold(nodes, COLUMNS - len(INDENT) - len("on %d nodes: " % len(nodes)))))
    for (message,), them in sayings[:SAYINGS]:
        who = fold(_sorted(them), 40) + ": " if len(sayings) > 1 or len(nodes) == 1 else ""
        lines += [INDENT + line for line in wrap(who + safe(message), COLUMNS - len(INDENT), LINES)]
    lines += _more(len(sayings) - SAYINGS, "message")
    remedies = groups.commands(findings)
    for command, cautions, them in remedies[:REMEDIES]:
        where = ["on " + fold(sorted(them, key=natural), 40)] if len(remedies) > 1 and len(nodes) > 1 else []
        note = ", ".join([*where, *cautions])
        lines.append(INDENT + ("Repair (%s):" % note if note else "Repair:"))
        lines += [INDENT + "  " + line for line in wrap_command(command, COLUMNS - len(INDENT) - 2)]
    return lines + _more(len(remedies) - REMEDIES, "repair")


def _sorted(findings):
    return sorted(groups.nodes_of(findings), key=natural)


def _more(number, what):
    return [INDENT + "and %s more, see the other reports" % counted(number, what)] if number > 0 else []


def _unknowns(findings, colour):
    reasons = groups.unknowns(findings)
    if not reasons:
        return []
    lines = ["", paint(pad("?", len(INDENT)), "unknown", colour) + "Could not be told:"]
    for reason, ids, nodes in reasons[:REASONS]:
        who = "%s on %s: " % (ids[0] if len(ids) == 1 else counted(len(ids), "rule"), fold(sorted(nodes, key=natural), 40))
        which = "" if len(ids) == 1 else " (%s%s)" % (", ".join(ids[:NAMES]), ", \u2026" if len(ids) > NAMES else "")
        lines += [INDENT + line for line in wrap(who + safe(reason) + which, COLUMNS - len(INDENT), LINES)]
    return lines + _more(len(reasons) - REASONS, "reason")


def paint(words, status, colour):
    return "\033[%sm%s\033[0m" % (ANSI[status], words) if colour and ANSI[status] else words
