#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repair_plan
short_description: Plan which repair comes on which node, and in which order
version_added: 0.1.0
description:
  - Makes a plan from what M(nodecare.kubernetes.node_check) and M(nodecare.kubernetes.cluster_check) have found in this run, or from a
    report of an earlier one, shows it and returns it. It changes nothing.
  - What another finding explains gets no repair of its own. Of what is left, each finding that a playbook puts right becomes a repair in
    the turn of its node; the others are listed with what has to be done by hand.
  - One node comes after the other. Workers come before the control plane, and of the workers first the one with the fewest pods, which so is
    the canary. A repair that changes all nodes of the cluster is planned once.
  - Only hosts of the play are planned for, so C(--limit) is never widened. A repair that changes all nodes is held back where the play does
    not have all of them.
  - Says to stop where the cause is common, for many nodes are not ready, or many need the same disruptive repair.
  - Runs once for the play, on the controller, and needs no connection to any host.
author:
  - The nodecare contributors (@nodecare)
options:
  report:
    description:
      - A C(report.json) of M(nodecare.kubernetes.report), its C(facts.json), which is judged again, or the directory that has them.
      - Whoever wrote it, it sets no variable of a repair beside those that this collection's own findings carry. A finding with any other is left
        to people.
      - What was found in this run, when it is not given.
    type: path
  results:
    description: The variable in which each host has registered its node_check.
    type: str
    default: nodecare_check
  cluster_results:
    description: The variable in which cluster_check was registered.
    type: str
    default: nodecare_cluster_check
  checks:
    description: What is to be repaired, in the words of M(nodecare.kubernetes.node_check).
    type: list
    elements: str
    default: ["*"]
  exclude:
    description: What to leave out of O(checks), in the same words.
    type: list
    elements: str
    default: []
  policy:
    description: As in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  allow_disruption:
    description: Whether running pods may be disturbed. Without it, repairs that do so are in the plan, but held back.
    type: bool
    default: false
  reboot_ok:
    description: Whether nodes may be rebooted. Without it, repairs that need that are in the plan, but held back.
    type: bool
  same_percent:
    description: More percent of the nodes than this that need the same disruptive repair have a cause in common, and the plan says to stop.
    type: float
    default: 34.0
  control_plane_groups:
    description: Groups of the inventory whose hosts belong to the control plane, beside those of which the cluster or the node says so.
    type: list
    elements: str
    default: [control_plane, controlplane, kube_control_plane, kube-master, masters, master, etcd]
  path:
    description: A directory in which C(plan.json) is written.
    type: path
extends_documentation_fragment:
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.report
"""

EXAMPLES = r"""
- name: Show what would be repaired, from yesterday's report
  nodecare.kubernetes.repair_plan:
    report: nodecare-report
  run_once: true
  register: planned

- name: Take the nodes in the order of the plan
  ansible.builtin.add_host:
    name: "{{ item.node }}"
    groups: planned
  loop: "{{ planned.turns }}"
"""

RETURN = r"""
plan:
  description: The plan, C(schema) C(nodecare.plan/1).
  returned: success
  type: dict
  contains:
    id:
      description: What tells it from other plans. Two plans that do the same to the same nodes have the same one.
      type: str
      sample: 3f9a1c0b7e42
    stop:
      description: Why no node is to be repaired; empty where nothing speaks against it.
      type: list
      elements: str
      sample: []
    turns:
      description: Each node with its repairs, in their order. A repair that is held back says why.
      type: list
      elements: dict
      sample:
        - node: worker-3
          control_plane: false
          pods: 12
          steps:
            - number: 1
              node: worker-3
              playbook: nodecare.kubernetes.repair_swap
              role: nodecare.kubernetes.disable_swap
              why: [kubelet.refuses_swap, swap.returns]
              disruptive: false
              reboot: false
              vars: {}
              everywhere: false
              needs: []
              held: null
              command: ansible-playbook nodecare.kubernetes.repair_swap --limit worker-3
    by_hand:
      description: What no playbook puts right, with what to do.
      type: list
      elements: dict
      sample: [{"node": "worker-3", "id": "load.outlier", "title": "Load stands out", "command": "top", "see": "docs/rules/load.outlier.md"}]
    outside:
      description: Repairs of nodes that are no hosts of the play.
      type: list
      elements: dict
      sample: [{"node": "worker-9", "why": ["swap.active"], "command": "ansible-playbook nodecare.kubernetes.repair_swap --limit worker-9"}]
artifacts:
  description: What is worth handing on to other jobs by M(ansible.builtin.set_stats), short whatever number of nodes there is.
  returned: success
  type: dict
  sample: {"nodecare_plan_id": "3f9a1c0b7e42", "nodecare_planned_stop": [], "nodecare_planned_steps": {"nodecare.kubernetes.repair_swap": 1}}
turns:
  description: The turns of the plan with what of them can be carried out now; empty where the plan says to stop.
  returned: success
  type: list
  elements: dict
  sample: []
path:
  description: The file that was written.
  returned: when O(path) is given
  type: str
  sample: /home/me/nodecare-report/plan.json
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
