# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report: one document, several ways to write it."""

from __future__ import annotations

import os
import tempfile

from .. import _judge
from . import json_report, terminal

SCHEMA = "nodecare.report/1"
WRITERS = {
    "json": ("report.json", json_report.write),
}
terminal_text = terminal.text


def document(nodes, findings, problems=()):
    """What every writer writes. ``nodes`` maps each name to its facts, or to None where there are none."""
    areas = sorted({one["id"].split(".")[0] for one in findings})
    table = {name: dict.fromkeys(areas) for name in nodes}
    for one in findings:
        area = one["id"].split(".")[0]
        table[one["node"]][area] = _worse(table[one["node"]][area], one["status"])
    return {
        "schema": SCHEMA,
        "nodes": {name: {"areas": table[name], "taken": (facts or {}).get("taken")} for name, facts in nodes.items()},
        "summary": {**_judge.summary(findings), "nodes": len(nodes)},
        "findings": findings,
        "problems": list(problems),
    }


def write(report, directory, formats):
    """Write each format to its own, always equally named file; answers {format: path}."""
    os.makedirs(directory, exist_ok=True)
    paths = {}
    for name in formats:
        file, writer = WRITERS[name]
        paths[name] = os.path.join(directory, file)
        _replace(paths[name], writer(report))
    return paths


def _replace(path, text):
    """A reader sees the old file or the new one, never half of one."""
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".nodecare-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _worse(one, other):
    return min((status for status in (one, other) if status), key=_judge.ORDER.index)
