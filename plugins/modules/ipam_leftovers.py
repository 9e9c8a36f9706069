#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipam_leftovers
short_description: Move addresses of an earlier pod network out of calico-node's way
version_added: 0.1.0
description:
  - Renames C(/var/lib/cni/networks/k8s-pod-network), which an earlier pod network has left and which calico-node would try to migrate, to
    C(/var/lib/cni/k8s-pod-network.left-over). It needs no cluster. Where there is one, M(nodecare.kubernetes.unstick_ipam) also asks what
    calico-node is at, and frees the datastore.
  - Refuses, with the reason and before anything is changed, where an address is still in use, by a route or by a container that runs; where
    the directory is that of the node's own CNI configuration, or that cannot be seen; and where a migration is at work and gets on.
  - The change is noted on the node below C(/var/lib/nodecare/journal); M(nodecare.kubernetes.undo) brings the directory back.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description: The directory is not to be there.
    type: str
    choices: [absent]
    default: absent
  timeout:
    description: How many seconds each look at a file system or program may take.
    type: float
    default: 5.0
attributes:
  check_mode:
    support: full
    description: Nothing is changed.
  diff_mode:
    support: full
    description: Which directory gets which name.
seealso:
  - module: nodecare.kubernetes.undo
  - module: nodecare.kubernetes.unstick_ipam
"""

EXAMPLES = r"""
- name: A machine that was in another cluster before joins without its addresses
  nodecare.kubernetes.ipam_leftovers:
  become: true
"""

RETURN = r"""
path:
  description: The directory.
  returned: success
  type: str
  sample: /var/lib/cni/networks/k8s-pod-network
moved_to:
  description: Its new name; null where there was nothing to move.
  returned: success
  type: str
  sample: /var/lib/cni/k8s-pod-network.left-over
entries:
  description: How many addresses it keeps.
  returned: success
  type: int
  sample: 12
earlier:
  description: The entries of the journal of earlier runs that still stand.
  returned: success, and where it refuses
  type: list
  elements: str
  sample: []
journal:
  description: The name of the entry that M(nodecare.kubernetes.undo) takes back; null where nothing was changed.
  returned: success
  type: str
  sample: 20261118T201500Z-00-ipam
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._changes import Unchangeable
from ..module_utils._journal import Busy
from ..module_utils._repairs import Failed, Refused, root_only
from ..module_utils._repairs.ipam import absent, earlier


def main():
    module = AnsibleModule(
        argument_spec={"state": {"type": "str", "choices": ["absent"], "default": "absent"}, "timeout": {"type": "float", "default": 5.0}},
        supports_check_mode=True,
    )
    said = {}
    try:
        root_only()
        said["earlier"] = earlier()
        answer = absent(module.check_mode, deadline=module.params["timeout"])
    except (Refused, Busy) as why:
        module.fail_json(msg="Refused, and nothing was changed: %s" % why, refused=True, **said)
    except Unchangeable as why:
        module.fail_json(msg="Nothing was changed: %s" % why, refused=True)
    except Failed as why:
        module.fail_json(msg=str(why), changed=True)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
