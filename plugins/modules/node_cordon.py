#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_cordon
short_description: Cordon a Node for a repair with a mark, and undo exactly that
version_added: 0.1.0
description:
  - Cordons a Node and writes down who has done so, for which run and what for, in the annotation C(nodecare/repair). Both is one write, so
    that there is never a cordon of ours without its mark.
  - A cordon that was there before is somebody else's. It is left as it is, and the mark says so. Only a cordon that has our mark is ever undone.
  - A mark that an earlier run has left, whose lock is over, is taken on or undone, and the result says so.
  - Refuses where somebody else is at work on the Node, which is kured, the cluster autoscaler, Karpenter, medik8s, Cluster API, the update operators of
    Flatcar and OpenShift, or one who deletes it; where another run holds the cluster's lock; and where the mark cannot be read.
author:
  - The nodecare contributors (@nodecare)
options:
  node:
    description: The Node's name, as C(kubectl get nodes) says it.
    type: str
    required: true
  state:
    description:
      - V(cordoned), when no new pods are to be placed on it until the repair is through.
      - V(as_found), when it is to be what it was before V(cordoned), schedulable or not, and without the mark.
    type: str
    choices: [cordoned, as_found]
    default: cordoned
  repair:
    description: What it is cordoned for, for others to read.
    type: str
    default: ""
  run:
    description: What this run is called, as in M(nodecare.kubernetes.node_lease).
    type: str
  timeout:
    description: How many seconds an API server that is busy, slow or out of reach is asked again.
    type: float
    default: 20.0
attributes:
  check_mode:
    support: full
    description: The API server is asked for a dry run.
  diff_mode:
    support: full
    description: Whether the Node is schedulable, and its mark.
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
notes:
  - The rights that it needs are in the collection's C(docs/nodecare-repairer.yml).
  - Locks of others that are not on the Node itself, such as kured's on its DaemonSet, are among the C(locks) that
    M(nodecare.kubernetes.cluster_check) returns.
seealso:
  - module: nodecare.kubernetes.node_lease
  - module: nodecare.kubernetes.cluster_check
"""

EXAMPLES = r"""
- name: Let no new pods come while the runtime is restarted
  nodecare.kubernetes.node_cordon:
    node: worker-3
    repair: restart_runtime

- name: Make the Node what it was before
  nodecare.kubernetes.node_cordon:
    node: worker-3
    state: as_found
"""

RETURN = r"""
node:
  description: The Node's name.
  returned: always
  type: str
  sample: worker-3
run:
  description: What this run is called.
  returned: success
  type: str
  sample: admin@bastion-4711-5e1f0c2a
unschedulable:
  description: Whether the Node is cordoned now, by whomever.
  returned: success
  type: bool
  sample: true
cordoned:
  description: Whether that is a repair's doing, which V(as_found) undoes.
  returned: success
  type: bool
  sample: true
marker:
  description: The repair's mark; null where there is none.
  returned: success
  type: dict
  contains:
    run: {description: The run., type: str, sample: admin@bastion-4711-5e1f0c2a}
    holder: {description: Who that is., type: str, sample: "admin@bastion, process 4711"}
    repair: {description: What for., type: str, sample: restart_runtime}
    at: {description: Since when., type: str, sample: "2026-11-18T21:04:05Z"}
    cordoned: {description: Whether it has cordoned the Node., type: bool, sample: true}
    broken: {description: Always empty here; a mark that cannot be read is refused., type: str, sample: ""}
undo_command:
  description: The command that does what V(as_found) does, for one who has only kubectl. Empty where there is nothing to undo.
  returned: success
  type: str
  sample: kubectl uncordon worker-3 && kubectl annotate node worker-3 nodecare/repair-
refused:
  description: Whether it has failed because of somebody else's mark or lock, and nothing was changed.
  returned: always
  type: bool
  sample: false
msg:
  description: What was done, or why nothing was, in one sentence.
  returned: always
  type: str
  sample: "Node worker-3: it is cordoned and marked by this run"
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
