#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: calico_autodetection
short_description: Set how Calico finds the nodes' addresses, in the whole cluster
version_added: 0.1.0
description:
  - Sets the detection method of calico-node, and before that tells for every node which address is registered, which one it takes at its next start as it
    is set now, and which one it takes with the new method. That is worked out from the facts of all nodes by the code of
    P(nodecare.kubernetes.calico_autodetect#filter).
  - Refuses, and names the node, where any would get no address, that of another one, or one that is not its own; and where a node was not read, since
    nothing is known about it.
  - The setting goes where it belongs. With the operator that is the Installation, on RKE2 a HelmChartConfig, else the DaemonSet itself. Before it is
    written, the API server is asked for a dry run.
  - What was there before is kept in an annotation of the same object, in the same write, and the command that takes it back is printed. A write that
    meets somebody else's change in between is refused.
  - Then it waits for the pods, node by node, also where an operator has to take the setting over first. Where the DaemonSet replaces pods only once they
    are deleted (C(OnDelete)), it deletes them itself, one at a time, and the next one only when the one before is ready.
  - Where a node that was ready gets worse, what this run has written is put back at once, and the task fails with the node's name.
  - It acts once in a play, for the whole cluster, and refuses a play with C(serial).
  - Where a node registers another address than the table says, it counts as worse.
author:
  - The nodecare contributors (@nodecare)
options:
  method:
    description:
      - V(first-found), V(can-reach=), V(interface=), V(skip-interface=), V(cidr=) or V(kubernetes-internal-ip), as in Calico's E(IP_AUTODETECTION_METHOD).
      - Without it, the one that is set is kept where it is right and steady on all nodes; else that is set which
        P(nodecare.kubernetes.calico_recommend#filter) recommends.
    type: str
    default: ""
  method6:
    description: The same for IPv6. Without it, nothing is done about IPv6 where Calico looks for no IPv6 addresses.
    type: str
    default: ""
  leave_out:
    description: Nodes, by their names in the cluster, that need not be read and may get whatever they get, such as one that is gone.
    type: list
    elements: str
    default: []
  allow_disruption:
    description: Change it also where the registered address of a node whose calico-node is ready becomes another one, so that traffic of its pods breaks.
    type: bool
    default: false
extends_documentation_fragment:
  - nodecare.kubernetes.calico_setting
  - nodecare.kubernetes.cluster_access
seealso:
  - module: nodecare.kubernetes.cluster_check
  - plugin: nodecare.kubernetes.calico_recommend
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the cluster
  nodecare.kubernetes.cluster_check:
  register: nodecare_cluster_check
  run_once: true

- name: Read all nodes
  nodecare.kubernetes.node_check:
    checks: [links, "calico.*"]
  register: nodecare_check
  ignore_unreachable: true

- name: Take the method that is right for all of them
  nodecare.kubernetes.calico_autodetection:

- name: Take that back
  nodecare.kubernetes.calico_autodetection:
    state: as_before
"""

RETURN = r"""
table:
  description: For each node and family, what is C(registered), what its next start takes C(now) and C(then), and what is C(wrong) with that.
  returned: once it was foreseen
  type: list
  elements: dict
  sample:
    - node: worker-1
      family: 4
      registered: 172.18.0.1/16
      now: 172.18.0.1/16
      then: 10.0.0.11/24
      link: eth0
      wanted: 10.0.0.11
      by: its InternalIP
      ready: false
      wrong: ""
      right: true
methods:
  description: What was set, by family. Empty where what was set before is kept.
  returned: once it was foreseen
  type: dict
  sample: {IPv4: kubernetes-internal-ip}
changed:
  description: Whether anything was changed in the cluster, or in check mode would be.
  returned: always
  type: bool
  sample: true
undo:
  description: The command that takes it back by hand. An empty text where there is nothing to take back.
  returned: always
  type: str
  sample: kubectl -n kube-system patch daemonset calico-node --type strategic -p '{}'
notes:
  description: What to know about the place that was changed, such as where else it has to be written to last.
  returned: always
  type: list
  elements: str
  sample: ["Write it into the manifest too, or applying that again takes it back"]
nodes:
  description:
    - The nodes whose calico-node runs with it and is ready, and how many seconds each took once the one before it was through.
    - A node that was deleted from the cluster meanwhile is among them.
  returned: always
  type: dict
  sample: {worker-1: 14.2}
inventory:
  description: The variables of kubespray's inventory that say the same, where kubespray has installed Calico.
  returned: on kubespray
  type: dict
  sample: {calico_ip_auto_method: cidr=10.0.0.0/24}
"""

# This module is implemented by the action plugin of the same name, which asks the API server from the controller.
