#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_lease
short_description: Hold the lock by which only one run repairs nodes of a cluster
version_added: 0.1.0
description:
  - Takes, renews or gives back the Lease C(nodecare-repair) in the namespace C(kube-system), so that of two runs never both are at work.
  - All tasks of one C(ansible-playbook) are one run. The first to ask takes the Lease, each later one renews it.
  - A Lease of another run is left alone, and taken over only once it is over, that is O(duration) and another 30 s after it was renewed last.
    Whether it is, the API server's own clock tells. Whoever is quicker wins, also where two are in the same moment.
  - Where another run holds it the task fails, and says who that is, since when and what for, until when at most, and what to do.
author:
  - The nodecare contributors (@nodecare)
options:
  state:
    description:
      - V(held), when this run is to hold the lock. Where it does already, the Lease is renewed.
      - V(free), when this run is through. The Lease of another run is left alone, which the result says.
    type: str
    choices: [held, free]
    default: held
  repair:
    description: What the lock is held for, for others to read.
    type: str
    default: ""
  run:
    description:
      - What this run is called, so that more than one C(ansible-playbook) are one run.
      - Where it is not given, it names who runs it and where, or the job of AWX, and has a part of its own for each process.
    type: str
  duration:
    description: For how many seconds the lock is held from now on, if it is not renewed. At least 60.
    type: int
    default: 1800
  within:
    description: How many seconds to wait for another run to give the lock back, or to lose it. V(0) is not to wait.
    type: float
    default: 0.0
  timeout:
    description: How many seconds an API server that is busy, slow or out of reach is asked again.
    type: float
    default: 20.0
attributes:
  check_mode:
    support: full
    description: The API server is asked for a dry run. Another run's lock is respected as well, and nobody's is taken.
  diff_mode:
    support: full
    description: Who held the lock, and who does.
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
notes:
  - The rights that it needs are in the collection's C(docs/nodecare-repairer.yml).
seealso:
  - module: nodecare.kubernetes.node_cordon
"""

EXAMPLES = r"""
- name: Be the only run that repairs nodes of this cluster
  nodecare.kubernetes.node_lease:
    repair: restart_runtime
  run_once: true

- name: Wait up to an hour for another run
  nodecare.kubernetes.node_lease:
    repair: restart_runtime
    within: 3600
  run_once: true

- name: Let others go on
  nodecare.kubernetes.node_lease:
    state: free
  run_once: true
"""

RETURN = r"""
run:
  description: What this run is called.
  returned: when it is known whom to ask
  type: str
  sample: admin@bastion-4711-5e1f0c2a
holder:
  description: Who this run is, for others to read.
  returned: when it is known whom to ask
  type: str
  sample: admin@bastion, process 4711
held:
  description: Whether this run holds the lock now, or in check mode would.
  returned: when it is known whom to ask
  type: bool
  sample: true
how:
  description: V(created), V(renewed), V(taken_over), V(freed), or V(nothing) where nothing was done. A renewal is no change.
  returned: when it is known whom to ask
  type: str
  sample: created
lease:
  description: The Lease as it is now, this run's or that of another run; null where there is none.
  returned: when it is known whom to ask
  type: dict
  contains:
    run: {description: Which run holds it., type: str, sample: admin@bastion-4711-5e1f0c2a}
    holder: {description: Who that is., type: str, sample: "admin@bastion, process 4711"}
    repair: {description: What for., type: str, sample: restart_runtime}
    duration: {description: For how many seconds from its last renewal on., type: int, sample: 1800}
    since: {description: When that run has taken it., type: str, sample: "2026-11-18T21:04:05Z"}
    renewed: {description: When it was renewed last., type: str, sample: "2026-11-18T21:09:40Z"}
    until: {description: When it is over if it is not renewed., type: str, sample: "2026-11-18T21:39:40Z"}
before:
  description: The Lease as it was, in the same form; null where there was none.
  returned: changed
  type: dict
  sample: null
msg:
  description: How it is, in one sentence.
  returned: always
  type: str
  sample: this run holds the cluster's lock until 2026-11-18T21:39:40Z, and longer when it renews it
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
