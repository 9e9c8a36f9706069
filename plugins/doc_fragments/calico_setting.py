# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What all modules have in common that change one of Calico's settings for the whole cluster."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) sets it. V(as_before) takes back what this module has set, to what was there before its first change.
      - With V(as_before) nothing is foreseen; where somebody has changed the setting since, nothing is touched.
    type: str
    choices: [present, as_before]
    default: present
  results:
    description: The variable in which each host keeps the result of M(nodecare.kubernetes.node_check).
    type: str
    default: nodecare_check
  cluster_results:
    description: The variable in which M(nodecare.kubernetes.cluster_check) has left its result, read with the same access.
    type: str
    default: nodecare_cluster_check
  policy:
    description: As in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  even_on_kubespray:
    description:
      - Change the DaemonSet also where kubespray has made it, whose next run takes that back unless its inventory says the same.
      - Without it the variables for the inventory are returned there, and nothing is changed.
    type: bool
    default: false
  within:
    description: How many seconds a node may take until its calico-node is ready again; and an operator until it has taken the setting over.
    type: float
    default: 300.0
  every:
    description: How many seconds lie between two looks.
    type: float
    default: 5.0
  timeout:
    description: How many seconds the API server may take for one answer.
    type: float
    default: 20.0
notes:
  - Where this run holds the cluster's lock (M(nodecare.kubernetes.node_lease)), it is renewed while nodes are waited for. Where another run has it by
    then, the module fails.
attributes:
  check_mode:
    support: full
    description: The API server is asked for a dry run, so that its admission speaks, too. No pod is replaced.
  diff_mode:
    support: full
    description: The setting in the words of the object that owns it.
"""
