# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report as one page that needs nothing else: readable without scripts, filtered and sorted with them.

What nodes say is hostile. It is escaped by the template, and a content security policy lets only the page's own style and
script act, by their hashes.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
from datetime import datetime, timezone

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .._rules._rule import CLUSTER
from . import groups
from .terminal import EACH, WELL, headline
from .words import MORE, NAMES, clip, fold, natural, safe

STATUSES = ("fail", "warn", "unknown", "pass", "skip")
HERE = os.path.dirname(__file__)
ROOM = 4 << 20  # bytes for the findings: a page of a thousand nodes still has to open
LONGEST = 1500  # characters of a message or of its evidence
LONGEST_COMMAND = 1 << 15  # half of one would be another command


def write(report):
    rows, anchors, left_off = _rows(report["findings"])
    style, script = _part("page.css"), _part("page.js")
    environment = Environment(autoescape=True, loader=FileSystemLoader(HERE), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    nodes = report["nodes"]
    quiet = [name for name in nodes if nodes[name]["worst"] in WELL] if len(nodes) > EACH else []
    ill = sorted(set(nodes).difference(quiet), key=lambda name: (STATUSES.index(nodes[name]["worst"]), natural(name)))
    return environment.get_template("page.html.j2").render(
        headline=headline(report).split("; ")[0],
        summary=report["summary"],
        statuses=STATUSES,
        taken=report["taken"] and [_time(report["taken"][end]) for end in ("from", "until")],
        areas=[safe(area) for area in (next(iter(nodes.values()))["areas"] if nodes else ())],
        rows_of_nodes=[(_name(name), _cells(name, nodes[name]["areas"], anchors)) for name in ill],
        well=[_name(name) for name in quiet if name != CLUSTER],
        rows=rows,
        left_off=left_off,
        style=Markup(style),  # noqa: S704  # our own file
        style_hash=_hash(style),
        script=Markup(script),  # noqa: S704  # our own file
        script_hash=_hash(script),
    )


def _rows(findings):
    """A row for all findings that say the same about a rule, the first row about each (node, area), and how many found no room."""
    rows, anchors, room, left_off = [], {}, ROOM, 0
    bad = (one for one in findings if one["status"] in ("fail", "warn", "unknown"))
    for (rule_id, status, message, _remedy), them in groups.alike(
        bad, lambda one: one["id"], lambda one: one["status"], lambda one: one["message"], lambda one: one["remedy"] and json.dumps(one["remedy"], default=str)
    ):
        row = _row("f%d" % len(rows), rule_id, status, message, them)
        room -= row.pop("size")
        if room < 0:
            left_off += 1
            continue
        rows.append(row)
        for one in them:
            anchors.setdefault((one["node"], row["area"]), row["anchor"])
    return rows, anchors, left_off


def _row(anchor, rule_id, status, message, findings):
    nodes = sorted(groups.nodes_of(findings), key=natural)
    commands = [(_whole(command), ", ".join(cautions)) for command, cautions, _nodes in groups.commands(findings)]
    evidence = findings[0]["evidence"] if status != "unknown" and len(nodes) == 1 else None
    row = {
        "anchor": anchor,
        "area": rule_id.split(".")[0],
        "status": status,
        "rank": STATUSES.index(status),
        "importance": findings[0]["severity"] if status == "fail" else "",
        "title": safe(findings[0]["title"]),
        "id": safe(rule_id),
        "nodes": [_name(name) for name in nodes],
        "folded": fold(nodes, 60),
        "message": _cut(message),
        "commands": commands,
        "evidence": _cut(json.dumps(evidence, ensure_ascii=False, default=str)) if evidence else "",
    }
    names = sum(len(name) + 25 for name in row["nodes"])
    row["size"] = 600 + names + 2 * (len(row["message"]) + len(row["evidence"]) + sum(len(command) + 80 for command, _cautions in commands))
    return row


def _cells(name, areas, anchors):
    return [(status, STATUSES.index(status) if status else None, anchors.get((name, area))) for area, status in areas.items()]


@functools.lru_cache(NAMES)
def _name(node):
    return clip(safe(node), 255)


def _cut(text):
    text = safe(text[:LONGEST])
    return text if len(text) < LONGEST else text[: LONGEST - 1] + MORE


def _whole(command):
    return command if len(command) <= LONGEST_COMMAND else "# too long for a page: see the remedies in report.json"


def _part(file):
    with open(os.path.join(HERE, file), encoding="utf-8") as part:
        return part.read()


def _hash(text):
    return Markup("sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())  # noqa: S704


def _time(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
