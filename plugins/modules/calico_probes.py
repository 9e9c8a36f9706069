#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: calico_probes
short_description: Give calico-node's probes the time that it needs, in the whole cluster
version_added: 0.1.0
description:
  - Sets the delay, period, threshold and timeout of calico-node's probes. Without any of them, by what its start-up is foreseen to take on the node from
    which the API server is farthest (the rule C(calico.liveness_budget)), and C(timeoutSeconds) 10 where a probe that runs a program has less than the
    threshold C(calico_probe_timeout_s).
  - Refuses where no setting of the probes helps, because an answer of the API server takes longer than calico-node itself waits for it.
  - The operator lets nobody change a probe before its version 1.43. What it would drop is seen by the dry run, and nothing is changed then.
  - The setting goes where it belongs. With the operator that is the Installation, on RKE2 a HelmChartConfig, else the DaemonSet itself. Before it is
    written, the API server is asked for a dry run.
  - What was there before is kept in an annotation of the same object, in the same write, and the command that takes it back is printed. A write that
    meets somebody else's change in between is refused.
  - Then it waits for the pods, node by node, also where an operator has to take the setting over first. Where the DaemonSet replaces pods only once they
    are deleted (C(OnDelete)), it deletes them itself, one at a time, and the next one only when the one before is ready.
  - Where a node that was ready gets worse, what this run has written is put back at once, and the task fails with the node's name.
  - It acts once in a play, for the whole cluster, and refuses a play with C(serial).
author:
  - The nodecare contributors (@nodecare)
options:
  liveness:
    description: Of the liveness probe. What is not named stays as it is.
    type: dict
    suboptions:
      delay:
        description: C(initialDelaySeconds).
        type: int
      period:
        description: C(periodSeconds).
        type: int
      failures:
        description: C(failureThreshold).
        type: int
      timeout:
        description: C(timeoutSeconds).
        type: int
  readiness:
    description: Of the readiness probe.
    type: dict
    suboptions:
      delay:
        description: C(initialDelaySeconds).
        type: int
      period:
        description: C(periodSeconds).
        type: int
      failures:
        description: C(failureThreshold).
        type: int
      timeout:
        description: C(timeoutSeconds).
        type: int
  startup:
    description: Of the startup probe, which only newer operators give it.
    type: dict
    suboptions:
      delay:
        description: C(initialDelaySeconds).
        type: int
      period:
        description: C(periodSeconds).
        type: int
      failures:
        description: C(failureThreshold).
        type: int
      timeout:
        description: C(timeoutSeconds).
        type: int
extends_documentation_fragment:
  - nodecare.kubernetes.calico_setting
  - nodecare.kubernetes.cluster_access
seealso:
  - module: nodecare.kubernetes.cluster_check
  - module: nodecare.kubernetes.node_check
"""

EXAMPLES = r"""
- name: Read the cluster
  nodecare.kubernetes.cluster_check:
  register: nodecare_cluster_check
  run_once: true

- name: Measure from each node how far the API server is
  nodecare.kubernetes.node_check:
    checks: [calico.liveness_budget]
  register: nodecare_check

- name: Give calico-node the time that it needs
  nodecare.kubernetes.calico_probes:

- name: Or so much
  nodecare.kubernetes.calico_probes:
    liveness: {failures: 18, timeout: 10}
"""

RETURN = r"""
probes:
  description: What was asked for, by probe and field.
  returned: once it is known
  type: dict
  sample: {livenessProbe: {failureThreshold: 12}}
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
  sample: {calico_node_livenessprobe_timeout: 10}
"""

# This module is implemented by the action plugin of the same name, which asks the API server from the controller.
