#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: calico_restart
short_description: Start calico-node anew on one node
version_added: 0.1.0
description:
  - Deletes the calico-node pod of one node, this very one and not another that has taken its name, and waits until the one that its DaemonSet makes in its
    place is ready. What the node forwards goes on meanwhile, but for what the new start itself changes.
  - While it waits it says what the new pod is at, so that what only takes its time, such as an image that is being pulled or init containers at work, is
    not taken for a fault.
author:
  - The nodecare contributors (@nodecare)
options:
  node:
    description: The name of the Node in the cluster.
    type: str
    required: true
  within:
    description: After how many seconds to give up and fail, if the new pod is not ready. It is left to its DaemonSet then.
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
attributes:
  check_mode:
    support: full
    description: The API server is asked for a dry run. The pod stays.
  diff_mode:
    support: none
    description: A pod is replaced by its like, so there is nothing to compare.
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
seealso:
  - module: nodecare.kubernetes.calico_autodetection
"""

EXAMPLES = r"""
- name: Have a node's address looked for again
  nodecare.kubernetes.calico_restart:
    node: worker-3
"""

RETURN = r"""
pod:
  description: The pod that was deleted.
  returned: success
  type: str
  sample: calico-node-abcde
was_ready:
  description: Whether it was ready.
  returned: success
  type: bool
  sample: false
new_pod:
  description: The one that followed.
  returned: success, but in check mode
  type: str
  sample: calico-node-fghij
seconds:
  description: How long it took until that one was ready.
  returned: success, but in check mode
  type: float
  sample: 11.3
"""

# This module is implemented by the action plugin of the same name, which asks the API server from the controller.
