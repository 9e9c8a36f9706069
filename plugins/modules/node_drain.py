#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Empty a node, and wait until its pods are gone
version_added: 0.1.0
description:
  - Evicts the pods of a cordoned node by the Eviction API, so that PodDisruptionBudgets are heeded, and waits until they are gone. A pod is
    known by its uid, so that one of the same name, on this node or another, is never taken for it.
  - What C(kubectl drain) leaves stays, which is static pods and those of DaemonSets; pods that are finished stay as well. A pod without a
    controller and one with C(emptyDir) volumes is only evicted with O(even_bare) and O(even_emptydir).
  - All that can be refused is refused before the first pod is evicted; each eviction is tried as a server-side dry run for that.
  - Where a budget allows no eviction now, it is tried again until O(within) is over. Then the task fails, and names each pod that is still
    there, the budgets that hold it with their numbers, and which pods were evicted until then.
  - Says after each look what it waits for, and renews the lock of M(nodecare.kubernetes.node_lease), where this run holds it. Nothing more is
    evicted once another run has taken that.
  - It never cordons and never uncordons a node. It fails where the node is not cordoned, and stops where somebody uncordons it meanwhile.
  - Pods that come back in spite of the cordon, because they tolerate it or are meant for the node by its name, are named and not evicted again.
  - In check mode nothing is evicted. RV(evicted) are the pods that would be, and RV(left) says of each what it would wait for.
notes:
  - Needs Kubernetes 1.22 or newer.
  - Its rights are those in the collection's C(docs/nodecare-repairer.yml).
author:
  - The nodecare contributors (@nodecare)
options:
  node:
    description: The name of the Node.
    type: str
    required: true
  even_bare:
    description: Evict also pods that nobody makes anew, because they have no controller, or their DaemonSet is gone.
    type: bool
    default: false
  even_emptydir:
    description: Evict also pods with C(emptyDir) volumes. What is in them is lost.
    type: bool
    default: false
  grace_period:
    description:
      - How many seconds each pod has to end. Where it is not given, each has the time that it asks for.
      - With V(0) pods vanish from the API server at once, also while their processes still run.
    type: int
  run:
    description: What this run is called, as in M(nodecare.kubernetes.node_lease).
    type: str
  within:
    description: After how many seconds to give up and fail.
    type: float
    default: 600.0
  every:
    description: How many seconds lie between two looks; a refused eviction is tried again then.
    type: float
    default: 5.0
  timeout:
    description: How many seconds the API server may take for an answer.
    type: float
    default: 10.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
attributes:
  check_mode:
    support: full
    description: Nothing is evicted. Each eviction is tried as a dry run by the API server.
  diff_mode:
    support: full
    description: The pods on the node before and after.
seealso:
  - module: nodecare.kubernetes.node_cordon
  - module: nodecare.kubernetes.node_gate
"""

EXAMPLES = r"""
- name: Empty a node that is cordoned
  nodecare.kubernetes.node_drain:
    node: worker-3
    within: 900

- name: See what would go, and what it would wait for
  nodecare.kubernetes.node_drain:
    node: worker-3
    even_emptydir: true
  check_mode: true
  register: predicted
"""

RETURN = r"""
evicted:
  description: The pods that the API server has agreed to end; in check mode those that it would.
  returned: always
  type: list
  elements: dict
  sample: [{"namespace": "shop", "name": "cart-0", "uid": "81d07b38-436b-443e-ace1-d8c7eeb1b318"}]
staying:
  description: The pods that a drain leaves on the node, and why.
  returned: always
  type: list
  elements: dict
  sample: [{"namespace": "kube-system", "name": "kube-proxy-x7w2q", "uid": "…", "why": "of the DaemonSet kube-proxy, which would make it anew"}]
left:
  description: Where it failed, or in check mode, the pods that are still there, and what each of them waits for.
  returned: always
  type: list
  elements: dict
  sample:
    - namespace: shop
      name: cart-0
      uid: 81d07b38-436b-443e-ace1-d8c7eeb1b318
      why: "held by the budget shop/cart (allows 0 disruptions: 2 of 2 expected pods are healthy, 2 must be)"
back:
  description: Pods that came onto the node meanwhile in spite of its cordon.
  returned: always
  type: list
  elements: dict
  sample: []
seconds:
  description: How long it took.
  returned: always
  type: float
  sample: 31.2
msg:
  description: How it ended, in one sentence.
  returned: always
  type: str
  sample: 7 pods were evicted and are gone, 4 stay
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
