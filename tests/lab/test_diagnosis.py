"""The stories for real: foreseen while all is well, where that can be, and the ill node and the cause named once it has happened.

With three nodes those that are well stay Ready, and hide the fault.
"""

from __future__ import annotations

import pytest
from diagnoses import accused, finding, first_cause, reported
from labs import BOOT, eventually
from mesh import BRIDGE, ILL, SECOND_NIC, WELL, healed, old_start, registered, renewed  # noqa: F401 - the fixtures among them
from test_cluster import pods

AT_ONCE = ("--force", "--grace-period=0", "--wait=false")


def foreseen_then_diagnosed(cluster, tmp_path, fault, address, repair):
    cluster.do("fault", ILL, fault)
    report, _said = reported(cluster, "preflight", tmp_path)
    assert accused(report, "calico.wrong_address") == [ILL]
    assert address in finding(report, "calico.wrong_address", ILL)["message"]
    eventually("Calico to register it", lambda: registered(cluster) == {**WELL, ILL: address}, BOOT)
    report, said = reported(cluster, "diagnose", tmp_path)
    assert accused(report, "calico.registered_wrong_address") == [ILL]
    assert accused(report, "calico.bgp") in ([ILL], [])  # sessions may be up over the other network
    assert "%s: " % ILL in first_cause(said).splitlines()[0]
    assert "calico.registered_wrong_address on %s" % ILL in first_cause(said)
    assert "ansible-playbook nodecare.kubernetes.%s\n" % repair in first_cause(said), said


def test_the_second_nic(healed, tmp_path):  # noqa: F811
    """Of today's Calico, whose address monitor looks once a minute."""
    foreseen_then_diagnosed(healed, tmp_path, "wrong-nic", SECOND_NIC, "repair_autodetection")


def test_a_docker_bridge(old_start, tmp_path):  # noqa: F811
    foreseen_then_diagnosed(old_start, tmp_path, "stray-bridge", BRIDGE, "repair_bridges --limit %s" % ILL)


def calico_node(cluster, node=ILL):
    """Its newest pod there."""
    return pods(cluster, "k8s-app=calico-node")[node]


def restarts(cluster):
    return sum(one["restartCount"] for one in calico_node(cluster)["status"].get("containerStatuses", []))


@pytest.fixture
def rested(healed):  # noqa: F811
    healed.kubectl("-n", "kube-system", "rollout", "status", "daemonset/calico-node", "--timeout=%ds" % BOOT, timeout=BOOT + 60)
    for node in WELL:
        eventually("%s to be at rest" % node, lambda node=node: float(healed.on(node, "cat /proc/loadavg").split()[0]) < 4, BOOT, 10)
    yield healed
    healed.do("heal", ILL, "busy")
    renewed(healed)


def test_a_hog_that_kills_calico_node(rested, tmp_path):
    """A restart loop on one of three nodes; its own log says nothing of why. What the hog leaves to the pods is less than a start or a probe takes."""
    rested.kubectl("-n", "kube-system", "delete", "pod", calico_node(rested)["metadata"]["name"])
    eventually("calico-node to start", lambda: any(one.get("started") for one in calico_node(rested)["status"].get("containerStatuses", [])), BOOT, 0.5)
    before = restarts(rested)  # a start may have failed for other reasons
    rested.do("fault", ILL, "busy", 30, "--weight", 1000)
    eventually("its liveness probe to give up on it", lambda: restarts(rested) > before, BOOT)
    report, said = reported(rested, "diagnose", tmp_path, outlier_uptime_seconds=0)
    assert accused(report, "calico.overloaded_node") == [ILL]
    found = finding(report, "calico.overloaded_node", ILL)
    assert "iveness probe" in found["message"] and "the other 2 nodes have" in found["message"], found
    assert found["remedy"]["playbook"] == "nodecare.kubernetes.repair_overload" and found["remedy"]["reboot"]
    assert "%s: " % ILL in first_cause(said).splitlines()[0] and "calico.overloaded_node on %s" % ILL in first_cause(said), said


@pytest.fixture
def silent(healed):  # noqa: F811
    healed.do("fault", ILL, "hung-containerd")
    yield healed
    healed.do("heal", ILL, "hung-containerd")
    renewed(healed)


def test_init_that_waits_for_the_runtime(silent, tmp_path):
    """The same picture as of a migration that does not end, which tests/lab/test_repair_ipam_node.py shows."""
    silent.kubectl("-n", "kube-system", "delete", "pod", calico_node(silent)["metadata"]["name"], *AT_ONCE)
    eventually("a new pod to be bound to the node", lambda: calico_node(silent)["status"]["phase"] == "Pending", BOOT)
    report, said = reported(silent, "diagnose", tmp_path, calico_init_s=1)
    found = finding(report, "calico.init_stuck", ILL)
    assert "Init:0/" in found["message"] and found["evidence"]["cause"] == "runtime", found
    assert accused(report, "calico.init_stuck") == accused(report, "runtime.unresponsive") == [ILL]
    assert "[runtime.unresponsive]" in first_cause(said) and "calico.init_stuck on %s" % ILL in first_cause(said), said
