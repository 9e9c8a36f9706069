#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Compare the nodes of a play and report what was found
version_added: 0.1.0
description:
  - Collects the results of M(nodecare.kubernetes.node_check) of all hosts of the play, runs the rules that compare
    nodes, writes the reports on the controller and prints a table.
  - Runs once for the play, whatever its strategy, and needs no connection to any host.
  - Hosts that could not be reached or read are findings too.
  - Fails after everything is written, when a finding is bad enough, or when a report could not be written; the others
    are written nevertheless.
notes:
  - The files have always the same names. C(report.json) is canonical, its schema is C(docs/report.schema.json).
    C(junit.xml) has a test suite for each node and a test case for each finding; what is unknown counts as skipped.
    C(report.prom) is for the textfile collector of node_exporter, with one series for each failure and warning, and
    counts of everything else. C(report.html) is one page that loads nothing and can be read without scripts.
  - The table on the terminal has at most 100 columns. It is drawn with the Python library rich where that is installed.
author:
  - The nodecare contributors (@nodecare)
options:
  results:
    description: The variable in which each host keeps the result of M(nodecare.kubernetes.node_check).
    type: str
    default: nodecare_check
  cluster_results:
    description:
      - The variable in which M(nodecare.kubernetes.cluster_check) has left its result. With it the rules that ask the cluster are
        applied, and nodes of the cluster that are no hosts of the play are judged by what the cluster knows of them.
      - Where nothing has set it, these rules are V(skip).
    type: str
    default: nodecare_cluster_check
  saved:
    description:
      - Instead of what hosts have registered, report what other runs have written with O(save_facts=true), as if one run had read all nodes. These are
        the files C(facts.json), or directories below which they are. All facts are judged anew, so that nodes of different runs are compared, too.
      - The runs must have had the same choice of rules, and no node in common. Each node is judged by its own policy; nodes are compared by that of the
        play's first host. What the hosts register is not looked at then, nor are O(policy), O(checks) and O(exclude).
      - Each host of the play that none of the runs knows is reported as not read.
    type: list
    elements: path
    default: []
  checks:
    description:
      - The rules among which those that compare nodes or ask the cluster are chosen, as in M(nodecare.kubernetes.node_check).
      - What is chosen there does not count here. To have such a rule left out, leave it out in both.
    type: list
    elements: str
    default: ["*"]
  exclude:
    description: What to leave out of O(checks).
    type: list
    elements: str
    default: []
  policy:
    description: The policy for the rules that compare nodes, as in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  path:
    description: The directory on the controller that the reports are written to. It is made where it does not exist.
    type: path
    default: nodecare-report
  formats:
    description: Which reports to write, beside the table that is always printed.
    type: list
    elements: str
    choices: [json, junit, prometheus, html]
    default: [json, junit, prometheus, html]
  save_facts:
    description:
      - Write the nodes' facts too, as C(facts.json), so that P(nodecare.kubernetes.judge#filter) can judge them again later.
      - They say much about the nodes, so keep the file as you keep an inventory.
    type: bool
    default: false
  fail_on:
    description:
      - What makes the task fail. With V(error) these are rules that failed, with V(warning) those of the severity C(warning) and all that warned, too.
      - V(error), when it is not given; V(never) with O(diagnose=true), whose work it is to find something.
    type: str
    choices: [error, warning, never]
  diagnose:
    description:
      - Print the causes of what is wrong instead of the table, that with the most evidence first. For each it says what it explains,
        what would disprove it, and what repairs it.
    type: bool
    default: false
  pod:
    description:
      - With O(diagnose=true), only what concerns this pod, as C(namespace/name).
      - Where it is none of Calico's or kube-proxy's, O(node) is needed too.
    type: str
  node:
    description: With O(diagnose=true), only what concerns this node, by its name in the inventory or in the cluster.
    type: str
extends_documentation_fragment:
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.merge_reports
    plugin_type: filter
  - plugin: nodecare.kubernetes.judge
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Report what node_check found
  nodecare.kubernetes.report:
    path: /tmp/nodecare
    fail_on: warning

- name: Say why the pods on a node have no network
  nodecare.kubernetes.report:
    diagnose: true
    node: worker-3
"""

RETURN = r"""
summary:
  description: How many findings have each status, and on how many nodes.
  returned: always
  type: dict
  sample: {"fail": 1, "warn": 0, "unknown": 2, "skip": 1, "pass": 40, "worst": "fail", "nodes": 3}
causes:
  description:
    - With O(diagnose=true), the causes, that with the most evidence first.
    - Each has the finding that is the C(cause), the findings that it C(explains), C(disproved_by), the commands that C(repair) it, and
      C(unexplained) where it is only what is seen.
  returned: with O(diagnose=true)
  type: list
  elements: dict
artifacts:
  description:
    - What is worth handing on to other jobs by M(ansible.builtin.set_stats), short whatever number of nodes there is.
    - The counts, the nodes that fail, the nodes that each playbook would repair, and the path of C(report.json).
  returned: always
  type: dict
  sample:
    nodecare_found_summary: {"fail": 1, "warn": 0, "unknown": 2, "skip": 1, "pass": 40, "worst": "fail", "nodes": 3}
    nodecare_found_failing: [worker-3]
    nodecare_found_repairs: {"nodecare.kubernetes.repair_swap": [worker-3]}
    nodecare_found_report: /tmp/nodecare/report.json
    nodecare_found_only_on: worker-3
paths:
  description: The file of each format that was written, and C(facts) where O(save_facts=true).
  returned: always
  type: dict
  sample: {"json": "/tmp/nodecare/report.json", "html": "/tmp/nodecare/report.html"}
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
