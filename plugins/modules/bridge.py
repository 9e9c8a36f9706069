#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bridge
short_description: Remove stray bridges from a Kubernetes node
version_added: 0.1.0
description:
  - Removes bridges that could be taken for the node's address, each by its owner's means. A network of docker's is removed by docker, one of
    podman's or nerdctl's by the end of its file, and any other link by the kernel.
  - Refuses, with all reasons and before anything is changed, where somebody needs a bridge. That is a container, also one that does not run,
    a virtual machine, a port, another link, a route or the default gateway, a rule, a socket that listens on its address, the kubelet or
    Calico itself. Refuses too what libvirt, LXD, Incus or the system's own configuration keeps, and says how these let it go.
  - Everything that it removes is noted on the node below C(/var/lib/nodecare/journal) before it is removed.
    M(nodecare.kubernetes.undo) brings it back, a link with all its settings and addresses and at its place in the kernel's order, and a
    network of docker's with its name, subnets, gateways, options and labels.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description: The bridges are to be gone.
    type: str
    choices: [absent]
    default: absent
  name:
    description:
      - Which bridges. What is not there is no error.
      - When it is not given, all of which the rule C(links.stray_bridge) says that they fail. Bridges of which nobody knows whose they are,
        and that are only warned of, have to be named.
    type: list
    elements: str
  allow_default_bridge:
    description:
      - Remove also docker's default bridge, C(docker0), and tell docker in C(/etc/docker/daemon.json) to make none.
      - Without it, containers that name no network get none from docker's next start on.
    type: bool
    default: false
  policy:
    description: The policy by which it is judged which bridges are stray, as in M(nodecare.kubernetes.node_check).
    type: dict
    default: {}
  timeout:
    description: How many seconds each look at a daemon may take.
    type: float
    default: 5.0
attributes:
  check_mode:
    support: full
    description: Nothing is changed. What would be removed, and whether it would be refused, is worked out as in a real run.
  diff_mode:
    support: full
    description: Shows each link and network that goes. Of a file only lines that change are shown, since the rest may hold secrets.
notes:
  - A bare link that no file declares and that no tool keeps does not outlive a boot, so M(nodecare.kubernetes.undo) brings it back only until then.
  - Docker gives a network that is made again a new id, and names its link after that where no option names it.
seealso:
  - module: nodecare.kubernetes.undo
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.stray_bridges
    plugin_type: filter
"""

EXAMPLES = r"""
- name: No bridge can be taken for the node's address
  nodecare.kubernetes.bridge:
  become: true

- name: Two bridges that nobody needs any more
  nodecare.kubernetes.bridge:
    name: [br-3a10a9384428, br0]
  become: true
"""

RETURN = r"""
removed:
  description: The bridges that were removed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    bridge: {description: The link's name., type: str, sample: br-3a10a9384428}
    by: {description: By whose means., type: str, sample: docker network rm shop_default}
    subnets: {description: The addresses that it held., type: list, elements: str, sample: [172.18.0.1/16]}
changes:
  description: Each path that was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: The path., type: str, sample: /etc/containers/networks/lab.json}
    why: {description: What it has to do with a bridge., type: str, sample: podman makes podman1 for its network lab}
    what: {description: What becomes of it., type: str, sample: is removed}
for_good:
  description:
    - V(predicted), when nothing on the node is known that would make a bridge again at the next boot.
    - V(proven), when nothing was to be removed and the node has booted since this module last removed something.
  returned: success
  type: str
  sample: predicted
left:
  description: What may make a bridge again some day, which only its user can tell.
  returned: success
  type: list
  elements: dict
  sample: [{kind: compose, by: the next docker compose up of the project shop}]
journal:
  description: The name of the entry that M(nodecare.kubernetes.undo) takes back; null where nothing was changed.
  returned: success
  type: str
  sample: 20261118T201500Z-00-bridge
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._changes import Unchangeable
from ..module_utils._journal import Busy
from ..module_utils._repairs import Failed, Refused, root_only
from ..module_utils._repairs.bridge import Settings, absent


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["absent"], "default": "absent"},
            "name": {"type": "list", "elements": "str"},
            "allow_default_bridge": {"type": "bool", "default": False},
            "policy": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 5.0},
        },
        supports_check_mode=True,
    )
    given = module.params
    settings = Settings(tuple(given["name"] or ()), given["allow_default_bridge"], given["timeout"])
    try:
        root_only()
        answer = absent(settings, module.check_mode)
    except (Refused, Busy) as why:
        module.fail_json(msg="Refused, and nothing was changed: %s" % why, refused=True)
    except Unchangeable as why:
        module.fail_json(msg="Nothing was changed: %s" % why, refused=True)
    except Failed as why:
        module.fail_json(msg=str(why), changed=True)
    for warning in answer.pop("warnings"):
        module.warn(warning)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
