# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Pods of Calico, kube-proxy and etcd with their containers, what was said about them, and what may be evicted."""

from __future__ import annotations

from ._values import at, entries, mapping, number, text, time

# By the label k8s-app, which manifest, operator, kubeadm and kubespray all give them; canal is Calico's node beside flannel.
COMPONENTS = {
    **{name: name for name in ("calico-node", "calico-typha", "calico-kube-controllers", "kube-proxy", "tigera-operator")},
    **dict.fromkeys(("canal", "rke2-canal"), "calico-node"),
}
SELECTOR = "k8s-app in (%s)" % ",".join(COMPONENTS)
ETCD = "component=etcd,tier=control-plane"  # static pods, as kubeadm, kubespray and RKE2 make them
LONGEST = 2048  # characters of a message; a container may leave 4 KiB behind


def pod(thing):
    status = mapping(thing, "status")
    conditions = {text(one, "type"): one for one in entries(status, "conditions")}
    unplaced = conditions.get("PodScheduled", {}) if text(conditions.get("PodScheduled"), "status") == "False" else {}
    return {
        "namespace": text(thing, "metadata", "namespace"),
        "name": text(thing, "metadata", "name"),
        "component": _component(mapping(thing, "metadata", "labels")),
        "node": text(thing, "spec", "nodeName"),
        "phase": text(status, "phase"),
        "reason": text(status, "reason") or text(unplaced, "reason"),
        "message": (text(status, "message") or text(unplaced, "message"))[:LONGEST],
        "ready": text(conditions.get("Ready"), "status") == "True",
        "ip": text(status, "podIP"),
        "host_ip": text(status, "hostIP"),
        "created": time(thing, "metadata", "creationTimestamp"),
        "deleting": bool(at(thing, "metadata", "deletionTimestamp")),
        "init": _containers(thing, "initContainers", "initContainerStatuses"),
        "containers": _containers(thing, "containers", "containerStatuses"),
    }


def _component(labels):
    name = COMPONENTS.get(text(labels, "k8s-app"), "")
    return name or ("etcd" if text(labels, "component") == "etcd" else "")


def _containers(thing, asked, told):
    """In the order in which they were asked for; of one that no kubelet has told about it is known that it waits."""
    statuses = {text(one, "name"): one for one in entries(thing, "status", told)}
    return [container(one, statuses.get(text(one, "name"), {})) for one in entries(thing, "spec", asked)]


def container(asked, status):
    state = next((name for name in ("running", "terminated", "waiting") if isinstance(at(status, "state", name), dict)), "waiting")
    now, before = mapping(status, "state", state), mapping(status, "lastState", "terminated")
    return {
        "name": text(asked, "name"),
        "image": text(asked, "image"),
        "ready": at(status, "ready") is True,
        "restarts": number(status, "restartCount") or 0,
        "state": state,
        **_ended(now),
        "since": time(now, "finishedAt") if state == "terminated" else time(now, "startedAt"),
        "last": {**_ended(before), "from": time(before, "startedAt"), "until": time(before, "finishedAt")} if before else None,
    }


def _ended(state):
    return {
        "reason": text(state, "reason"),
        "message": text(state, "message")[:LONGEST],
        "exit_code": number(state, "exitCode"),
        "signal": number(state, "signal"),
    }


def event(thing):
    about, reporter = mapping(thing, "involvedObject"), text(thing, "source", "component") or text(thing, "reportingComponent")
    host = text(thing, "source", "host") or (text(thing, "reportingInstance") if reporter == "kubelet" else "")
    happened = time(thing, "eventTime") or time(thing, "metadata", "creationTimestamp")
    return {
        "kind": text(about, "kind"),
        "namespace": text(about, "namespace"),
        "name": text(about, "name"),
        "reason": text(thing, "reason"),
        "message": text(thing, "message")[:LONGEST],
        "count": number(thing, "series", "count") or number(thing, "count") or 1,
        "first": time(thing, "firstTimestamp") or happened,
        "last": time(thing, "series", "lastObservedTime") or time(thing, "lastTimestamp") or happened,
        "type": text(thing, "type"),
        "host": host,
    }


def budget(thing):
    return {
        "namespace": text(thing, "metadata", "namespace"),
        "name": text(thing, "metadata", "name"),
        "allowed": number(thing, "status", "disruptionsAllowed"),
        "expected": number(thing, "status", "expectedPods"),
        "healthy": number(thing, "status", "currentHealthy"),
        "selector": at(thing, "spec", "selector"),
    }
