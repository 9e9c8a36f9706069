# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that finds the autodetection method by which Calico gives every node its own address."""

from __future__ import annotations

DOCUMENTATION = r"""
name: calico_recommend
short_description: Find the method that gives every node its own address
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - From the facts of a set of nodes, finds the autodetection method (E(IP_AUTODETECTION_METHOD)) by which Calico registers for each node the
    address that it should have, and keeps to it when somebody adds bridges, virtual addresses or VPNs.
  - The address that a node should have is the one inside O(network), else its InternalIP in O(cluster), else the one that its kubelet is told
    (C(--node-ip)), else, with O(by_default_route), the one from which its packets leave by the default route.
  - Tried are, in this order, V(kubernetes-internal-ip) where the version has it and does not mask the address, V(cidr=) with O(network) and then
    with the nodes' subnets, V(interface=) with the names of their links as anchored expressions, and V(can-reach=) with their gateways and with
    some of their own addresses. Each is tried on every node by the same code that foresees Calico's choice,
    see P(nodecare.kubernetes.calico_autodetect#filter).
  - The first that is right on every node and steady is taken; where none is steady, the first that is right.
positional: version
options:
  _input:
    description:
      - A dictionary of node names and their facts, as RV(nodecare.kubernetes.node_check#module:facts) with the area C(links), or a saved
        bundle (C(schema) V(nodecare.bundle/1)).
    type: dict
    required: true
  version:
    description: The Calico version, such as V(3.24.5). Without it, that of O(cluster); without that, the newest one that is known.
    type: str
    default: ""
  family:
    description: Whether the IPv4 or the IPv6 address is meant.
    type: int
    choices: [4, 6]
    default: 4
  cluster:
    description: The cluster facts, as cluster_check gives them, or those of the bundle.
    type: dict
    default: {}
  network:
    description: The networks, as CIDRs, in which each node has the address that it should have.
    type: list
    elements: str
    default: []
  method:
    description: The method in use, to be shown in RV(_value.table) beside the others. Without it, that of O(cluster), else V(first-found).
    type: str
    default: ""
  destinations:
    description: Addresses to try V(can-reach=) with before all others, such as that of the API server.
    type: list
    elements: str
    default: []
  by_default_route:
    description: Whether the address of the default route is the right one where nothing better is known.
    type: bool
    default: false
seealso:
  - module: nodecare.kubernetes.node_check
  - plugin: nodecare.kubernetes.calico_autodetect
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the links of all nodes
  nodecare.kubernetes.node_check:
    checks: [links]
  register: check

- name: Say which method is right for all of them, and why no simpler one
  ansible.builtin.debug:
    var: facts | nodecare.kubernetes.calico_recommend('3.31.0', network=['10.0.0.0/24'])
  vars:
    read: "{{ ansible_play_hosts | map('extract', hostvars, ['check', 'facts']) }}"
    facts: "{{ dict(ansible_play_hosts | zip(read)) }}"
  run_once: true

- name: Refuse to install Calico where no one method is right
  ansible.builtin.assert:
    that: recommended.method is truthy
    fail_msg: "{{ recommended.why }}"
  vars:
    saved: "{{ lookup('ansible.builtin.file', 'facts.json') | from_json }}"
    recommended: "{{ saved | nodecare.kubernetes.calico_recommend('3.22.0', by_default_route=true) }}"
"""

RETURN = r"""
_value:
  description: The method, and the proof of it.
  type: dict
  contains:
    method:
      description: The method to set. An empty text where none gives every node its address.
      type: str
      sample: cidr=10.0.0.0/24
    steady:
      description: Whether neither bridges, virtual addresses and VPNs nor the order of links can change what it gives.
      type: bool
    why:
      description: Why there is no method, or why the method is not steady. An empty text otherwise.
      type: str
    refused:
      description: The methods that come before it, each with the reason why it is not the one.
      type: dict
      sample:
        kubernetes-internal-ip: the InternalIP of worker-1 is not known
    wanted:
      description: For each node, the C(address) that it should have and C(by) what that is known.
      type: dict
      sample:
        worker-1:
          address: 10.0.0.11
          by: the nodes' network 10.0.0.0/24
    left_out:
      description: The nodes that were not compared, each with the reason.
      type: dict
    unread:
      description: The Nodes of the cluster of which there are no facts, so that nothing is proven for them.
      type: list
      elements: str
    table:
      description:
        - For each method that was tried, and the one in use, what it gives each node. C(address) and C(link), C(right), C(steady), and C(why)
          it cannot be told.
      type: dict
      sample:
        cidr=10.0.0.0/24:
          worker-1:
            address: 10.0.0.11/24
            link: eth0
            right: true
            steady: true
            why: ""
"""

import ipaddress

from ansible.errors import AnsibleFilterError

from ..plugin_utils import _with_cluster
from ..plugin_utils._calico import _recommend
from ..plugin_utils._calico._settings import host_ip_variable
from ..plugin_utils._calico._versions import VersionError
from ..plugin_utils._calico._versions import version as numbers
from ..plugin_utils._policy import Policy
from ..plugin_utils._rules.calico._here import look_into
from ..plugin_utils._site import plain

NAME = "nodecare.kubernetes.calico_recommend"
HINT = "only %s tells it, which counts with by_default_route"


def calico_recommend(facts, version="", family=4, cluster=None, network=(), method="", destinations=(), by_default_route=False):
    """The method that gives every node the address that it should have."""
    if str(family) not in ("4", "6"):
        raise AnsibleFilterError("%s: family is 4 or 6, not %r" % (NAME, family))
    nodes, cluster = _read(facts, cluster)
    family, networks, calico = int(family), _networks(network), (cluster or {}).get("calico") or {}
    known = _version(version or calico.get("version"))
    views = _with_cluster.joined(nodes, cluster) if cluster else nodes
    machines = [_machine(name, views[name], networks, family, by_default_route) for name in nodes if _has_links(nodes[name])]
    unread = {name: "its links were not read" for name in nodes if not _has_links(nodes[name])}
    found = _recommend.recommend(machines, known, family, networks, destinations or (), host_ip_variable(calico))
    in_use = str(method or (calico.get("env") or {}).get("IP_AUTODETECTION_METHOD" if family == 4 else "IP6_AUTODETECTION_METHOD") or "first-found")
    now = _recommend.tried(in_use, [one for one in machines if one.wanted.ip], known, family)
    return {
        "method": found.method,
        "steady": found.steady,
        "why": found.why,
        "refused": found.refused(),
        "wanted": {one.name: {"address": str(one.wanted.ip), "by": one.wanted.by} for one in machines if one.wanted.ip},
        "left_out": {**found.left_out, **unread},
        "unread": sorted(set(views) - set(nodes)),
        "table": {row.method: {name: _shown(answer) for name, answer in row.answers.items()} for row in (now, *found.rows) if row.answers},
    }


def _read(facts, cluster):
    """({node: facts}, cluster) of what is given: facts by node, or a saved bundle."""
    bundle = isinstance(facts, dict) and str(facts.get("schema", "")).startswith("nodecare.bundle/")
    nodes, cluster = (facts.get("nodes"), cluster or facts.get("cluster")) if bundle else (facts, cluster)
    if not isinstance(nodes, dict) or not any(map(_has_links, nodes.values())):
        raise AnsibleFilterError("%s needs a dictionary of nodes and their facts of node_check with the area links, or a saved bundle" % NAME)
    return {str(name): plain(one) for name, one in nodes.items()}, plain(cluster) if cluster else None


def _has_links(one):
    return isinstance(one, dict) and isinstance(one.get("links"), dict) and bool(one["links"].get("present"))


def _networks(texts):
    try:
        return [ipaddress.ip_network(str(text), strict=False) for text in ([texts] if isinstance(texts, str) else texts or ())]
    except ValueError as error:
        raise AnsibleFilterError("%s: network: %s" % (NAME, error)) from None


def _version(text):
    try:
        return numbers(text)
    except VersionError as error:
        raise AnsibleFilterError("%s: %s" % (NAME, error)) from None


def _machine(name, view, networks, family, by_default_route):
    here = look_into(view, Policy(networks={"calico": networks} if networks else {}))
    machine = here.machine(family, name)
    if machine.wanted.ip and not machine.wanted.sure and not by_default_route:
        return machine._replace(wanted=machine.wanted._replace(ips=(), why=HINT % machine.wanted.by))
    return machine


def _shown(answer):
    return {"address": answer.address, "link": answer.link, "right": answer.right, "steady": answer.right and not answer.dangers, "why": answer.unknown}


class FilterModule:
    """Filters about Calico."""

    def filters(self):
        return {"calico_recommend": calico_recommend}
