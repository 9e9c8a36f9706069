#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_proof
short_description: Wait until a node has proven to its cluster that it is well
version_added: 0.1.0
description:
  - Waits until the Node is Ready, its kubelet has posted a heartbeat since the wait began, C(calico-node) on it is ready, and its BIRD
    has at least one BGP session.
  - A heartbeat is a renewal of the node's Lease, or of its condition Ready. It is compared with the one that was there before and
    never with the controller's clock, so that clocks that differ do no harm.
  - Says after each look which node it waits for, what is missing, and for how long it waits. An API server or a node that is out of
    reach meanwhile is asked again.
  - Renews the lock of M(nodecare.kubernetes.node_lease) while it waits, where this run holds it.
author:
  - The nodecare contributors (@nodecare)
options:
  node:
    description: The name of the Node, as M(nodecare.kubernetes.node_gate) returns it.
    type: str
    required: true
  since:
    description: A time in seconds since 1970 after which the heartbeat has to be as well.
    type: float
  boot_id:
    description: The boot id that the node had before a reboot; its kubelet has to have told another one.
    type: str
  calico_node:
    description: Whether C(calico-node) has to be ready on it.
    type: bool
    default: true
  bgp:
    description: Whether its BIRD has to have an established session. It is asked on the node itself.
    type: bool
    default: true
  run:
    description: What this run is called, as in M(nodecare.kubernetes.node_lease).
    type: str
  within:
    description: After how many seconds to give up and fail.
    type: float
    default: 300.0
  every:
    description: How many seconds lie between two looks.
    type: float
    default: 5.0
  timeout:
    description: How many seconds one answer of the API server may take.
    type: float
    default: 10.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
  - nodecare.kubernetes.read_only
notes:
  - The rights that it needs are in the collection's C(docs/nodecare-repairer.yml).
seealso:
  - module: nodecare.kubernetes.node_gate
  - module: nodecare.kubernetes.node_wait
"""

EXAMPLES = r"""
- name: Wait until the node has proven that it is well
  nodecare.kubernetes.node_proof:
    node: worker-3
    within: 600

- name: Wait for a node that has been rebooted, in a cluster without Calico
  nodecare.kubernetes.node_proof:
    node: worker-3
    boot_id: "{{ before }}"
    calico_node: false
    bgp: false
"""

RETURN = r"""
node:
  description: The name of the Node.
  returned: when it is known whom to ask
  type: str
  sample: worker-3
missing:
  description: What it lacked at the last look, in words.
  returned: when it is known whom to ask
  type: list
  elements: str
  sample: []
seconds:
  description: How long it has waited.
  returned: when it is known whom to ask
  type: float
  sample: 12.4
msg:
  description: What has proven it, or what is missing.
  returned: always
  type: str
  sample: "worker-3 is well after 12 s: Ready; a heartbeat of 21:04:05 UTC; calico-node-7w8jl is ready; 5 of 5 BGP sessions are established"
"""

# This module is implemented by the action plugin of the same name: it runs on the controller, and asks the node for its BGP sessions.
