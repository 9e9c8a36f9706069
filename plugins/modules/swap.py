#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: swap
short_description: Turn swap off on a Kubernetes node, now and for good
version_added: 0.1.0
description:
  - Turns off all swap that is on, and stops every source that would turn it on again at the next boot, each by the least that does it.
    The sources are found by the same probe that M(nodecare.kubernetes.node_check) judges, and the same probe is asked what the next boot
    will find once the changes are made, before they are made.
  - Never touches storage. Swap partitions, files and signatures stay as they are, and so do partition tables and the boot loader.
  - Refuses, with the reason and before anything is changed, where the kubelet is told to tolerate swap, in containers, on systems that are
    declared elsewhere (NixOS, ostree), where what is in swap does not fit into memory, where a source is of a kind that cannot be stopped
    here, and where files may not be changed.
  - Everything that it changes is noted on the node below C(/var/lib/nodecare/journal) before it is changed, with the earlier bytes.
    M(nodecare.kubernetes.undo) takes it back.
  - C(swapoff) runs beside Ansible's connection, one device after the other. While it takes its time, the task says how much is left.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description: Swap is to be off, now and after every boot.
    type: str
    choices: [absent]
    default: absent
  even_if_tolerated:
    description: Turn swap off also where the kubelet is told to tolerate it, or where its settings cannot be read.
    type: bool
    default: false
  allow_disruption:
    description:
      - Turn swap off also where more than 1 GiB is in it. To move that back takes minutes, in which all that runs on the node is slow; it
        is better to drain the node before.
      - Where it would not fit into memory, this does not help.
    type: bool
    default: false
  reserve_mib:
    description: How many MiB of memory must stay available above the kubelet's eviction limit after swapoff.
    type: int
    default: 500
  reserve_percent:
    description: How many percent of the memory must stay available after swapoff, if that is more.
    type: float
    default: 10.0
  wait:
    description:
      - How many seconds to wait for swapoff, in all.
      - When they are over the task fails, but swapoff goes on; the same task waits for it again.
    type: float
    default: 600.0
  timeout:
    description: How many seconds each look at a file system or program may take.
    type: float
    default: 5.0
attributes:
  check_mode:
    support: full
    description: Nothing is changed. What would be done and what the next boot would find is worked out as in a real run.
  diff_mode:
    support: full
    description: Only lines that change are shown, since the rest of a file such as C(/etc/fstab) may hold secrets.
notes:
  - "How each source is stopped:"
  - A line of C(/etc/fstab) becomes a comment that begins with C(# off by nodecare:); no other byte of the file changes.
  - A swap partition that systemd finds by its GPT type is stopped by a mask of C(swap.target), since systemd 244 all that pulls it in. The
    other ways are worse. The partition's attribute for it would be a write to the table of the root disk, a mask of the generator would
    also take the mounts away that it makes of other partitions, an option for the kernel means another boot loader configuration, and the
    unit of the partition has another name after some updates. Before systemd 244, where a device pulls in its swap by itself, the
    generator is masked, or the partition's unit where the generator makes mounts too.
  - A swap unit, and a service such as zramswap, dphys-swapfile, swapspace or systemd-swap is masked. Where its file lies in
    C(/etc/systemd/system), where a mask would have to replace it, the links that want it are removed.
  - zram-generator, rpi-swap-generator and generators that are not known here are masked, or only their units where they make more than swap.
  - The Azure agent gets C(ResourceDisk.EnableSwap=n), and cloud-init a file that says C(size 0) last. Swap that an instance's own user
    data ask for, and scripts that call swapon, are only named, in RV(left).
seealso:
  - module: nodecare.kubernetes.undo
  - module: nodecare.kubernetes.node_check
"""

EXAMPLES = r"""
- name: Swap is off, now and for good
  nodecare.kubernetes.swap:
  become: true

- name: On a node that was drained before, with up to an hour for a slow disk
  nodecare.kubernetes.swap:
    allow_disruption: true
    wait: 3600
  become: true
"""

RETURN = r"""
changes:
  description: Each path that was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: The path., type: str, sample: /etc/fstab}
    why: {description: What it has to do with swap., type: str, sample: line 3 names UUID=1-2}
    what: {description: What becomes of it., type: str, sample: line 3 changes}
was_active:
  description: The swap areas that were on.
  returned: success
  type: list
  elements: dict
  sample: [{device: /dev/sda2, kind: partition, size_kib: 524284, used_kib: 0, priority: -2}]
active:
  description: Those that are still on; none, when the task succeeds.
  returned: success
  type: list
  elements: dict
  sample: []
for_good:
  description:
    - V(predicted), when the probe finds nothing that would turn swap on at the next boot.
    - V(proven), when the node has booted since this module has last changed something, and swap is still off.
  returned: success
  type: str
  sample: predicted
left:
  description: Scripts, services and settings of an instance that may turn swap on some day, which nothing but their reader can tell.
  returned: success
  type: list
  elements: dict
  sample: [{kind: script, by: /etc/rc.local, line: 3}]
journal:
  description: The name of the entry that M(nodecare.kubernetes.undo) takes back; null where nothing was changed.
  returned: success
  type: str
  sample: 20261118T201500Z-00-swap
waiting:
  description: The devices that swapoff is still at, with what is left in them; only the task itself ever sees any.
  returned: success
  type: list
  elements: dict
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._changes import Unchangeable
from ..module_utils._journal import Busy
from ..module_utils._repairs import Failed, Refused, root_only
from ..module_utils._repairs.swap import Settings, absent


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["absent"], "default": "absent"},
            "even_if_tolerated": {"type": "bool", "default": False},
            "allow_disruption": {"type": "bool", "default": False},
            "reserve_mib": {"type": "int", "default": 500},
            "reserve_percent": {"type": "float", "default": 10.0},
            "wait": {"type": "float", "default": 600.0},
            "timeout": {"type": "float", "default": 5.0},
        },
        supports_check_mode=True,
    )
    given = module.params
    settings = Settings(given["even_if_tolerated"], given["allow_disruption"], given["reserve_mib"], given["reserve_percent"], given["timeout"])
    try:
        root_only()
        answer = absent(settings, module.check_mode)
    except (Refused, Busy) as why:
        module.fail_json(msg="Refused, and nothing was changed: %s" % why, refused=True)
    except Unchangeable as why:
        module.fail_json(msg="Nothing was changed: %s" % why)
    except Failed as why:
        module.fail_json(msg=str(why), changed=True)
    for warning in answer.pop("warnings"):
        module.warn(warning)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
