# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a sweep asks for, the most telling first: where it is, what is kept of it, and which facts are lost with it.

No kind is listed twice. Events are the exception in form: they are asked for by namespace, that of the Nodes' events and those in
which Calico's pods are, because the API server keeps no events in memory: for a list of all namespaces it would read all events
of the cluster from etcd, whatever is filtered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from . import _calico, _locks, _nodes, _pods, _services
from ._values import mapping

PAGE = 500  # objects: two answers for a thousand Nodes, each some megabytes
CALICO = ("/apis/crd.projectcalico.org/v1/", "/apis/projectcalico.org/v3/")  # newer releases can do without the first
DEFAULT = "default"


@dataclass(frozen=True)
class Kind:
    facts: tuple  # that cannot be told without it
    paths: tuple  # tried in turn where the API server does not have them
    keep: object  # what is kept of an object; None leaves it out
    query: dict = field(default_factory=dict)
    single: bool = False  # one object, not a list
    optional: bool = False  # a cluster may be without: that is an answer too
    count: bool = False  # how many there are is enough


def _whole(thing):
    return thing


def _calicos(name):
    return tuple(group + name for group in CALICO)


def _data(thing):
    return mapping(thing, "data")


def config_map(namespace, name, *others, facts=()):
    """Its name may come from the cluster, and must not lead anywhere else."""
    paths = tuple("/api/v1/namespaces/%s/configmaps/%s" % (namespace, quote(one, safe="")) for one in (name, *others))
    return Kind(facts, paths, _data, single=True, optional=True)


def events(namespace, kind):
    return Kind(("events",), ("/api/v1/namespaces/%s/events" % namespace,), _pods.event, {"fieldSelector": "involvedObject.kind=%s" % kind})


DAEMONSET = tuple("calico." + name for name in ("install", "version", "datastore", "backend", "env", "probes", "daemonset"))
JOBS = {"labelSelector": _locks.UPGRADE}
KINDS = {
    "nodes": Kind(("nodes",), ("/api/v1/nodes",), _nodes.node),
    "pods": Kind(("pods",), ("/api/v1/pods",), _pods.pod, {"labelSelector": _pods.SELECTOR}),
    "etcd": Kind(("etcd",), ("/api/v1/namespaces/kube-system/pods",), _pods.pod, {"labelSelector": _pods.ETCD}),
    "daemonsets": Kind((*DAEMONSET, "locks"), ("/apis/apps/v1/daemonsets",), _calico.kept_daemonset),
    "leases": Kind(("node.lease",), ("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",), _nodes.lease),
    "pools": Kind(("calico.pools",), _calicos("ippools"), _calico.pool, optional=True),
    "node_events": events(DEFAULT, "Node"),
    "cluster_information": Kind(
        ("calico.cluster_information",), _calicos("clusterinformations/default"), _calico.cluster_information, single=True, optional=True
    ),
    "installation": Kind(("calico.installation",), ("/apis/operator.tigera.io/v1/installations/default",), _whole, single=True, optional=True),
    "bgp_configuration": Kind(("calico.bgp",), _calicos("bgpconfigurations"), _calico.named, optional=True),
    "bgp_peers": Kind(("calico.bgp",), _calicos("bgppeers"), _calico.peer, optional=True),
    "felix": Kind(("calico.felix",), _calicos("felixconfigurations"), _calico.named, optional=True),
    "version": Kind(("taken.version",), ("/version",), _whole, single=True),
    "service": Kind(("services.kubernetes",), ("/api/v1/namespaces/default/services/kubernetes",), _services.service, single=True),
    "endpoints": Kind(("services.kubernetes",), ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",), _services.endpoints, single=True),
    "service_networks": Kind(("services.networks",), ("/apis/networking.k8s.io/v1/servicecidrs",), _services.networks, optional=True),
    "kubeadm": config_map("kube-system", "kubeadm-config", facts=("kubeadm",)),
    "kube_proxy": config_map("kube-system", "kube-proxy", "kube-proxy-config", facts=("kube_proxy",)),
    # By its name, so that of the many Deployments of a cluster only this one is sent.
    "typha": Kind(("calico.typha",), ("/apis/apps/v1/deployments",), _whole, {"fieldSelector": "metadata.name=calico-typha"}),
    "budgets": Kind(("budgets",), ("/apis/policy/v1/poddisruptionbudgets", "/apis/policy/v1beta1/poddisruptionbudgets"), _pods.budget),
    "maintenance": Kind(("locks",), ("/apis/coordination.k8s.io/v1/namespaces/%s/leases" % _locks.MEDIK8S,), _locks.medik8s, optional=True),
    "upgrades": Kind(("locks",), ("/apis/batch/v1/jobs",), _locks.upgrade, JOBS, optional=True),
    "block_affinities": Kind(("calico.block_affinities",), _calicos("blockaffinities"), _whole, optional=True, count=True),
}
