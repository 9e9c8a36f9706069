"""Overloaded nodes, really drained, rebooted and given back: nodes with Calico and its mesh, looked at by kubectl and birdcl.

What a run refuses before it touches a node needs no real ones: test_recycle_refusals.py.
"""

from __future__ import annotations

import json
import time

import pytest
from labs import Watch, changed, eventually
from shop import closed, opened, pods_on, ready_pods

HOG = 60  # processes that only compute, so many that the average of five minutes is high within one
MARK = "nodecare/repair"
LEASE = ("-n", "kube-system", "get", "lease", "nodecare-repair", "--ignore-not-found", "-o", "name")
# A node of the lab is slow to boot, and slower while others use this machine's CPUs.
PATIENCE = {"nodecare_reboot_wait": 1200, "nodecare_wait": 900, "nodecare_drain_wait": 600}
AGREED = {"nodecare_reboot_ok": True, "nodecare_drain_even_emptydir": True, "nodecare_drain_even_bare": True, **PATIENCE}


def first_uncordoned(watch, boot):
    """The first look at a node that takes pods again, in another boot than this."""
    return next(one for _at, one in watch.seen if one["boot"] != boot and not one["cordoned"])


def look(lab, node):
    """{cordoned, ready, boot, calico}; nothing where the API server gave no answer."""
    code, said = lab.ask("kubectl", "get", "node", node, "-o", "json")
    if code:
        return None
    thing = json.loads(said)
    ready = {one["type"]: one["status"] for one in thing["status"]["conditions"]}.get("Ready")
    found = {"cordoned": thing["spec"].get("unschedulable", False), "ready": ready == "True", "boot": thing["status"]["nodeInfo"]["bootID"]}
    words = ("-n", "kube-system", "get", "pods", "-l", "k8s-app=calico-node", "--field-selector", "spec.nodeName=%s" % node, "-o", "json")
    code, said = lab.ask("kubectl", *words)
    pods = json.loads(said)["items"] if code == 0 else []
    calico = any((each["type"], each["status"]) == ("Ready", "True") for one in pods for each in one["status"].get("conditions", ()))
    return {**found, "marked": MARK in thing["metadata"].get("annotations", {}), "calico": calico}


def sessions(lab, node):
    """How many BGP sessions the node's BIRD has, by the kernel's word."""
    said = lab.ask("ssh", node, "ss -Htn state established '( sport = :179 or dport = :179 )' | wc -l")[1]
    return int(said) if said.isdigit() else 0


def nodes(lab):
    return sorted(line.rpartition("/")[2] for line in lab.kubectl("get", "nodes", "-o", "name").split())


def play(lab, *words, **variables):
    return lab.play("repair_overload", *words, **{**PATIENCE, **variables})


def well(lab, node):
    now = look(lab, node)
    return bool(now and now["ready"] and now["calico"] and not now["cordoned"] and not now["marked"] and sessions(lab, node))


@pytest.fixture
def ill(cluster):
    """n1 computes without end, and has a pod of a Deployment."""
    eventually("all nodes to be well", lambda: all(well(cluster, node) for node in nodes(cluster)), 900)
    opened(cluster, 2)
    cluster.do("fault", "n1", "busy", HOG)
    eventually("its load", lambda: all(float(one) > 8 for one in cluster.on("n1", "cat /proc/loadavg").split()[:2]), 900, 10)
    yield cluster
    for node in nodes(cluster):
        cluster.ask("start", node)
        cluster.ask("kubectl", "uncordon", node)
        cluster.ask("kubectl", "annotate", "node", node, MARK + "-")
    cluster.ask("kubectl", "-n", "kube-system", "delete", "lease", "nodecare-repair", "--ignore-not-found")
    closed(cluster)
    cluster.ask("heal", "n1", "all")
    eventually("all nodes to be well", lambda: all(well(cluster, node) for node in nodes(cluster)), 1800)


def test_drained_rebooted_and_given_back(ill, figure):
    """Predicted by check mode, and done; the cordon goes only after calico-node is Ready in the new boot, with a session. The second run changes nothing."""
    others = [node for node in nodes(ill) if node != "n1"]
    boots, pods = {node: ill.boot_id(node) for node in nodes(ill)}, pods_on(ill, "n1")
    foreseen = play(ill, "--check", "--diff", **AGREED)
    assert {node: ill.boot_id(node) for node in boots} == boots and look(ill, "n1")["cordoned"] is False and pods_on(ill, "n1") == pods
    for name in pods.values():
        assert "-shop/%s" % name in foreseen, foreseen

    began = time.monotonic()
    with Watch(lambda: look(ill, "n1")) as watch:
        done = play(ill, **AGREED)
    figure("drained, rebooted and given back in %.0f s" % (time.monotonic() - began))
    assert ill.boot_id("n1") != boots["n1"]
    assert {node: ill.boot_id(node) for node in others} == {node: boots[node] for node in others}, "another node was rebooted"
    assert any(one["cordoned"] and one["marked"] and one["boot"] == boots["n1"] for _at, one in watch.seen)
    first = first_uncordoned(watch, boots["n1"])
    assert first["ready"] and first["calico"] and not first["marked"]
    assert well(ill, "n1") and sessions(ill, "n1") >= 1 and ill.kubectl(*LEASE) == ""
    assert not pods.keys() & pods_on(ill, "n1").keys(), "pods were not moved"
    assert changed(done)["n1"] > 0 and all(changed(done)[node] == 0 for node in others)
    eventually("the application", lambda: ready_pods(ill) == 2)
    assert set(changed(play(ill, **AGREED)).values()) == {0}


def test_a_cordon_of_an_administrator_stays(ill):
    ill.kubectl("cordon", "n1")
    before = ill.boot_id("n1")
    play(ill, **AGREED)
    now = look(ill, "n1")
    assert ill.boot_id("n1") != before and now["ready"] and now["calico"]
    assert now["cordoned"] and not now["marked"]


def test_a_node_that_does_not_come_back_ends_the_run(ill):
    """Its plug is pulled once it was told to reboot. It stays cordoned with its mark, no other node is touched, and when it is back a second run gives
    it back."""
    boots = {node: ill.boot_id(node) for node in nodes(ill)}

    def pull(line):
        if line.rstrip(" *\n").endswith("Reboot it]"):
            time.sleep(10)
            ill.do("cut", "n1")

    said = play(ill, expect=(2,), at=pull, **{**AGREED, "nodecare_reboot_wait": 120, "nodecare_reboot_delay": 30})
    assert "No further node is touched" in said and "is left cordoned on purpose" in said
    assert "kubectl uncordon n1 && kubectl annotate node n1 %s-" % MARK in said and "--limit n1" in said
    now = look(ill, "n1")
    assert now["cordoned"] and now["marked"]
    others = [node for node in boots if node != "n1"]
    assert not any(look(ill, node)["cordoned"] or look(ill, node)["marked"] for node in others)
    assert {node: ill.boot_id(node) for node in others} == {node: boots[node] for node in others}
    assert ill.kubectl(*LEASE) == ""

    ill.do("start", "n1", timeout=1800)
    eventually("n1 to let us in", lambda: ill.ask("ssh", "n1", "true")[0] == 0, 900)
    again = ill.boot_id("n1")
    play(ill, "--limit", "n1", **AGREED)
    assert well(ill, "n1") and ill.boot_id("n1") == again, "a node that is well was rebooted once more"


def test_a_budget_that_blocks_keeps_the_node_as_it_was(ill):
    """The gate knows it before anything is touched. Without that gate the drain waits, names the budget, and evicts nothing of it."""
    ill.kubectl("-n", "shop", "patch", "pdb", "cart", "--type=merge", "-p", '{"spec":{"maxUnavailable":0}}')
    ill.kubectl("-n", "shop", "wait", "pdb/cart", "--for=jsonpath={.status.disruptionsAllowed}=0", "--timeout=60s")
    boots, pods = {node: ill.boot_id(node) for node in nodes(ill)}, pods_on(ill, "n1")
    if not pods:
        pytest.skip("the scheduler put no pod of the Deployment onto n1")
    said = play(ill, expect=(2,), **AGREED)
    assert "shop/cart" in said and look(ill, "n1")["cordoned"] is False
    said = play(ill, expect=(2,), **{**AGREED, "nodecare_skip_gates": ["budgets"], "nodecare_drain_wait": 30})
    assert "held by the budget shop/cart (allows 0 disruptions" in said
    assert "kubectl uncordon n1" in said or not look(ill, "n1")["cordoned"], "it is left cordoned, and nobody is told how to undo that"
    assert pods_on(ill, "n1") == pods and {node: ill.boot_id(node) for node in boots} == boots
