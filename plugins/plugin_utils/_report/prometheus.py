# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report for node_exporter's textfile collector.

One series for each failure and warning; what passed, was skipped or is unknown is only counted, so that a thousand healthy
nodes give a few thousand series and not a hundred thousand.
"""

from __future__ import annotations

from collections import Counter

from .._rules._rule import CLUSTER

WORST = {"pass": 0, "skip": 0, "unknown": 1, "warn": 2, "fail": 3}


def write(report):
    nodes = report["nodes"]
    found = Counter((one["node"], one["id"], one["status"], one["severity"]) for one in report["findings"] if one["status"] in ("fail", "warn"))
    lines = _metric(
        "nodecare_finding",
        "Number of findings of a rule about a node that failed or warned.",
        [(dict(zip(("node", "id", "status", "severity"), labels)), number) for labels, number in found.items()],
    )
    lines += _metric(
        "nodecare_findings",
        "Number of findings about a node by status.",
        [({"node": name, "status": status}, number) for name, one in nodes.items() for status, number in one["counts"].items()],
    )
    lines += _metric(
        "nodecare_node_worst",
        "The worst that was found about a node: 0 nothing, 1 something could not be told, 2 a warning, 3 a failure.",
        [({"node": name}, WORST[one["worst"]]) for name, one in nodes.items()],
    )
    lines += _metric("nodecare_nodes", "Number of nodes in the report, with those that could not be read.", [({}, len(set(nodes) - {CLUSTER}))])
    if report["taken"]:
        lines += _metric("nodecare_report_timestamp_seconds", "When the last node was read, in seconds since 1970.", [({}, "%.3f" % report["taken"]["until"])])
    return "\n".join(lines) + "\n"


def _metric(name, meaning, samples):
    lines = ["# HELP %s %s" % (name, meaning), "# TYPE %s gauge" % name]
    return lines + ["%s%s %s" % (name, _labels(labels), value) for labels, value in samples]


def _labels(labels):
    return "{%s}" % ",".join('%s="%s"' % (name, _escaped(value)) for name, value in labels.items()) if labels else ""


def _escaped(value):
    value = value.encode("utf-8", "backslashreplace").decode()  # a lone surrogate would cost the whole file
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
