# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A Node, and the Lease by which its kubelet says that it is alive."""

from __future__ import annotations

import json

from ._values import at, entries, mapping, number, text, texts, time, version

ROLE = "node-role.kubernetes.io/"
CALICO = "projectcalico.org/"
# Calico's own, and the marks by which reboot daemons, remediators and autoscalers say that they work on a Node, or that nobody may.
MARKS = (
    *(CALICO, "nodecare/", "weave.works/kured-", "kured.dev/", "kured.io/", "medik8s.io/", "remediation.medik8s.io/", "cluster-autoscaler.kubernetes.io/"),
    *("karpenter.sh/", "cluster.x-k8s.io/", "machineconfiguration.openshift.io/", "upgrade.cattle.io/", "flatcar-linux-update.v1.flatcar-linux.net/"),
)
ROOM = ("cpu", "memory", "pods")


def node(thing):
    annotations, info = mapping(thing, "metadata", "annotations"), mapping(thing, "status", "nodeInfo")
    labels, addresses = mapping(thing, "metadata", "labels"), entries(thing, "status", "addresses")
    return {
        "name": text(thing, "metadata", "name"),
        "created": time(thing, "metadata", "creationTimestamp"),
        "deleting": bool(at(thing, "metadata", "deletionTimestamp")),
        "internal_ips": _addresses(addresses, "InternalIP"),
        "external_ips": _addresses(addresses, "ExternalIP"),
        "hostname": next(iter(_addresses(addresses, "Hostname")), ""),
        "pod_cidrs": texts(thing, "spec", "podCIDRs") or [one for one in [text(thing, "spec", "podCIDR")] if one],
        "unschedulable": at(thing, "spec", "unschedulable") is True,
        "taints": [taint(one) for one in entries(thing, "spec", "taints")],
        "roles": sorted(label.removeprefix(ROLE) for label in labels if label.startswith(ROLE)),
        "labels": labels,
        "annotations": {name: value for name, value in annotations.items() if name.startswith(MARKS)},
        "conditions": {text(one, "type"): condition(one) for one in entries(thing, "status", "conditions")},
        "lease": None,
        "kubelet": version(info, "kubeletVersion"),
        "kube_proxy": version(info, "kubeProxyVersion"),
        "runtime": text(info, "containerRuntimeVersion"),
        "kernel": text(info, "kernelVersion"),
        "os_image": text(info, "osImage"),
        "allocatable": {name: str(value) for name, value in mapping(thing, "status", "allocatable").items() if name in ROOM},
        "calico": registered(annotations),
    }


def taint(thing):
    return {"key": text(thing, "key"), "value": text(thing, "value"), "effect": text(thing, "effect"), "since": time(thing, "timeAdded")}


def condition(thing):
    return {
        "status": text(thing, "status"),
        "reason": text(thing, "reason"),
        "message": text(thing, "message"),
        "since": time(thing, "lastTransitionTime"),
        "heartbeat": time(thing, "lastHeartbeatTime"),
    }


def registered(annotations):
    """What Calico keeps for the node where the API server is its datastore."""
    asn = text(annotations, CALICO + "ASNumber")
    return {
        "ipv4": text(annotations, CALICO + "IPv4Address"),
        "ipv6": text(annotations, CALICO + "IPv6Address"),
        "ipip_tunnel": text(annotations, CALICO + "IPv4IPIPTunnelAddr"),
        "vxlan_tunnel": text(annotations, CALICO + "IPv4VXLANTunnelAddr"),
        "asn": int(asn) if asn.isdecimal() else None,
        "interfaces": _interfaces(text(annotations, CALICO + "Interfaces")),
    }


def lease(thing):
    """(the Node's name, its lease)"""
    return text(thing, "metadata", "name"), {"renewed": time(thing, "spec", "renewTime"), "duration_s": number(thing, "spec", "leaseDurationSeconds")}


def _addresses(addresses, kind):
    return [text(one, "address") for one in addresses if text(one, "type") == kind]


def _interfaces(said):
    try:
        found = json.loads(said)
    except ValueError:
        return None
    return found if isinstance(found, list) else None
