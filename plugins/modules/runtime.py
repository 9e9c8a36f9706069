#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime
short_description: Bring back a container runtime that does not answer
version_added: 0.1.0
description:
  - Restarts what is ill and nothing else, in the order in which it stands on each other; containerd, docker and its link to containerd,
    cri-dockerd, CRI-O, or k3s, rke2, k0s and MicroK8s with the containerd that they embed, then the kubelet if it does not come back by
    itself. What is ill is found by the same probes that M(nodecare.kubernetes.node_check) judges.
  - A daemon that a signal has stopped is only told to go on (C(SIGCONT)); it is restarted where that was not all.
  - Says whether containers would end with the restart, and refuses then, unless O(drained=true); see RV(kills_pods).
  - Refuses, with the reason and before anything is changed, where a restart does not help or would make it worse; a daemon that waits for
    the kernel or that somebody traces, a full file system, a configuration that is refused, a unit that is masked.
  - Keeps before a restart what the daemon can tell about itself (the stacks of its goroutines, where it handles C(SIGUSR1)) in the journal's
    entry below C(/var/lib/nodecare/journal). Signals only ever go to a main process, since those to a whole unit reach what holds the containers.
  - Notes which containers run before and compares them afterwards, as the kernel sees them, which is the same whether a runtime answers or not.
  - Believes it when the unit is active with a new main process, the runtime answers what a kubelet asks, its network is ready where one is
    set up, a kubelet that was well is well, and nothing is restarted again for a while.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description: Runtimes that do not answer are restarted; one that answers is left as it is.
    type: str
    choices: [restarted]
    default: restarted
  drained:
    description: Say that the node was drained, so that containers may end.
    type: bool
    default: false
  settle:
    description: For how many seconds nothing may be restarted again until it is believed.
    type: float
    default: 30.0
  wait:
    description:
      - How many seconds to wait until it is believed, in all.
      - When they are over the task fails; the same task goes on with it.
    type: float
    default: 300.0
  timeout:
    description: How many seconds each look at a daemon or program may take. What does not answer for so long is ill.
    type: float
    default: 5.0
attributes:
  check_mode:
    support: full
    description: Nothing is changed. What would be done is worked out as in a real run, but not whether it is enough.
  diff_mode:
    support: full
    description: Shows what is ill and what is done about it.
notes:
  - "Containers end with a restart where RV(kills_pods) says one of these:"
  - The unit has another C(KillMode) than C(process), and what holds the containers belongs to it. CRI-O's containers do not belong to its unit.
  - docker runs without C(live-restore), and is restarted itself or together with containerd because its unit is bound to it.
  - containerd 1.6.9 to 1.6.14 forget their pods' addresses at a restart, so that the kubelet makes the pods anew.
  - It cannot be told.
seealso:
  - module: nodecare.kubernetes.node_check
  - module: nodecare.kubernetes.node_drain
"""

EXAMPLES = r"""
- name: What would be restarted, and would pods end with it?
  nodecare.kubernetes.runtime:
    drained: true
  check_mode: true
  register: foreseen
  become: true

- name: The container runtime answers
  nodecare.kubernetes.runtime:
  become: true
"""

RETURN = r"""
ill:
  description: Each runtime that did not answer, and how that showed.
  returned: success
  type: list
  elements: dict
  sample: [{runtime: containerd, unit: containerd.service, why: it accepted the connection but gave no answer}]
steps:
  description: What was done, or in check mode would be, in this order.
  returned: success
  type: list
  elements: dict
  contains:
    act: {description: "V(continue), V(restart) or V(start).", type: str, sample: restart}
    unit: {description: The unit., type: str, sample: containerd.service}
    why: {description: What was wrong with it., type: str, sample: it accepted the connection but gave no answer}
    unless_well: {description: Whether it is only done where it does not come back by itself., type: bool, sample: false}
    done: {description: Whether it was done; null where it was not., type: bool, sample: true}
    seconds: {description: How long it took until it was well; null where it was not done., type: float, sample: 1.4}
    killed: {description: Whether its main process had to be killed; null where it had not., type: bool, sample: true}
kills_pods:
  description: Why containers end with that; empty where they do not. Also returned where the module refuses because of it.
  returned: success, and where it refuses because of it
  type: list
  elements: str
  sample: ["docker runs 12 containers without live-restore: its restart stops all of them"]
containers:
  description: How many containers ran before and after, and which of them are gone or new; null in check mode and where nothing was done.
  returned: success
  type: dict
  sample: {before: 12, after: 12, gone_count: 0, new_count: 0, gone: [], new: []}
silent_s:
  description: How many seconds it took from the first look until the last runtime was well; null where nothing was done.
  returned: success
  type: float
  sample: 3.5
journal:
  description: The name of the journal's entry, which holds what was done and what the daemons told; null where nothing was done.
  returned: success
  type: str
  sample: 20261118T201500Z-00-runtime
waiting:
  description: What is waited for; only the task itself ever sees any.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._changes import Unchangeable
from ..module_utils._journal import Busy
from ..module_utils._repairs import Failed, Refused, root_only
from ..module_utils._repairs.runtime import DrainFirst, Settings, restarted


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["restarted"], "default": "restarted"},
            "drained": {"type": "bool", "default": False},
            "settle": {"type": "float", "default": 30.0},
            "wait": {"type": "float", "default": 300.0},
            "timeout": {"type": "float", "default": 5.0},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        root_only()
        answer = restarted(Settings(given["drained"], given["settle"], given["timeout"]), module.check_mode)
    except DrainFirst as why:
        module.fail_json(msg="Refused, and nothing was changed: %s" % why, refused=True, kills_pods=why.reasons)
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
