"""Preflight and diagnosis as an operator runs them on a lab's cluster, and how to read what they say."""

from __future__ import annotations

import json

from lab.policy import POLICY


def reported(cluster, playbook, where, **thresholds):
    """(report, what was said) of a playbook that is run as an operator does it."""
    given = {"nodecare_report_dir": str(where), "nodecare_fail_on": "never", "nodecare_thresholds": {**POLICY["nodecare_thresholds"], **thresholds}}
    said = cluster.play(playbook, **given)
    return json.loads((where / "report.json").read_text()), said


def finding(report, rule_id, node):
    """The one by which this node fails."""
    (found,) = (one for one in report["findings"] if (one["id"], one["node"], one["status"]) == (rule_id, node, "fail"))
    return found


def accused(report, rule_id):
    return sorted({one["node"] for one in report["findings"] if one["id"] == rule_id and one["status"] == "fail"})


def first_cause(said):
    """The line that names the first cause, and what follows up to the second."""
    return said.partition("\n 1 ")[2].partition("\n 2 ")[0]
