# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that finds the nodes which are far busier than the others."""

from __future__ import annotations

DOCUMENTATION = r"""
name: load_outliers
short_description: Find nodes that are far busier than the others
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - Compares nodes by their sustained load per CPU and by their sustained pressure (PSI) on CPU, I/O and memory, as the rule
    C(load.outlier) of M(nodecare.kubernetes.node_check) does.
  - Sustained is what is high over one minute and over five (load), or over ten seconds and over sixty (pressure).
  - A node is an outlier when it is far above the median of its peers B(and) above what any node may have. Where the median
    of its peers is above that, too, no node is an outlier, because the cause is common to them.
  - Among five nodes or more, far above means a modified z score, with the median absolute deviation. Among fewer, it means
    a ratio to the median of the others.
  - Nodes of one size are compared among themselves where there are at least five of them.
  - Nodes whose load was not read, nodes that have just booted, and a node that is alone are not compared.
positional: thresholds
options:
  _input:
    description:
      - A dictionary of node names and their facts, as RV(nodecare.kubernetes.node_check#module:facts), or a saved bundle
        (C(schema) V(nodecare.bundle/1)).
    type: dict
    required: true
  thresholds:
    description: Thresholds of the policy that differ from their defaults.
    type: dict
    default: {}
    suboptions:
      load_per_cpu:
        description: Load per CPU from which a node can be an outlier.
        type: float
        default: 2.0
      pressure_cpu_percent:
        description: Percent of the time in which some task waits for a CPU, from which a node can be an outlier.
        type: float
        default: 60.0
      pressure_io_percent:
        description: The same for I/O.
        type: float
        default: 40.0
      pressure_memory_percent:
        description: The same for memory.
        type: float
        default: 10.0
      outlier_score:
        description: Modified z score from which a node stands out among five or more.
        type: float
        default: 3.5
      outlier_ratio:
        description: Ratio to the median of the others from which a node stands out among fewer than five.
        type: float
        default: 3.0
      outlier_uptime_seconds:
        description: Uptime below which a node is not compared.
        type: float
        default: 600.0
seealso:
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.judge
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the load of all nodes
  nodecare.kubernetes.node_check:
    checks: [load]
  register: check

- name: Say which node stands out
  ansible.builtin.debug:
    msg: "{{ item.node }}: {{ item.reason }}"
  loop: "{{ facts | nodecare.kubernetes.load_outliers }}"
  vars:
    read: "{{ ansible_play_hosts | map('extract', hostvars, ['check', 'facts']) }}"
    facts: "{{ dict(ansible_play_hosts | zip(read)) }}"
  run_once: true

- name: Be stricter with saved facts
  ansible.builtin.assert:
    that: "saved | nodecare.kubernetes.load_outliers({'load_per_cpu': 1, 'outlier_ratio': 2}) | length == 0"
  vars:
    saved: "{{ lookup('ansible.builtin.file', 'facts.json') | from_json }}"
"""

RETURN = r"""
_value:
  description: The outliers, the worst first. One for each metric by which a node stands out.
  type: list
  elements: dict
  contains:
    node:
      description: The node's name.
      type: str
      sample: worker-3
    metric:
      description: V(load_per_cpu), V(cpu_pressure), V(io_pressure) or V(memory_pressure).
      type: str
      sample: load_per_cpu
    value:
      description: The node's value. Load is per CPU, pressure is in percent of the time.
      type: float
      sample: 30.5
    median:
      description: What the value was compared with. The median of all its peers, or among fewer than five nodes that of
        the others.
      type: float
      sample: 0.6
    score:
      description: How far the value is from the median, as RV(_value[].by) says.
      type: float
      sample: 98.2
    by:
      description: V(modified z) or V(ratio).
      type: str
      sample: modified z
    reason:
      description: The same in words.
      type: str
      sample: load 61.0 on 2 CPUs; the other 7 nodes have 0.8 to 1.9
"""

from ansible.errors import AnsibleFilterError

from ..plugin_utils._outliers import standings
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._rules import load as _load  # noqa: F401  it declares the thresholds
from ..plugin_utils._site import plain

ANSWER = ("node", "metric", "value", "median", "score", "by", "reason")


def load_outliers(facts, thresholds=None):
    """The nodes that are far busier than the others."""
    if not isinstance(facts, dict):
        raise AnsibleFilterError("nodecare.kubernetes.load_outliers needs a dictionary of node names and their facts, not %s" % type(facts).__name__)
    if str(facts.get("schema", "")).startswith("nodecare.node/"):
        raise AnsibleFilterError("nodecare.kubernetes.load_outliers compares nodes: give it {name: facts} of several, not the facts of one")
    nodes = facts.get("nodes") if str(facts.get("schema", "")).startswith("nodecare.bundle/") else facts
    try:
        by = policy({"thresholds": plain(thresholds or {})})
    except PolicyError as error:
        raise AnsibleFilterError("nodecare.kubernetes.load_outliers: %s" % error) from None
    found, _left_out = standings({str(name): _load_of(str(name), one) for name, one in (nodes or {}).items()}, by)
    out = [standing._asdict() for standing in found if standing.stands_out]
    return [{key: one[key] for key in ANSWER} for one in sorted(out, key=lambda one: (-one["score"], one["node"], one["metric"]))]


def _load_of(name, facts):
    if not isinstance(facts, dict) or not isinstance(facts.get("load", {}), dict):
        raise AnsibleFilterError("nodecare.kubernetes.load_outliers: what is given for %s are no facts of node_check" % name)
    return facts.get("load", {})


class FilterModule:
    """Filters that compare nodes."""

    def filters(self):
        return {"load_outliers": load_outliers}
