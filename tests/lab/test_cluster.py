"""Three nodes are a cluster with a network that works, also after a node was rebooted or lost its power."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from labs import BOOT, ROOT, eventually

from lab.kubernetes import VERSION
from lab.pod_images import TOOLS

NODES = ("n1", "n2", "n3")
ADDRESSES = ("10.0.0.11", "10.0.0.12", "10.0.0.13")
NODE_PORT = 30080
SAYS = "socat TCP-LISTEN:8080,fork,reuseaddr SYSTEM:hostname"  # a pod that tells its name to whoever connects


def objects(cluster, *words):
    return json.loads(cluster.kubectl("get", *words, "-o", "json"))["items"]


def ready(item):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", []))


def ready_nodes(cluster):
    return {node["metadata"]["name"] for node in objects(cluster, "nodes") if ready(node)}


def pods(cluster, label):
    return {pod["spec"]["nodeName"]: pod for pod in objects(cluster, "pods", "-A", "-l", label)}


def all_well(cluster):
    """Every node and every calico-node is Ready, as upstream's probes see it."""
    network = pods(cluster, "k8s-app=calico-node")
    return ready_nodes(cluster) == set(NODES) == {node for node, pod in network.items() if ready(pod)}


def test_nodes(cluster, figure):
    eventually("all nodes and their calico-node to be ready", lambda: all_well(cluster), BOOT)
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in objects(cluster, "nodes")} == {"v" + VERSION}
    figure("%d nodes, %s" % (len(NODES), cluster.do("status").splitlines()[-1]))


def test_mesh(cluster):
    """Each node's BIRD says that both of its peers are established."""

    def peers(pod):
        said = cluster.kubectl("exec", "-n", "kube-system", pod, "-c", "calico-node", "--", "birdcl", "-s", "/var/run/calico/bird.ctl", "show", "protocols")
        return [line.split()[0] for line in said.splitlines() if line.startswith("Mesh_") and line.split()[-1] == "Established"]

    for node, pod in pods(cluster, "k8s-app=calico-node").items():
        eventually("both peers of %s" % node, lambda name=pod["metadata"]["name"]: len(peers(name)) == 2)


@pytest.fixture(scope="module")
def talkers(cluster):
    """A pod on each node that tells its name, and a service that leads to that of n2 alone."""
    named = {node: "talker-" + node for node in NODES}
    for node, name in named.items():
        container = {"name": "tools", "image": TOOLS, "command": ["sh", "-c", SAYS]}
        spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
        apply(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"talker": node}}, "spec": spec})
    port = {"port": 80, "targetPort": 8080, "nodePort": NODE_PORT}
    service = {"type": "NodePort", "selector": {"talker": "n2"}, "ports": [port]}
    apply(cluster, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "talker"}, "spec": service})
    eventually("the pods to run", lambda: set(NODES) == {node for node, pod in pods(cluster, "talker").items() if ready(pod)})
    yield named
    cluster.kubectl("delete", "service/talker", *("pod/" + name for name in named.values()), "--force", "--ignore-not-found")  # one was drained away


def apply(cluster, thing):
    done = subprocess.run(cluster.command("kubectl", "apply", "-f", "-"), input=json.dumps(thing), cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_pods_across_nodes(cluster, talkers):
    """Over TCP, each from each."""
    for asks in NODES:
        for answers in NODES:
            address = pods(cluster, "talker")[answers]["status"]["podIP"]
            ask = ("exec", talkers[asks], "--", "socat", "-T10", "-", "TCP:%s:8080,connect-timeout=10" % address)
            eventually("an answer of %s to %s" % (answers, asks), lambda ask=ask, of=talkers[answers]: cluster.ask("kubectl", *ask) == (0, of), 120)


def test_node_port(cluster, talkers):
    """Asked from outside of the cluster, every node leads to the pod on n2."""
    ask = "import socket, sys; print(socket.create_connection((sys.argv[1], %d), 10).recv(100).decode())" % NODE_PORT
    for address in ADDRESSES:
        eventually("the service at %s" % address, lambda at=address: cluster.ask("exec", sys.executable, "-c", ask, at) == (0, talkers["n2"]), 120)


def test_drain_reboot_uncordon(cluster):
    """As an operator does it: by kubectl and Ansible."""
    boot = cluster.boot_id("n3")
    cluster.kubectl("drain", "n3", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=600s", timeout=700)
    reboot = [Path(sys.executable).with_name("ansible"), "-i", "lab/hosts.sh", "n3", "-m", "ansible.builtin.reboot", "-a", "reboot_timeout=900"]
    done = subprocess.run(reboot, cwd=ROOT, env=cluster.environment(), text=True, capture_output=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cluster.boot_id("n3") != boot
    cluster.kubectl("uncordon", "n3")
    eventually("all to be well again", lambda: all_well(cluster), BOOT)
    assert not [node for node in objects(cluster, "nodes") if node["spec"].get("unschedulable")]


def test_power_cut(cluster):
    """The cluster takes note of a node that is gone, and of its return."""
    cluster.do("cut", "n3")
    eventually("n3 not to be ready", lambda: ready_nodes(cluster) == {"n1", "n2"})
    cluster.do("start", "n3", timeout=BOOT)
    eventually("all to be well again", lambda: all_well(cluster), BOOT)
