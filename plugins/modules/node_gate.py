#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_gate
short_description: See whether a node of a cluster may be repaired now
version_added: 0.1.0
description:
  - Reads the cluster anew, finds out which of its nodes this machine is, and asks whether the others can do without it, whether the
    fault can be its own, and whether nobody else is at work.
  - Nodes of the same batch count as away as well, so that two of a quorum are never repaired at once.
  - Each gate answers V(pass), V(stop) or V(unknown). What cannot be told stops a disruptive repair, too, and one of a node that
    has the mark of an earlier repair, because it is given back at the end.
  - It fails where a gate stops the repair, and says why and what to do.
  - V(node), whether it is known which Node this machine is. A machine that has not joined a cluster passes all gates.
  - V(etcd), whether a majority of etcd's members is healthy without this one. Members are seen that run as pods or, with k3s, are
    named by the role C(etcd). Others cannot be seen, which matters for nodes of the control plane.
  - V(api_server), whether another API server is ready, and whether this run asks another than the node's own.
  - V(capacity), whether at least O(min_ready) other nodes of the same kind are Ready and take pods, and for repairs that drain, whether what
    the pods of this node request is free on them.
  - V(budgets), for repairs that drain, whether a disruption budget holds a pod of this node now.
  - V(not_ready), whether so many other nodes are not Ready that the cause is none of them (threshold C(not_ready_percent)).
  - V(other_operators), whether kured, medik8s, an autoscaler or the like has marked the node.
  - V(unfinished), whether another node still has the mark of a repair that is not finished.
  - V(proof), whether all could be read that tells what the node has to prove afterwards. Who skips it has the node prove only what could be told.
author:
  - The nodecare contributors (@nodecare)
options:
  results:
    description:
      - The variable in which M(nodecare.kubernetes.node_check) was registered, whose facts tell which Node this machine is. The areas
        C(kubelet) and C(links) are enough.
    type: str
    default: nodecare_check
  node:
    description: The name of the Node that this machine is, where that is known already.
    type: str
  cluster:
    description: The facts of M(nodecare.kubernetes.cluster_check) to judge by, instead of asking the API server.
    type: dict
  disruptive:
    description: Whether pods or daemons of the node may be away for a while.
    type: bool
    default: true
  drains:
    description: Whether the node's pods have to go elsewhere.
    type: bool
    default: false
  min_ready:
    description: How many other nodes of the same kind (control plane or not) have to be Ready and to take pods.
    type: int
    default: 1
  skip:
    description: Gates that must not stop the repair. They are judged and returned all the same.
    type: list
    elements: str
    default: []
  policy:
    description: As in M(nodecare.kubernetes.node_check); its threshold C(not_ready_percent) is what is used here.
    type: dict
    default: {}
  run:
    description: What this run is called, as in M(nodecare.kubernetes.node_lease).
    type: str
  timeout:
    description: How many seconds reading the cluster may take.
    type: float
    default: 20.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
  - nodecare.kubernetes.read_only
notes:
  - The rights that it needs are in the collection's C(docs/nodecare-reader.yml).
seealso:
  - module: nodecare.kubernetes.cluster_check
  - module: nodecare.kubernetes.node_proof
"""

EXAMPLES = r"""
- name: Read who this machine is
  nodecare.kubernetes.node_check:
    checks: [kubelet.down, links.loopback]
  register: nodecare_check

- name: Ask whether it may be drained now
  nodecare.kubernetes.node_gate:
    drains: true
    min_ready: 2

- name: Ask for a node whose etcd runs on machines of its own, which somebody has looked at
  nodecare.kubernetes.node_gate:
    node: control-1
    skip: [etcd]
"""

RETURN = r"""
node:
  description: The name of the Node that this machine is; empty where it has not joined a cluster.
  returned: when the cluster could be read
  type: str
  sample: worker-3
gates:
  description: What each gate says, why, and what to do.
  returned: when the cluster could be read
  type: list
  elements: dict
  contains:
    gate: {description: Its name., type: str, sample: etcd}
    verdict: {description: "V(pass), V(stop) or V(unknown).", type: str, sample: pass}
    why: {description: In words., type: str, sample: no etcd member runs on it}
    advice: {description: What to do where it does not pass., type: str, sample: ""}
marked:
  description: Whether the Node has the mark of a repair that is not finished.
  returned: when the cluster could be read
  type: bool
  sample: false
undo_command:
  description: What makes the Node what it was before that repair, by hand; empty where it has no mark.
  returned: when the cluster could be read
  type: str
  sample: kubectl uncordon worker-3 && kubectl annotate node worker-3 nodecare/repair-
expects:
  description: What the node has to prove afterwards, for M(nodecare.kubernetes.node_proof), as far as the gate V(proof) says that it can be told.
  returned: when the cluster could be read
  type: dict
  contains:
    calico_node: {description: Whether a calico-node has to be Ready on it., type: bool, sample: true}
    bgp: {description: Whether it has to have a BGP session., type: bool, sample: true}
server_time:
  description: The API server's clock when it was read, in seconds since 1970.
  returned: when the cluster could be read
  type: float
  sample: 1795030943.0
msg:
  description: In one sentence.
  returned: always
  type: str
  sample: worker-3 may be repaired now
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
