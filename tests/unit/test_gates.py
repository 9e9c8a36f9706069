"""What stops a repair before it begins.

- case: one sentence
  nodes: {name: words}         # roles, NotReady, cordoned, learner; the first one is the one to repair
  etcd: {node: healthy or ill} # its pods
  servers: [node]              # on which an API server is ready
  asked: host:port             # whom the run asks
  budgets: [{name, allowed}]   # each for the pods app=<name> of namespace shop
  pods: {node: [{labels, cpu, …}]}  # where they were read
  annotations: {node: {…}}
  locks: [node]                # for which kured holds its lock
  calico_nodes: [node]         # on which one runs, with BIRD in a full mesh, or as calico says
  calico: {…}
  unread: [fact]
  kind: late                   # why they are; else they are denied
  repair: {…}                  # where it differs from one that disrupts
  want: {gate: verdict}
  why, advice: a part of the words of the first gate that is wanted
"""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.action import node_gate
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _gates, _room
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._sweep import _nodes
from tables import table

CASES = table("gates/gates")
ROOM = {"cpu": "1", "memory": "1Gi", "pods": "3"}
STATES = ("NotReady", "cordoned", "learner")


def entry(number, name, words, annotations):
    roles = {_nodes.ROLE + word: "" for word in words.split() if word not in STATES}
    ready = {"type": "Ready", "status": "False" if "NotReady" in words else "True"}
    voter = {"type": "EtcdIsVoter", "status": "False" if "learner" in words else "True"}
    return _nodes.node(
        {
            "metadata": {"name": name, "labels": roles, "annotations": annotations},
            "spec": {"unschedulable": "cordoned" in words},
            "status": {"conditions": [ready, voter], "addresses": [{"type": "InternalIP", "address": "10.0.0.%d" % number}], "allocatable": ROOM},
        }
    )


def pod(labels=None, namespace="shop", owner="ReplicaSet", phase="Running", cpu="100m"):
    owners = [{"kind": owner, "name": "x", "uid": "1", "controller": True}]
    return {"metadata": {"name": "x", "namespace": namespace, "labels": labels or {}, "ownerReferences": owners}, "status": {"phase": phase}, **asking(cpu)}


def asking(cpu):
    return {"spec": {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]}}


def cluster(case):
    annotations = case.get("annotations", {})
    nodes = [entry(number, name, words, annotations.get(name, {})) for number, (name, words) in enumerate(case["nodes"].items(), 1)]
    place = {one["name"]: one["internal_ips"][0] for one in nodes}
    budgets = [{"namespace": "shop", "expected": 1, "healthy": 1, "selector": {"matchLabels": {"app": one["name"]}}, **one} for one in case.get("budgets", ())]
    made = {
        "taken": {"server": case.get("asked", "10.9.9.9:6443")},
        "nodes": nodes,
        "etcd": [{"node": name, "ready": state == "healthy", "deleting": False} for name, state in case.get("etcd", {}).items()],
        "services": {"kubernetes": {"endpoints": ["%s:6443" % place[name] for name in case.get("servers", ())]}},
        "budgets": budgets,
        "pods": [{"node": name, "component": "calico-node"} for name in case.get("calico_nodes", ())],
        "calico": {"datastore": "kubernetes", "backend": "bird", "bgp": {"mesh": True, "peers": []}, **case.get("calico", {})},
        "locks": [{"who": "kured", "what": "holds its lock", "where": "its DaemonSet", "node": name, "until": None} for name in case.get("locks", ())],
        "problems": [{"fact": "cluster." + fact, "what": "GET it", "why": "forbidden", "kind": case.get("kind", "denied")} for fact in case.get("unread", ())],
    }
    for fact in case.get("unread", ()):
        place, _dot, name = fact.rpartition(".")
        (made[place] if place else made)[name] = None
    return made


@pytest.mark.parametrize("case", [pytest.param(one, id=one["case"]) for one in CASES])
def test_case(case):
    known = cluster(case)
    given = {"disruptive": True, **case.get("repair", {})}
    repair = _gates.Repair(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})
    pods = {name: [pod(**one) for one in on] for name, on in case.get("pods", {}).items()}
    gates = {
        one["gate"]: one for one in _gates.judged(_gates.Scene(known, known["nodes"][0], repair, policy({"thresholds": case.get("thresholds", {})}), pods))
    }
    assert {name: gates[name]["verdict"] for name in case["want"]} == case["want"], gates
    first = gates[next(iter(case["want"]))]
    assert case.get("why", "") in first["why"], first
    assert case.get("advice", "") in first["advice"], first
    assert all(one["why"].isprintable() for one in gates.values())


def test_each_verdict_of_each_gate_has_a_case():
    """But that nobody can tell: Nodes are known, or nothing is judged at all. What a node has to prove can only be unknown."""
    told = {(name, verdict) for case in CASES for name, verdict in case["want"].items()}
    blind = {"etcd", "api_server", "budgets", "other_operators"}
    verdicts = {name: {"pass", "stop", *(("unknown",) if name in blind else ())} for name in _gates.GATES} | {"proof": {"pass", "unknown"}}
    assert told >= {(name, verdict) for name, some in verdicts.items() for verdict in some}


@pytest.mark.parametrize(
    ("verdict", "disruptive", "skipped", "stops"),
    [("pass", True, (), False), ("stop", False, (), True), ("unknown", True, (), True), ("unknown", False, (), False), ("stop", True, ("etcd",), False)],
)
def test_what_stops(verdict, disruptive, skipped, stops):
    gates = [{"gate": "etcd", "verdict": verdict}]
    assert _gates.stopping(gates, disruptive, skipped) == (gates if stops else [])


LEFT = '{"run": "r0", "holder": "a@b", "repair": "restart_runtime", "at": "2026-11-18T20:00:00Z", "cordoned": true}'


@pytest.mark.parametrize(
    ("disruptive", "marked", "skip", "stops"),
    [(True, False, [], True), (False, False, [], False), (False, True, [], True), (False, True, ["proof"], False)],
)
def test_a_node_is_not_given_back_while_nobody_can_tell_what_it_has_to_prove(disruptive, marked, skip, stops):
    """Also by a repair that disrupts nothing, where an earlier one has left its mark."""
    annotations = {"w1": {"nodecare/repair": LEFT}} if marked else {}
    known = cluster({"nodes": {"w1": "", "w2": ""}, "unread": ["pods"], "annotations": annotations})
    scene = _gates.Scene(known, known["nodes"][0], _gates.Repair(disruptive), policy({}))
    result = node_gate._result("w1", known, {"disruptive": disruptive, "skip": skip}, _gates.judged(scene), scene.node)
    assert bool(result.get("failed")) is stops, result["msg"]


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        (None, ""),
        (LEFT, "kubectl uncordon w1 && kubectl annotate node w1 nodecare/repair-"),
        (LEFT.replace("true", "false"), "kubectl annotate node w1 nodecare/repair-"),
        ("{", "kubectl annotate node w1 nodecare/repair-"),
    ],
)
def test_the_way_out_of_an_earlier_repair_is_known(mark, command):
    known = cluster({"nodes": {"w1": ""}, "annotations": {"w1": {"nodecare/repair": mark}} if mark else {}})
    assert node_gate._result("w1", known, {"disruptive": True, "skip": []}, [], known["nodes"][0])["undo_command"] == command


@pytest.mark.parametrize(("kubelet", "verdict"), [({"installed": {"joined": False}}, "pass"), ({"installed": {"joined": True}}, "unknown"), ({}, "unknown")])
def test_a_machine_that_is_no_node(kubelet, verdict):
    """One that has not joined is repaired without a cluster; of another nobody knows which Node it is."""
    known = cluster({"nodes": {"w1": ""}})
    machines = {"here": {"taken": {"hostname": "x"}, "kubelet": kubelet}}
    arguments = {"node": None, "results": "nodecare_check", "disruptive": True, "skip": []}
    own, others, entry_of_it = node_gate._whose(arguments, machines, known, "here")
    assert (own, others, entry_of_it) == ("here", (), None)
    result = node_gate._result("here", known, arguments, [node_gate._unknown(machines, "here", known)])
    assert (result["node"], result["gates"][0]["verdict"], bool(result.get("failed"))) == ("", verdict, verdict != "pass")


def test_batch_mates_are_known_by_their_machines():
    known = cluster({"nodes": {"w1": "", "w2": "", "w3": ""}})
    machines = {"a": {"taken": {"hostname": "w2"}}, "b": {"taken": {"hostname": "w1"}}, "c": {"taken": {"hostname": "new"}}}
    own, others, found = node_gate._whose({"node": None, "results": "nodecare_check"}, machines, known, "a")
    assert (own, others, found["name"]) == ("a", ("w1",), "w2")


def test_what_stops_says_how_to_go_on():
    gates = [{"gate": "etcd", "verdict": "unknown", "why": "etcd runs elsewhere", "advice": "look at it"}]
    result = node_gate._result("c1", cluster({"nodes": {"c1": ""}}), {"disruptive": True, "skip": []}, gates)
    assert result["failed"]
    assert "etcd: etcd runs elsewhere; this cannot be told (look at it)" in result["msg"]
    assert "nodecare_skip_gates" in result["msg"]
    assert "failed" not in node_gate._result("c1", cluster({"nodes": {"c1": ""}}), {"disruptive": True, "skip": ["etcd"]}, gates)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("500m", 0.5),
        ("2", 2.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1Gi", 2**30),
        ("128974848", 128974848.0),
        ("1e3", 1000.0),
        ("100k", 1e5),
        ("1E", 1e18),
        ("", None),
        ("x", None),
        (None, None),
        ("1Zi", None),
    ],
)
def test_quantities(said, means):
    assert _room.quantity(said) == means
