# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that judges facts which were read earlier."""

from __future__ import annotations

DOCUMENTATION = r"""
name: judge
short_description: Judge facts that were read earlier
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - Applies the rules of M(nodecare.kubernetes.node_check) to saved facts, without any connection to a node, so that an
    old reading can be judged again with another policy.
  - Given several nodes, the rules that compare nodes are applied too; given a bundle with the cluster's facts, also those that
    ask the cluster.
positional: policy
options:
  _input:
    description:
      - Facts of one node (the C(facts) that M(nodecare.kubernetes.node_check) returned), or a dictionary of node names and
        their facts, or a saved bundle (C(schema) V(nodecare.bundle/1)).
    type: dict
    required: true
  policy:
    description: The policy to judge by, as in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  checks:
    description: Which rules to apply, as areas, ids or globs.
    type: list
    elements: str
    default: ["*"]
  exclude:
    description: What to leave out of O(checks).
    type: list
    elements: str
    default: []
  node:
    description: The name in the findings where the facts of one node are given.
    type: str
    default: node
seealso:
  - module: nodecare.kubernetes.node_check
"""

EXAMPLES = r"""
- name: Judge last week's facts by a stricter policy
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'facts.json') | from_json | nodecare.kubernetes.judge({'thresholds': {'load_per_cpu': 1}}) }}"

- name: Only the swap rules, on facts that this play has read
  ansible.builtin.assert:
    that: nodecare_check.facts | nodecare.kubernetes.judge(checks=['swap']) | selectattr('status', 'equalto', 'fail') | length == 0
"""

RETURN = r"""
_value:
  description: The findings, as RV(nodecare.kubernetes.node_check#module:findings).
  type: list
  elements: dict
"""

from ansible.errors import AnsibleFilterError

from ..plugin_utils import _judge
from ..plugin_utils._policy import PolicyError
from ..plugin_utils._policy import policy as checked
from ..plugin_utils._rules import RULES
from ..plugin_utils._site import plain


def judge(facts, policy=None, checks=("*",), exclude=(), node="node"):
    """Findings about saved facts."""
    nodes, cluster = _nodes(facts, node), _cluster(facts)
    try:
        by = checked(plain(policy or {}), known_rules=list(RULES))
        ids = _judge.select(_texts(checks), _texts(exclude), by)
    except (PolicyError, _judge.SelectionError) as error:
        raise AnsibleFilterError("nodecare.kubernetes.judge: %s" % error) from None
    return _judge.judge(nodes, dict.fromkeys(nodes, by), ids, by, cluster)


def _nodes(facts, node):
    if not isinstance(facts, dict):
        raise AnsibleFilterError("nodecare.kubernetes.judge needs a dictionary of facts, not %s" % type(facts).__name__)
    schema = str(facts.get("schema", ""))
    if schema.startswith("nodecare.node/"):
        return {node: plain(facts)}
    nodes = facts.get("nodes") if schema.startswith("nodecare.bundle/") else facts
    for name, one in (nodes or {}).items():
        if not isinstance(one, dict) or not str(one.get("schema", "")).startswith("nodecare.node/"):
            raise AnsibleFilterError("nodecare.kubernetes.judge: what is given for %s are no facts of node_check (schema nodecare.node/1)" % name)
    return {str(name): plain(one) for name, one in (nodes or {}).items()}


def _cluster(facts):
    """A bundle's cluster facts; without a bundle there are none."""
    return plain(facts.get("cluster")) if str(facts.get("schema", "")).startswith("nodecare.bundle/") else None


def _texts(names):
    return [str(name) for name in ([names] if isinstance(names, str) else names)]


class FilterModule:
    """Filters for judging facts."""

    def filters(self):
        return {"judge": judge}
