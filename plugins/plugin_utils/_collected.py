# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What node_check found on all nodes of a play, brought together."""

from __future__ import annotations

import json

from . import _judge
from ._policy import policy


def collected(results, checked):
    """{node: facts}, {node: policy} and the findings; hosts that have the same policy share one."""
    nodes, policies, findings, seen = {}, {}, [], {}
    for name, result in results:
        nodes[name] = result.get("facts")
        own = json.dumps(result.get("policy") or None, sort_keys=True, default=str)
        if own not in seen:
            seen[own] = policy(result["policy"]) if result.get("policy") else checked
        policies[name] = seen[own]
        findings.extend(result["findings"] if "findings" in result else [_lost(name, result, checked)])
    return nodes, policies, findings


def _lost(name, result, checked):
    """The finding about a node whose task gave no findings."""
    rule_id = "node.unreachable" if result.get("unreachable") else "node.unreadable"
    why = str(result.get("msg") or result.get("skip_reason") or "it was not read in this run").strip()
    return _judge.judge_lost(name, rule_id, why.removeprefix("Task failed: "), checked)
