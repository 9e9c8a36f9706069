# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report: one document, several ways to write it."""

from __future__ import annotations

import os
import tempfile

from .. import _judge
from .._rules import RULES
from .._rules._rule import CLUSTER
from . import json_report, junit, page, prometheus, terminal
from .words import natural

SCHEMA = "nodecare.report/1"
BUNDLE = "nodecare.bundle/1"
WRITERS = {  # the page for people comes last, so that its path is the last that is printed
    "json": ("report.json", json_report.write),
    "junit": ("junit.xml", junit.write),
    "prometheus": ("report.prom", prometheus.write),
    "html": ("report.html", page.write),
}
PRIVATE = 0o600  # facts say much about the nodes
SEVERITIES = ("error", "warning", "info")
terminal_text = terminal.text


def document(nodes, findings):
    """What every writer writes. ``nodes`` maps each name to its facts, or to None where there are none.

    The cluster, and its nodes that are not among these, have a row where something was found about them.
    """
    found = {one["node"] for one in findings}
    others = sorted(found - set(nodes) - {CLUSTER}, key=natural)
    names = {name: place for place, name in enumerate([*sorted(nodes, key=natural), *others, *sorted(found & {CLUSTER} - set(nodes))])}
    findings = sorted(findings, key=lambda one: (_judge.ORDER.index(one["status"]), SEVERITIES.index(one["severity"]), one["id"], names[one["node"]]))
    areas = _areas(findings)
    table = {name: dict.fromkeys(areas) for name in names}
    counts = {name: dict.fromkeys(_judge.ORDER, 0) for name in names}
    for one in findings:  # worst first: what is there already is worse
        cells, area = table[one["node"]], one["id"].split(".")[0]
        cells[area] = cells[area] or one["status"]
        counts[one["node"]][one["status"]] += 1
    taken = {name: (nodes.get(name) or {}).get("taken") for name in names}
    return {
        "schema": SCHEMA,
        "taken": _span(taken.values()),
        "summary": {**_judge.summary(findings), "nodes": len(nodes)},
        "nodes": {name: {"worst": _worst(counts[name]), "counts": counts[name], "areas": table[name], "taken": taken[name]} for name in names},
        "findings": findings,
    }


def bundle(nodes, policy, cluster=None, **beside):
    """Facts to keep: the filter ``judge`` judges them again, by this policy or by another. ``beside`` is what joins them to those of other runs."""
    return {"schema": BUNDLE, "policy": policy, "nodes": {name: facts for name, facts in nodes.items() if facts}, "cluster": cluster, **beside}


def write(report, directory, formats, facts=None):
    """Write each format to its own, always equally named file; answers {format: path} and what could not be written, in words."""
    jobs = [(name, *WRITERS[name], report) for name in WRITERS if name in formats]
    if facts is not None:
        jobs.insert(0, ("facts", "facts.json", json_report.write_bundle, facts))
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        return {}, ["cannot make the directory %s: %s" % (directory, error.strerror or error)]
    paths, broken = {}, []
    for name, file, writer, content in jobs:
        path = os.path.join(directory, file)
        try:
            _replace(path, writer(content), *([PRIVATE] if content is facts else []))
            paths[name] = path
        except OSError as error:
            broken.append("cannot write %s: %s" % (path, error.strerror or error))
        except Exception as error:  # pylint: disable=broad-except  # one broken writer must not cost the other reports
            broken.append("cannot make %s: %s: %s" % (path, type(error).__name__, error))
    return paths, broken


def write_plan(plan, directory):
    """(its path, None), or why it could not be written."""
    path = os.path.join(directory, "plan.json")
    try:
        os.makedirs(directory, exist_ok=True)
        _replace(path, json_report.write_plan(plan))
    except OSError as error:
        return path, "cannot write %s: %s" % (path, error.strerror or error)
    return path, None


def _replace(path, text, mode=0o644):
    """A reader sees the old file or the new one, never half of one. Others, such as node_exporter, read a report."""
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".nodecare-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _areas(findings):
    """The areas that were looked at: whether the node could be read at all, the catalogue's, those of site rules."""
    seen = {rule_id.split(".")[0] for rule_id in {one["id"] for one in findings}}
    catalogue = dict.fromkeys(["node", *(rule.area for rule in RULES.values())])
    return [area for area in catalogue if area in seen] + sorted(seen - set(catalogue))


def _worst(counts):
    return next((status for status in _judge.ORDER if counts[status]), "pass")


def _span(taken):
    """When the nodes were read, by the controller's clock."""
    times = [(one["sent"], one["received"]) for one in taken if one and "sent" in one and "received" in one]
    return {"from": min(sent for sent, _received in times), "until": max(received for _sent, received in times)} if times else None
