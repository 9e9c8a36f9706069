#!/usr/bin/python
# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_check
short_description: Read what a cluster's API server knows about its nodes and Calico
version_added: 0.1.0
description:
  - Asks the API server once for nodes, their leases, the pods of Calico and kube-proxy with their events, Calico's DaemonSet
    and resources, the cluster's networks and its disruption budgets, and returns what the rules need of it.
  - It only reads. No kind of object is listed twice, lists come in pages, and what is read is reduced page by page, so that a
    cluster of a thousand nodes costs some dozens of requests.
  - It never returns a secret. Variables of C(calico-node) that come from a Secret are only named, and values of variables whose
    name says that they are secret are hidden.
  - Runs once for the play, on the controller, and needs no connection to any host.
  - It does not fail where the API server is down, slow, or forbids something. What could not be read is V(null) and named in
    RV(cluster.problems); rules that need it answer V(unknown). It fails where it does not know whom to ask.
notes:
  - With C(run_once=true) the registered result is each host's, without it that of the first host only.
  - What it asks for is listed in the ClusterRole in the collection's C(docs/nodecare-reader.yml), which is
    enough for everything and allows nothing else.
  - Where Calico keeps its data in etcd, its resources and the addresses of its nodes are not in the API server, and so are
    unknown.
author:
  - The nodecare contributors (@nodecare)
options:
  timeout:
    description:
      - How many seconds the whole sweep may take, whatever the API server does.
      - A single answer may take half of it.
    type: float
    default: 20.0
extends_documentation_fragment:
  - nodecare.kubernetes.cluster_access
  - nodecare.kubernetes.read_only
seealso:
  - module: nodecare.kubernetes.node_check
  - module: nodecare.kubernetes.report
"""

EXAMPLES = r"""
- name: Read the cluster that ~/.kube/config or K8S_AUTH_* name
  nodecare.kubernetes.cluster_check:
  run_once: true
  register: nodecare_cluster_check

- name: Read one by a token, through a long line
  nodecare.kubernetes.cluster_check:
    host: https://10.0.0.1:6443
    ca_cert: /etc/kubernetes/pki/ca.crt
    api_key: "{{ nodecare_reader_token }}"
    timeout: 60
  run_once: true
  register: nodecare_cluster_check

- name: Stop where the API server cannot be read
  ansible.builtin.assert:
    that: nodecare_cluster_check.cluster.problems == []
    quiet: true
"""

RETURN = r"""
cluster:
  description: The facts of the cluster, C(schema) C(nodecare.cluster/1). Times are seconds since 1970.
  returned: always
  type: dict
  contains:
    taken:
      description: When and from which server they were read, its version and its clock, in how many requests and seconds, and how long answers took.
      type: dict
      sample: {"server": "10.0.0.1:6443", "version": "1.36.3", "requests": 26, "seconds": 0.4, "answers": {"median_s": 0.02, "slowest_s": 0.2}}
    problems:
      description: Each fact that could not be read, with the reason. Its C(kind) is V(denied), V(hung), V(late) or V(error).
      type: list
      elements: dict
      sample: [{"fact": "cluster.budgets", "what": "GET /apis/policy/v1/poddisruptionbudgets", "why": "forbidden", "kind": "denied"}]
    nodes:
      description: Each Node with its addresses, conditions, taints, lease and versions, and the addresses that Calico has registered for it.
      type: list
      elements: dict
      sample: [{"name": "worker-3", "internal_ips": ["10.0.0.13"], "calico": {"ipv4": "10.0.0.13/24"}}]
    pods:
      description: Each pod of Calico and kube-proxy with its containers, their restarts and how they ended last.
      type: list
      elements: dict
      sample: [{"component": "calico-node", "node": "worker-3", "ready": true}]
    events:
      description: The events about these pods and about nodes.
      type: list
      elements: dict
      sample: [{"kind": "Pod", "name": "calico-node-7w8jl", "reason": "Unhealthy", "message": "Liveness probe failed"}]
    calico:
      description:
        - Who installed Calico, its version, environment, probes and roll-out, and what its resources say.
        - C(bgp.port) is the port on which BIRD listens, C(bgp.ports) has those nodes on which it is another.
      type: dict
      sample: {"install": {"kind": "manifest"}, "version": "3.31.0", "backend": "bird", "bgp": {"mesh": true, "asn": 64512, "port": 179, "ports": {}}}
    kube_proxy:
      description: The mode of kube-proxy, and where that is written.
      type: dict
      sample: {"mode": "iptables", "from": "ConfigMap kube-proxy"}
    services:
      description: The networks of services, and the service and the addresses of the API server.
      type: dict
      sample: {"networks": ["10.96.0.0/12"]}
    kubeadm:
      description: The networks that kubeadm was told of.
      type: dict
      sample: {"pod_networks": ["192.168.0.0/16"], "service_networks": ["10.96.0.0/12"]}
    budgets:
      description: Each PodDisruptionBudget and what it allows now.
      type: list
      elements: dict
      sample: [{"namespace": "kube-system", "name": "calico-typha", "allowed": 1, "expected": 3, "healthy": 3}]
    etcd:
      description: Each member of etcd that runs as a pod, as kubeadm, kubespray and RKE2 have it.
      type: list
      elements: dict
      sample: [{"component": "etcd", "node": "control-1", "ready": true}]
    locks:
      description:
        - What kured, medik8s and the system upgrade controller have locked or are at work on, as far as that is not written on the Node itself.
        - C(until) is V(null) where that is open, C(node) is empty where it does not say which.
      type: list
      elements: dict
      sample: [{"who": "kured", "what": "holds its lock", "node": "worker-3", "where": "annotation of DaemonSet kube-system/kured", "until": null}]
msg:
  description: What was read, in one sentence.
  returned: always
  type: str
  sample: 3 nodes and Calico 3.31.0 were read from 10.0.0.1:6443
"""

# This module is implemented by the action plugin of the same name: it runs on the controller.
