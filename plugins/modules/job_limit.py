#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_limit
short_description: Refuse a job of AWX that does not say which nodes it is for
version_added: 0.1.0
description:
  - In AWX and Automation Platform an empty limit means all hosts, and a form is launched with one click. So a job that repairs nodes is refused
    there without a limit, with one that means every host of the inventory such as V(all), and where the limit was not typed once more as
    O(confirm).
  - A group's name is a limit, even where all hosts are in it.
  - A job that is one slice of a job template is refused, too, for what guards a repair would see only the hosts of its own slice. AWX tells a
    job nothing of its slice; slices are known by the workflow that AWX makes of them, which has the template's own name. A single slice that is
    launched once more by itself cannot be told from another job, so no job template that repairs may have slices.
  - In every other run it does nothing.
author:
  - The nodecare contributors (@nodecare)
options:
  confirm:
    description: The limit once more, as a person has typed it. Not looked at in check mode.
    type: str
    default: ""
extends_documentation_fragment:
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.node_gate
  - module: nodecare.kubernetes.node_lease
"""

EXAMPLES = r"""
- name: See that a job of AWX says which nodes it is for
  nodecare.kubernetes.job_limit:
    confirm: "{{ nodecare_confirm | default(omit) }}"
"""

RETURN = r"""
job:
  description: The number of the job of AWX; empty in every other run.
  returned: always
  type: str
  sample: "42"
limit:
  description: The limit of this run.
  returned: always
  type: str
  sample: worker-3
msg:
  description: Why it is refused, and what to do.
  returned: on failure
  type: str
  sample: this job has no limit, and repairs nothing. Name the nodes that are meant, or their group, as the limit of the job
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
