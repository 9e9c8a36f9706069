#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: undo
short_description: Take back what repairs changed on a node
version_added: 0.1.0
description:
  - Reads the journal that the repairs of this collection keep on the node, below C(/var/lib/nodecare/journal), and makes each path what it
    was before, the newest entry first. A file gets its very bytes back.
  - Where somebody has changed other lines of a file since, only the lines of the repair are taken back. Where the same lines were changed,
    or where a link or file is by now something else, nothing at all is taken back, and the message says where the earlier bytes are.
  - Swap that the repair turned off is turned on again, and services that it stopped are started, as long as the node has not booted since. While
    a swapoff is still at work, nothing at all is taken back.
  - A bridge that was removed is made again with all its settings and addresses, as long as the node has not booted since; a network of
    docker's by docker, also after that. Where a link or network of that name is there by now and is another, nothing at all is taken back.
  - Also takes back a repair that was cut off in its middle.
author:
  - The nodecare contributors (@nodecare)
options:
  repair:
    description: Take back only what this repair did, such as V(swap) or V(bridge).
    type: str
  entry:
    description: Take back only this entry of the journal, as RV(nodecare.kubernetes.swap#module:journal) named it.
    type: str
attributes:
  check_mode:
    support: full
    description: Nothing is changed. What would be taken back is worked out as in a real run.
  diff_mode:
    support: full
    description: Only lines that change are shown, since the rest of a file such as C(/etc/fstab) may hold secrets.
seealso:
  - module: nodecare.kubernetes.swap
  - module: nodecare.kubernetes.bridge
"""

EXAMPLES = r"""
- name: As it was before all repairs
  nodecare.kubernetes.undo:
  become: true

- name: Swap as it was
  nodecare.kubernetes.undo:
    repair: swap
  become: true
"""

RETURN = r"""
entries:
  description: The entries of the journal that were taken back, or in check mode would be, the newest first.
  returned: success
  type: list
  elements: str
  sample: [20261118T201500Z-00-swap]
changes:
  description: Each path that was changed, or in check mode would be.
  returned: success
  type: list
  elements: dict
  contains:
    path: {description: The path., type: str, sample: /etc/fstab}
    why: {description: What the repair had to do with it., type: str, sample: "as it was before: line 3 names UUID=1-2"}
    what: {description: What becomes of it., type: str, sample: line 3 changes}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._changes import Unchangeable
from ..module_utils._journal import Busy, Conflict
from ..module_utils._repairs import Failed, Refused, root_only
from ..module_utils._repairs.undo import take_back


def main():
    module = AnsibleModule(argument_spec={"repair": {"type": "str"}, "entry": {"type": "str"}}, supports_check_mode=True)
    try:
        root_only()
        answer = take_back(module.params["repair"], module.params["entry"], module.check_mode)
    except (Refused, Busy, Conflict) as why:
        module.fail_json(msg="Refused, and nothing was changed: %s" % why, refused=True)
    except Unchangeable as why:
        module.fail_json(msg="Nothing was changed: %s" % why)
    except Failed as why:
        module.fail_json(msg="%s. What else there was is taken back; to try this again, undo once more" % why, changed=True)
    for warning in answer.pop("warnings"):
        module.warn(warning)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
