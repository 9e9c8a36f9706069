#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: unstick_ipam
short_description: Free calico-node from a migration of addresses that does not end
version_added: 0.1.0
description:
  - Where an earlier pod network has left C(/var/lib/cni/networks/k8s-pod-network), calico-node's init container upgrade-ipam locks the
    datastore of the whole cluster and migrates these addresses, and on any error tries again for ever. This moves the directory away, and
    frees the datastore once no migration runs any more.
  - Leaves alone what only looks like it. An image that is being pulled, a calico-node that has only begun, and a migration that is not overdue
    have their time.
  - Refuses, with the reason and before anything is changed, where something else has to be put right first, such as a container runtime that
    hangs or a path to the API server that does not work; where an address is still in use, by a route or by a container that runs; where the
    directory is that of the node's own CNI configuration; where it cannot be seen what it would do; and where the datastore was locked by
    somebody else than a migration of this node, as C(calicoctl datastore migrate lock) does.
  - The directory is renamed, to C(/var/lib/cni/k8s-pod-network.left-over), and noted in the journal on the node;
    M(nodecare.kubernetes.undo) brings it back. That the datastore was freed is noted in the annotation C(nodecare/unlocked) of its
    ClusterInformation, in the same write.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description: Nothing that keeps upgrade-ipam from its end is to be there.
    type: str
    choices: [absent]
    default: absent
  even_if_locked_by_hand:
    description: Free the datastore also where nothing tells that a migration of this node has locked it.
    type: bool
    default: false
  wait:
    description:
      - How many seconds to wait for upgrade-ipam of this node to end before the datastore is freed.
      - Where it runs on after that, or runs on another node, the datastore is left locked, and the message says where.
    type: float
    default: 300.0
  policy:
    description: As in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  timeout:
    description: How many seconds each look at a file system or program may take.
    type: float
    default: 5.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
attributes:
  check_mode:
    support: full
    description: Nothing is changed. The API server is asked by a dry run.
  diff_mode:
    support: full
    description: Which directory gets which name, and what becomes of the datastore.
seealso:
  - module: nodecare.kubernetes.undo
"""

EXAMPLES = r"""
- name: Let calico-node get on
  nodecare.kubernetes.unstick_ipam:
  become: true
"""

RETURN = r"""
moved:
  description: The directory that was moved away, or in check mode would be, with the entry of the journal that brings it back; null where none was.
  returned: success
  type: dict
  sample:
    path: /var/lib/cni/networks/k8s-pod-network
    moved_to: /var/lib/cni/k8s-pod-network.left-over
    entries: 12
    journal: 20261118T201500Z-00-ipam
unlocked:
  description: Whether the datastore was freed, or in check mode would be.
  returned: success
  type: bool
  sample: true
left_alone:
  description: Why something was left as it is, for it only takes its time; null otherwise.
  returned: success
  type: str
  sample: the image of upgrade-ipam is being pulled
undo:
  description: Commands that take back what was changed in the API.
  returned: success
  type: list
  elements: str
  sample: []
"""

# This module is implemented by the action plugin of the same name, which has the directory moved by nodecare.kubernetes.ipam_leftovers.
