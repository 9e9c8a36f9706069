# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that foresees which address Calico takes for a node's."""

from __future__ import annotations

DOCUMENTATION = r"""
name: calico_autodetect
short_description: Foresee which address Calico takes for a node's
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - Tells which address calico-node would register for a node, why, and what could change that, before it is started and
    without a cluster.
  - Goes through the links as Calico's own code does, in the order of the kernel's list, backwards, whether a link is up or
    not, with the exclusions of the version in question and with Go's regular expressions. Tests compare it with Calico's own
    code of several versions on thousands of random layouts.
  - V(can-reach=) is answered from the main routing table, unless O(reached) is given. With policy routing the node may
    answer otherwise.
positional: method
options:
  _input:
    description: Facts of one node, as RV(nodecare.kubernetes.node_check#module:facts); the area C(links) must be among them.
    type: dict
    required: true
  method:
    description:
      - The environment variable E(IP_AUTODETECTION_METHOD) of calico-node, or E(IP6_AUTODETECTION_METHOD) with O(family=6).
      - V(first-found), V(interface=), V(skip-interface=), V(cidr=), V(can-reach=) or V(kubernetes-internal-ip).
    type: str
    default: first-found
  version:
    description:
      - The Calico version, such as V(3.24.5), from 3.2 on. Without its last number, the first release is meant.
      - Without a version, the newest one that is known is meant.
    type: str
    default: ""
  family:
    description: Whether the IPv4 or the IPv6 address is asked for.
    type: int
    choices: [4, 6]
    default: 4
  internal_ip:
    description:
      - The InternalIPs of the node's Kubernetes object, in its order, for V(kubernetes-internal-ip).
      - Without it, there is no such object.
    type: list
    elements: str
  stored:
    description:
      - The address that Calico keeps for this node now, as in the annotation C(projectcalico.org/IPv4Address).
      - Without it, the node was never started.
    type: str
    default: ""
  ip_env:
    description: The environment variable E(IP) of calico-node, or E(IP6) with O(family=6).
    type: str
    default: autodetect
  others:
    description: The addresses that Calico keeps for the other nodes, by their names.
    type: dict
    default: {}
  stored_links:
    description:
      - What Calico 3.31 and newer keeps about the node's links, from the annotation C(projectcalico.org/Interfaces).
      - While both it and the address stay the same, the other nodes are not compared. Without it, it counts as changed.
    type: list
    elements: dict
    default: []
  reached:
    description: For V(can-reach=), the source address that the node itself gives, for example by C(ip route get).
    type: str
    default: ""
  poll_interval:
    description: The environment variable E(AUTODETECT_POLL_INTERVAL) of calico-node.
    type: str
    default: ""
seealso:
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.stray_bridges
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the links
  nodecare.kubernetes.node_check:
    checks: [links]
  register: nodecare_check

- name: Refuse to join a node for which Calico would take another address
  ansible.builtin.assert:
    that: (nodecare_check.facts | nodecare.kubernetes.calico_autodetect(version='3.22.0')).address is match('10[.]0[.]')

- name: See what another method would find, and what could change that
  ansible.builtin.debug:
    var: nodecare_check.facts | nodecare.kubernetes.calico_autodetect('interface=^eth0$', '3.31.0')

- name: Know before a restart whether calico-node would end
  ansible.builtin.debug:
    msg: "{{ foreseen.crash.message }}"
  when: foreseen.crash
  vars:
    foreseen: "{{ nodecare_check.facts | nodecare.kubernetes.calico_autodetect('cidr=10.0.0.0/8', '3.31.0', stored='10.0.2.15/24') }}"
"""

RETURN = r"""
_value:
  description: What calico-node would do at its next start.
  type: dict
  contains:
    address:
      description: The address that Calico keeps for the node from then on, or an empty text.
      type: str
      sample: 172.18.0.1/16
    link:
      description: The link that holds it. None where no link does.
      type: str
      sample: br-3a10a9384428
    source:
      description: Where it comes from. V(detected), V(stored), V(environment), or V(nothing).
      type: str
      sample: detected
    detected:
      description: What the method finds, whether or not it is asked for and whatever becomes of it. An empty text where it finds nothing.
      type: str
      sample: 172.18.0.1/16
    changed:
      description: Whether it differs from O(stored). None where that is not known.
      type: bool
    candidates:
      description: The links and addresses in the order in which Calico goes through them, with what it makes of each.
      type: list
      elements: dict
      sample:
        - link: docker0
          address: 172.17.0.1/16
          taken: false
          why: its name is excluded by docker.*
        - link: eth0
          address: 10.0.2.15/24
          taken: true
          why: it is the first that qualifies, from the end of the kernel's list
    log:
      description: The warnings and errors that calico-node would log about it, word for word.
      type: list
      elements: str
    crash:
      description: Where calico-node would end, the line that says why, and whether the stored address is taken back. None otherwise.
      type: dict
      contains:
        message:
          description: The line of its log that says why.
          type: str
          sample: Calico node 'n1' is already using the IPv4 address 10.0.2.15.
        exit_code:
          description: Its exit code.
          type: int
          sample: 1
        takes_back:
          description: Whether it removes the stored address before that.
          type: bool
    conflicts:
      description: Other nodes with the same address.
      type: list
      elements: str
    stable:
      description: Whether nothing is known that could change the address, but its own removal. None where nothing was detected.
      type: bool
    threats:
      description: What could change it.
      type: list
      elements: str
      sample: [a docker network makes br-0123456789ab with an IPv4 address]
    runner_up:
      description: What would be taken if the address went away, as C(address) and C(link). None where nothing would.
      type: dict
    poll_seconds:
      description: How often the running calico-node looks again, and acts, without a restart. None where it does not.
      type: float
      sample: 60.0
    unknown:
      description: Why the facts do not tell the answer, or an empty text. The address is then that of the environment or stored.
      type: str
"""

from ansible.errors import AnsibleFilterError

from ..plugin_utils._calico import _foreseen
from ..plugin_utils._calico._versions import VersionError
from ..plugin_utils._site import plain

NAME = "nodecare.kubernetes.calico_autodetect"


def calico_autodetect(
    facts,
    method="first-found",
    version="",
    family=4,
    internal_ip=None,
    stored="",
    ip_env="autodetect",
    others=None,
    stored_links=(),
    reached="",
    poll_interval="",
):
    """What calico-node would take for the node's address."""
    links = facts.get("links") if isinstance(facts, dict) else None
    if not isinstance(links, dict) or not links.get("present"):
        raise AnsibleFilterError("%s needs the facts of node_check with the area links, for example checks=links" % NAME)
    if str(family) not in ("4", "6"):
        raise AnsibleFilterError("%s: family is 4 or 6, not %r" % (NAME, family))
    internal = [internal_ip] if isinstance(internal_ip, str) else internal_ip
    try:
        return _foreseen.foreseen(
            plain(links),
            plain(facts.get("problems") or []),
            method=str(method or ""),
            version=str(version or ""),
            family=int(family),
            internal=None if internal is None else [str(one) for one in internal],
            stored=str(stored or ""),
            said="" if ip_env is None else str(ip_env),
            others={str(name): str(address or "") for name, address in (others or {}).items()},
            stored_links=plain(list(stored_links or ())),
            reached=str(reached) if reached else None,
            poll_interval=str(poll_interval or ""),
        )
    except VersionError as error:
        raise AnsibleFilterError("%s: %s" % (NAME, error)) from None


class FilterModule:
    """Filters about Calico."""

    def filters(self):
        return {"calico_autodetect": calico_autodetect}
