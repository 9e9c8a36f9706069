#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_wait
short_description: Wait until a node is well
version_added: 0.1.0
description:
  - Reads a node again and again, as M(nodecare.kubernetes.node_check) does, until none of the chosen rules fails or is V(unknown) any
    more. A warning counts as well.
  - Says after each look which node it waits for, what is not well yet, and for how long it waits.
  - A connection that is lost meanwhile is made anew.
author:
  - The nodecare contributors (@nodecare)
options:
  checks:
    description: What must be well, as areas (V(swap)), rule ids (V(swap.returns)) or globs (V(runtime.*)).
    type: list
    elements: str
    required: true
  exclude:
    description: What to leave out of O(checks), in the same words.
    type: list
    elements: str
    default: []
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
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.node_check
"""

EXAMPLES = r"""
- name: Wait until the kubelet runs and the container runtime answers
  nodecare.kubernetes.node_wait:
    checks: [kubelet.down, runtime.unresponsive]
    within: 600
"""

RETURN = r"""
findings:
  description: What the rules said at the last look, as in M(nodecare.kubernetes.node_check).
  returned: always
  type: list
  elements: dict
  sample: [{"id": "kubelet.down", "status": "pass", "message": "the kubelet runs"}]
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
