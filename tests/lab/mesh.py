"""Three nodes whose addresses Calico has right, and how a test finds and leaves them so; also with the start-up of an old Calico."""

from __future__ import annotations

import json

import pytest
from labs import BOOT, eventually

ILL = "n2"
WELL = {"n1": "10.0.0.11/24", "n2": "10.0.0.12/24", "n3": "10.0.0.13/24"}
BRIDGE, SECOND_NIC = "172.18.0.1/16", "10.1.0.12/24"


def registered(cluster):
    """{node: the address that Calico keeps for it}, by Calico's own tool."""
    nodes = json.loads(cluster.do("calicoctl", "get", "nodes", "-o", "json", "--allow-version-mismatch"))["items"]
    return {one["metadata"]["name"]: one["spec"].get("bgp", {}).get("ipv4Address") for one in nodes}


@pytest.fixture
def healed(cluster):
    eventually("every node to have its own address", lambda: registered(cluster) == WELL, BOOT)
    yield cluster
    cluster.do("heal", ILL, "all")
    eventually("every node to have its own address again", lambda: registered(cluster) == WELL, BOOT)


@pytest.fixture
def old_start(healed):
    healed.do("old-calico-start", timeout=BOOT)
    renewed(healed)
    yield healed
    healed.do("heal", ILL, "all")
    healed.kubectl("-n", "kube-system", "rollout", "undo", "daemonset/calico-node")
    renewed(healed)
    rolling = {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}}
    healed.kubectl("-n", "kube-system", "patch", "daemonset", "calico-node", "--patch", json.dumps(rolling))


def renewed(cluster):
    """Every calico-node anew, as its DaemonSet says now."""
    cluster.kubectl("-n", "kube-system", "delete", "pod", "-l", "k8s-app=calico-node")

    def ready():
        pods = json.loads(cluster.kubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=calico-node", "-o", "json"))["items"]
        conditions = [one for pod in pods for one in pod["status"].get("conditions", [])]
        return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions) == len(WELL)

    eventually("calico-node to be ready everywhere", ready, BOOT)
