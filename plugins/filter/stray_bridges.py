# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that finds the bridges which could be taken for a node's address."""

from __future__ import annotations

DOCUMENTATION = r"""
name: stray_bridges
short_description: Bridges of container tools that could be taken for the node's address
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - Finds the bridges in a node's facts that hold an address, lead nowhere, belong to docker, podman or the like or to
    nobody, and that Calico's default detection does not ignore by their name.
  - A bridge with a NIC, a bond or a VLAN as its port, one that the system's network configuration names, and one that the
    default route leaves by, are an administrator's and are not listed; neither are those of the pod network.
  - The rule C(links.stray_bridge) uses the same judgement.
positional: calico_version
options:
  _input:
    description: Facts of one node, as RV(nodecare.kubernetes.node_check#module:facts); the area C(links) must be among them.
    type: dict
    required: true
  calico_version:
    description:
      - The Calico version that the cluster runs, such as V(3.31). Bridges that this version ignores are left out.
      - Without it, only those are left out that every version ignores.
    type: str
    default: ""
seealso:
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.judge
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the links
  nodecare.kubernetes.node_check:
    checks: [links]
  register: nodecare_check

- name: Refuse to join a node with a stray bridge
  ansible.builtin.assert:
    that: nodecare_check.facts | nodecare.kubernetes.stray_bridges(calico_version='3.22') | length == 0

- name: Name them
  ansible.builtin.debug:
    msg: "{{ nodecare_check.facts | nodecare.kubernetes.stray_bridges | map(attribute='bridge') }}"
"""

RETURN = r"""
_value:
  description:
    - One table for each bridge, in the kernel's order, with C(bridge), C(subnet), C(up), C(owner), C(network), C(containers), C(ports),
      C(port_count), C(reasons), and C(ignored_since), the first Calico version that ignores such a name.
  type: list
  elements: dict
  sample:
    - bridge: br-3a10a9384428
      subnet: 172.18.0.1/16
      up: true
      owner: docker
      ports: [veth8c2f1ab]
      port_count: 1
      ignored_since: "3.25"
      reasons: [it holds 172.18.0.1/16, none of its 1 ports leads out of this node, docker names its bridges so]
"""

from ansible.errors import AnsibleFilterError

from ..plugin_utils import _links


def stray_bridges(facts, calico_version=""):
    """The stray bridges among a node's links."""
    links = facts.get("links") if isinstance(facts, dict) else None
    if not isinstance(links, dict) or not links.get("present"):
        raise AnsibleFilterError("nodecare.kubernetes.stray_bridges needs the facts of node_check with the area links, for example checks=links")
    found = _links.stray_bridges(links)
    return [{key: value for key, value in one.items() if key != "because"} for one in found if not _links.ignored(one["bridge"], str(calico_version or ""))]


class FilterModule:
    """Filters about links."""

    def filters(self):
        return {"stray_bridges": stray_bridges}
