# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico as a whole: who installed it, what it runs with, what its resources say."""

from __future__ import annotations

import re
from typing import NamedTuple

from . import _locks
from ._nodes import condition
from ._values import at, entries, mapping, number, text, version
from ._workloads import CONTAINER, environment, image_version, node_container, probes, workload

SIZES = {4: 26, 6: 122}  # of a block where the pool says nothing
MESH_ASN = 64512
BGP = 179
OF_NODE = "node."  # and its name: a configuration for that node alone
PARTS = ("variant", "kubernetesProvider", "cni", "calicoNetwork", "nodeUpdateStrategy", "controlPlaneReplicas", "typhaAffinity", "flexVolumePath")
ENTERPRISE = ("TigeraSecureEnterprise", "CalicoEnterprise")
ENTERPRISE_IMAGE = re.compile(r"(^|/)(cnx-node|tigera/node)([:@]|$)")
HELM = "meta.helm.sh/release-name"
CATTLE = "objectset.rio.cattle.io/"  # RKE2 and k3s write it on what lies among their own manifests


def find_daemonset(daemonsets):
    """The one that runs calico-node; Calico's own name for it comes first."""
    running = [one for one in daemonsets if node_container(one)]
    return min(running, key=lambda one: text(one, "metadata", "name") != CONTAINER, default=None)


def kept_daemonset(thing):
    """Of all DaemonSets only those that somebody asks for later are kept."""
    return thing if node_container(thing) or text(thing, "metadata", "name") == "kube-proxy" or _locks.kured(thing) else None


class Said(NamedTuple):
    """What the container of calico-node is told, as far as it could be read."""

    env: dict
    hidden: list  # variables and ConfigMaps that stay unknown
    datastore: str
    backend: str | None


def told(daemonset, maps):
    if daemonset is None:
        return Said({}, [], "", "")
    env, hidden = environment(node_container(daemonset), maps)
    kind = env.get("DATASTORE_TYPE", "kubernetes" if not env.get("ETCD_ENDPOINTS") else "etcdv3")
    backend = env.get("CALICO_NETWORKING_BACKEND", "bird")
    return Said(env, hidden, "kubernetes" if kind in ("kubernetes", "k8s") else "etcd", backend if isinstance(backend, str) else None)


def facts_of(daemonset, said):
    """What the DaemonSet tells; of a cluster without Calico, nothing."""
    container = node_container(daemonset)
    return {
        "version": image_version(text(container, "image")),
        "datastore": said.datastore,
        "backend": said.backend,
        "env": said.env,
        "probes": probes(container),
        "daemonset": workload(daemonset) if daemonset else None,
    }


def is_enterprise(daemonset, operated):
    """Calico Enterprise counts its releases by itself: its 3.19 is no Calico 3.19."""
    variants = [text(operated, part, "variant") for part in ("spec", "status")] if operated else []
    return any(one in ENTERPRISE for one in variants) or bool(ENTERPRISE_IMAGE.search(text(node_container(daemonset), "image")))


def install(daemonset, operated, said, nodes, cluster_type):
    """Who has to be asked to change something: whoever else changes it will be overruled."""
    if daemonset is None:
        return {"kind": "none", "why": "no DaemonSet has a container %s" % CONTAINER, "namespace": ""}
    kubelets = " ".join(one["kubelet"] for one in nodes or [])
    annotations = {**mapping(daemonset, "metadata", "annotations"), **mapping(operated, "metadata", "annotations")}
    deployed = any(name.startswith(CATTLE) for name in annotations)
    for kind, holds, why in (
        ("rke2", text(annotations, HELM).startswith("rke2-"), "RKE2's own chart has made it"),
        ("rke2", deployed and "+rke2" in kubelets, "RKE2 deploys it by itself"),
        ("k3s", deployed and "+k3s" in kubelets, "k3s deploys it by itself"),
        ("operator", operated is not None or _owner(daemonset) == "Installation", "there is an Installation, by which the operator makes the DaemonSet"),
        ("kubespray", "kubespray" in "%s %s" % (said.env.get("CLUSTER_TYPE"), cluster_type), "the cluster's type names kubespray"),
        ("kubespray", _kubespray(daemonset, said), "the DaemonSet is written as kubespray writes it"),
    ):
        if holds:
            return {"kind": kind, "why": why, "namespace": text(daemonset, "metadata", "namespace")}
    return {"kind": "manifest", "why": "no operator or distributor has left its mark on the DaemonSet", "namespace": text(daemonset, "metadata", "namespace")}


def _owner(daemonset):
    return next((text(one, "kind") for one in entries(daemonset, "metadata", "ownerReferences")), "")


def _kubespray(daemonset, said):
    template = mapping(daemonset, "spec", "template", "metadata", "annotations")
    return "NODEIP" in said.env or any(name.startswith("kubespray.") for name in template)


def installation(thing):
    return {
        "spec": {name: thing["spec"][name] for name in PARTS if name in mapping(thing, "spec")},
        "probes": _own_probes(mapping(thing, "spec", "calicoNodeDaemonSet")),
        "computed": {name: at(thing, "status", "computed", name) for name in PARTS if name in mapping(thing, "status", "computed")},
        "conditions": {text(one, "type"): condition(one) for one in entries(thing, "status", "conditions")},
        "version": version(thing, "status", "calicoVersion"),
    }


def _own_probes(daemonset):
    """The probes that the Installation asks for; {} where it leaves them to the operator."""
    container = next((one for one in entries(daemonset, "spec", "template", "spec", "containers") if text(one, "name") == CONTAINER), {})
    return {name: probe for name, probe in probes(container).items() if probe}


def pool(thing):
    spec = mapping(thing, "spec")
    cidr = text(spec, "cidr")
    return {
        "name": text(thing, "metadata", "name"),
        "cidr": cidr,
        "ipip": text(spec, "ipipMode") or "Never",
        "vxlan": text(spec, "vxlanMode") or "Never",
        "nat_outgoing": at(spec, "natOutgoing") is True,
        "block_size": number(spec, "blockSize") or SIZES[6 if ":" in cidr else 4],
        "disabled": at(spec, "disabled") is True,
        "node_selector": text(spec, "nodeSelector"),
    }


def named(thing):
    """A configuration, by the name that says for which nodes it is."""
    return text(thing, "metadata", "name"), mapping(thing, "spec")


def bgp(configurations, peers):
    """Of a cluster that says nothing, each node has a session with each other one. ``ports`` are those of nodes that have their own."""
    specs = dict(configurations or ())
    every = specs.get("default", {})
    mesh, asn = at(every, "nodeToNodeMeshEnabled"), number(every, "asNumber")
    own = {name: number(spec, "listenPort") for name, spec in _of_nodes(specs).items()}
    return {
        "mesh": mesh is not False,
        "asn": MESH_ASN if asn is None else asn,
        "port": number(every, "listenPort") or BGP,
        "ports": {name: port for name, port in own.items() if port},
        "peers": peers,
    }


def peer(thing):
    spec = mapping(thing, "spec")
    return {
        "name": text(thing, "metadata", "name"),
        "node": text(spec, "node"),
        "peer_ip": text(spec, "peerIP"),
        "asn": number(spec, "asNumber"),
        "node_selector": text(spec, "nodeSelector"),
        "peer_selector": text(spec, "peerSelector"),
    }


def felix(configurations):
    """What all nodes are told, and what some are told in addition, which goes before it."""
    specs = dict(configurations or ())
    return {"every": specs.get("default", {}), "nodes": _of_nodes(specs)}


def _of_nodes(specs):
    return {name[len(OF_NODE) :]: spec for name, spec in specs.items() if name.startswith(OF_NODE)}


def cluster_information(thing):
    ready = at(thing, "spec", "datastoreReady")
    return {
        "datastore_ready": ready if isinstance(ready, bool) else None,
        "version": version(thing, "spec", "calicoVersion"),
        "type": text(thing, "spec", "clusterType"),
    }
