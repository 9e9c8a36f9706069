#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_check
short_description: Read a Kubernetes node once and judge it
version_added: 0.1.0
description:
  - Reads swap, links, container runtime, kubelet, load, host settings and Calico of a node in one round trip, and judges
    the facts on the controller by rules with stable ids.
  - Changes nothing on the node, needs nothing there but Python 3.8 and its standard library, and works before the
    node has joined a cluster.
  - What cannot be read, for example without root, makes the rules that need it answer V(unknown) with the reason, never
    V(pass).
author:
  - The nodecare contributors (@nodecare)
options:
  checks:
    description:
      - What to judge, as areas (V(swap)), rule ids (V(swap.returns)) or globs (V(runtime.*)).
      - Only the areas that the chosen rules need are read.
      - A name that matches no rule is an error that lists the known ones.
    type: list
    elements: str
    default: ["*"]
  exclude:
    description: What to leave out of O(checks), in the same words.
    type: list
    elements: str
    default: []
  policy:
    description:
      - Thresholds, disabled rules, changed severities and site rules.
      - The thresholds and their defaults are listed in the collection's documentation of its rules.
    type: dict
    default: {}
    suboptions:
      thresholds:
        description: Values that differ from the documented defaults.
        type: dict
        default: {}
      networks:
        description:
          - The cluster's networks as lists of CIDRs, under the names V(pods), V(services) and V(nodes).
          - Under V(calico), the network that Calico is to take the nodes' addresses from, where that is not the one of their InternalIPs.
        type: dict
        default: {}
      kubernetes_version:
        description: The Kubernetes version that the node is to run, for nodes that have no kubelet yet.
        type: str
        default: ""
      disable:
        description: Rules that must not be judged, as areas, ids or globs. Each is reported as V(skip).
        type: list
        elements: str
        default: []
      severity:
        description: Another severity (V(error), V(warning) or V(info)) for rules by area, id or glob.
        type: dict
        default: {}
      site_rules:
        description:
          - Rules of your own.
          - Each has an C(id) that starts with C(site.), a JMESPath C(query) over the node's facts, what its result must be
            (C(expect)), and the C(message) for the operator, in which C({value}) stands for what the query found. C(title)
            and C(severity) (V(error), V(warning) or V(info)) are optional.
          - C(expect) has exactly one of C(equals), C(not_equals), C(in), C(contains), C(matches), C(at_least), C(at_most),
            C(empty) or C(exists) as its key.
          - They need the Python library jmespath on the controller.
        type: list
        elements: dict
        default: []
  targets:
    description:
      - Other machines that the node asks how well it reaches them. Without it, it asks the kubelet's own API server only.
      - Where the cluster was read before, by M(nodecare.kubernetes.cluster_check), they are chosen from what the cluster knows.
    type: dict
    default: {}
    suboptions:
      api:
        description: API servers as C(host:port), for a node that has not joined yet.
        type: list
        elements: str
        default: []
      etcd:
        description: The etcd that Calico keeps its data in, as URLs, where it uses one.
        type: list
        elements: str
        default: []
      peers:
        description:
          - Other nodes by name, each an address, or a dictionary of C(address), C(ports) (TCP) and C(tunnels) (UDP ports or V(ipip)).
          - At most 64 are asked.
        type: dict
        default: {}
      ports:
        description: TCP ports for those of O(targets.peers) that name none.
        type: list
        elements: int
        default: []
      bgp:
        description: The TCP port of the node's own BGP, without it 179. A session that another node has made to it shows that the way is open.
        type: int
      size:
        description: How large a packet must be able to pass whole towards O(targets.peers), in bytes. Without it, as large as the link allows.
        type: int
  peers:
    description:
      - Whether the hosts of the play ask each other, at their C(ansible_host), where no cluster was read that tells who the nodes are.
      - Off by default, since a play may hold hosts that are no nodes, and their addresses may be for administration only.
    type: bool
    default: false
  cluster_results:
    description: The variable in which M(nodecare.kubernetes.cluster_check) was registered. From it O(targets) are chosen, where they are not given.
    type: str
    default: nodecare_cluster_check
  timeout:
    description: How many seconds each look at a daemon, file system or program may take. A whole reading takes at most
      four times as long.
    type: float
    default: 5.0
  return_facts:
    description: Whether RV(facts) are returned. Rules that compare nodes, and saved reports, need them.
    type: bool
    default: true
extends_documentation_fragment:
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.report
  - plugin: nodecare.kubernetes.judge
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read and judge everything
  nodecare.kubernetes.node_check:
  register: nodecare_check

- name: Only swap, and the bridges that docker left behind
  nodecare.kubernetes.node_check:
    checks: [swap, links.stray_bridge]

- name: A small lab, and a rule of our own
  nodecare.kubernetes.node_check:
    exclude: [load.outlier]
    policy:
      thresholds:
        load_per_cpu: 8
      severity:
        host.time: warning
      site_rules:
        - id: site.kernel
          query: host.kernel.release
          expect: {matches: '^6\.'}
          message: this fleet runs kernel 6, not {value}
"""

RETURN = r"""
facts:
  description: What the probes read, C(schema) C(nodecare.node/1). Areas that no chosen rule needs are not there.
  returned: when O(return_facts=true) and the node could be read
  type: dict
  sample: {"schema": "nodecare.node/1", "swap": {"active": []}}
findings:
  description: One verdict for each rule, or several where a rule found several things. Where the cluster was read before and RV(facts) are
    returned, the rules that ask it are left to M(nodecare.kubernetes.report), which judges them with what it has read.
  returned: always
  type: list
  elements: dict
  contains:
    id: {description: The rule's stable id., type: str, sample: swap.active}
    node: {description: The node's name in the inventory., type: str, sample: worker-3}
    status: {description: 'V(pass), V(warn), V(fail), V(skip) or V(unknown).', type: str, sample: fail}
    severity: {description: 'V(error), V(warning) or V(info).', type: str, sample: error}
    title: {description: What is wrong where the rule fails., type: str, sample: Swap is on}
    message: {description: What was found on this node., type: str, sample: /dev/sda2 is on}
    evidence: {description: The facts behind the verdict., type: dict, sample: {device: /dev/sda2}}
    remedy: {description: 'What puts it right, or null.', type: dict, sample: {manual: swapoff /dev/sda2}}
    see: {description: The rule's page in the documentation., type: str, sample: docs/rules/swap.active.md}
policy:
  description: The policy that the node was judged with, for the rules that compare nodes.
  returned: when the node could be read
  type: dict
  sample: {"disable": ["load.outlier"]}
summary:
  description: How many findings have each status, and the worst of them.
  returned: always
  type: dict
  sample: {"fail": 1, "warn": 0, "unknown": 2, "skip": 1, "pass": 40, "worst": "fail"}
"""

import gc

gc.disable()  # a process of half a second leaves nothing to collect, and looking for it costs a tenth of its time

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._probes import AREAS, read


def main():
    module = AnsibleModule(
        argument_spec={
            "checks": {"type": "list", "elements": "str", "default": ["*"]},
            "exclude": {"type": "list", "elements": "str", "default": []},
            "policy": {
                "type": "dict",
                "default": {},
                "options": {
                    "thresholds": {"type": "dict", "default": {}},
                    "networks": {"type": "dict", "default": {}},
                    "kubernetes_version": {"type": "str", "default": ""},
                    "disable": {"type": "list", "elements": "str", "default": []},
                    "severity": {"type": "dict", "default": {}},
                    "site_rules": {"type": "list", "elements": "dict", "default": []},
                },
            },
            "targets": {
                "type": "dict",
                "default": {},
                "options": {
                    "api": {"type": "list", "elements": "str", "default": []},
                    "etcd": {"type": "list", "elements": "str", "default": []},
                    "peers": {"type": "dict", "default": {}},
                    "ports": {"type": "list", "elements": "int", "default": []},
                    "bgp": {"type": "int"},
                    "size": {"type": "int"},
                },
            },
            "peers": {"type": "bool", "default": False},
            "cluster_results": {"type": "str", "default": "nodecare_cluster_check"},
            "timeout": {"type": "float", "default": 5.0},
            "return_facts": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    # The controller's half resolves the choice of rules to areas before it sends this half to the node.
    wanted = module.params["checks"]
    areas = [name for name in AREAS if name in wanted or "*" in wanted]
    facts = read(areas, module.params["timeout"], targets=module.params["targets"])
    gc.freeze()  # else the interpreter still looks for something to collect when it ends
    module.exit_json(changed=False, facts=facts)


if __name__ == "__main__":
    main()
