#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: repair_wait
short_description: Wait until what a node was repaired for is found no more
version_added: 0.1.0
description:
  - Reads a node again and again, and the cluster with it, and judges both by the rules that had something to say, until none of them fails or
    is V(unknown) any more. M(nodecare.kubernetes.node_wait) does so for rules that need no cluster.
  - The other nodes of the play, with which some rules compare, are taken as they were registered earlier.
  - Says after each look which node it waits for, what is not well yet, and for how long it waits.
author:
  - The nodecare contributors (@nodecare)
options:
  checks:
    description: What must be well, as areas (V(swap)), rule ids (V(swap.returns)) or globs (V(runtime.*)).
    type: list
    elements: str
    required: true
  cluster:
    description: Whether to read the cluster too. Rules that need it are skipped otherwise.
    type: bool
    default: false
  results:
    description: The variable in which the other hosts have registered their node_check.
    type: str
    default: nodecare_check
  policy:
    description: As in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  within:
    description: After how many seconds to give up and fail.
    type: float
    default: 300.0
  every:
    description: How many seconds lie between two looks.
    type: float
    default: 5.0
  timeout:
    description: How many seconds each look at a daemon, file system or program may take.
    type: float
    default: 5.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.node_wait
  - module: nodecare.kubernetes.repair_plan
"""

EXAMPLES = r"""
- name: Wait until calico-node is no longer stuck here
  nodecare.kubernetes.repair_wait:
    checks: [calico.init_stuck, runtime.unresponsive]
    cluster: true
    within: 600
"""

RETURN = r"""
findings:
  description: What the rules said at the last look, of this node and of the cluster.
  returned: always
  type: list
  elements: dict
  sample: [{"id": "calico.init_stuck", "status": "pass", "message": "its init containers have ended"}]
summary:
  description: How many findings have each status, and the worst of them.
  returned: always
  type: dict
  sample: {"fail": 0, "warn": 0, "unknown": 0, "skip": 0, "pass": 2, "worst": "pass"}
seconds:
  description: How long it has waited.
  returned: always
  type: float
  sample: 12.4
"""

# This module is implemented by the action plugin of the same name, which reads the node with nodecare.kubernetes.node_check.
