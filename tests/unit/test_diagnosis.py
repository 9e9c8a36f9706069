"""From findings to causes: the tables make sense, and each story leads to what it really was."""

from __future__ import annotations

import re
import time

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _causes, _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._diagnosis import diagnose, place_of, untold
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from graphlib import TopologicalSorter
from tables import table

CASES = [case for name in ("calico-cluster", "cluster") for case in table("cases/" + name)]
POLICY = policy({})


def of_story(name):
    """All that is found in the case whose title begins so."""
    case = next(one for one in CASES if one["case"].startswith(name))
    nodes = {node: {"taken": {"hostname": node}, "problems": [], **machine["facts"]} for node, machine in case["nodes"].items()}
    cluster = {"schema": "nodecare.cluster/1", "problems": [], **case["cluster"]}
    return _judge.judge(nodes, dict.fromkeys(nodes, POLICY), [one for one in RULES if one in named()], POLICY, cluster)


def brief(answers):
    return [(one["cause"]["id"], one["cause"]["node"], [effect["id"] for effect in one["explains"]]) for one in answers]


def finding(rule_id, node="n1", status="fail", manual="", **evidence):
    remedy = {"playbook": None, "vars": {}, "disruptive": False, "reboot": False, "manual": manual} if manual else None
    return {"id": rule_id, "node": node, "status": status, "severity": "error", "title": rule_id, "message": "m", "evidence": evidence, "remedy": remedy}


# -- the tables ----------------------------------------------------------------------------------------------------------


def named():
    return {effect for effect, _says, _causes in _causes.EXPLAINED_BY} | {one for row in _causes.EXPLAINED_BY for one in row[2].split()}


def test_only_rules_are_named():
    more = {*_causes.DISPROVED_BY, *_causes.STAYS, *_causes.SEEN, *_causes.ELSEWHERE, *_causes.COMES_BACK_BY, *(one for pair in _causes.SAME for one in pair)}
    assert sorted((named() | more) - set(RULES)) == []


def test_nothing_explains_itself():
    """But for effects that come from another node; and a kubelet that is silent never says that it waits for its network."""
    graph = {}
    for effect, says, causes in _causes.EXPLAINED_BY:
        if effect not in _causes.ELSEWHERE and says not in ("not_ready", "node_not_ready"):
            graph.setdefault(effect, set()).update(causes.split())
    list(TopologicalSorter(graph).static_order())


def test_what_disproves_a_cause_names_evidence_that_there_is():
    """Beside the node only keys that the rule's findings carry."""
    keys = {rule_id: set(re.findall(r"%\((\w+)\)s", text)) - {"node"} for rule_id, text in _causes.DISPROVED_BY.items()}
    assert {rule_id: names for rule_id, names in keys.items() if names} == {
        "kubelet.certificate": {"path"},
        "links.stray_bridge": {"bridge"},
        "calico.bird_hung": {"socket"},
    }


# -- the stories -----------------------------------------------------------------------------------------------------------


def test_overload():
    (answer,) = diagnose(of_story("I1"))
    assert brief([answer]) == [("load.outlier", "n2", ["load.saturated", "calico.overloaded_node", "calico.crashing"])]
    assert [(one["id"], one["reboot"]) for one in answer["repair"]] == [("load.outlier", True)]
    assert answer["disproved_by"] == "the load of n2 falls to that of the others while the symptom stays"


@pytest.mark.parametrize("asked", [None, {"node": "n1"}, {"node": "n3"}, {"node": "n2"}, {"pod": "kube-system/calico-node-bbbbb", "node": None}])
def test_a_wrong_address_whoever_complains(asked):
    """n1 and n3 are well; who asks about them is led to n2."""
    assert brief(diagnose(of_story("I2 on three nodes"), asked)) == [("calico.registered_wrong_address", "n2", ["calico.bgp"])]


def test_a_stray_bridge():
    bridge = finding("links.stray_bridge", "n2", bridge="br-3a10a9384428", manual="docker network rm net1")
    other = finding("links.stray_bridge", "n2", bridge="br-000000000000")
    wrong = finding("calico.registered_wrong_address", "n2", link="br-3a10a9384428", manual="kubectl delete pod x")
    lost = finding("calico.bgp", "n2", because="wrong_address", lacked_by=["n1"])
    answers = diagnose([lost, wrong, other, bridge, finding("links.ambiguous_address", "n2", "warn")], {"node": "n1"})
    assert brief(answers) == [("links.stray_bridge", "n2", ["calico.registered_wrong_address", "calico.bgp", "links.ambiguous_address"])]
    assert [one["command"] for one in answers[0]["repair"]] == ["docker network rm net1", "kubectl delete pod x"]
    assert brief(diagnose([lost, wrong, other, bridge]))[1] == ("links.stray_bridge", "n2", [])


def test_the_wrong_nic_of_both():
    assert brief(diagnose(of_story("I6"))) == [("calico.registered_wrong_address", name, ["calico.bgp"]) for name in ("n1", "n2")]


def test_a_runtime_that_hangs():
    (answer,) = diagnose(of_story("I4: docker"), {"pod": "kube-system/calico-node-bbbbb", "node": None})
    assert (answer["cause"]["id"], answer["cause"]["node"]) == ("runtime.docker_cannot_reach_containerd", "n2")
    assert [one["id"] for one in answer["explains"]] == ["runtime.unresponsive", "runtime.unresponsive", "calico.init_stuck"]
    assert brief(diagnose(of_story("I4: the runtime"))) == [("runtime.unresponsive", "n2", ["cluster.node_not_ready"])]


def test_swap_that_came_back():
    findings = [*of_story("I5"), finding("swap.returns", "n2", manual="mask it"), finding("swap.returns", "n1")]
    first = diagnose(findings, {"node": "n2"})[0]
    assert first["cause"]["id"] == "kubelet.refuses_swap"
    assert {"cluster.node_not_ready", "cluster.service_path", "kubelet.down", "swap.active"} <= {one["id"] for one in first["explains"]}
    assert [(one["id"], one["node"]) for one in first["for_good"]] == [("swap.returns", "n2")]
    assert ("swap.returns", "n2", []) not in brief(diagnose(findings)), "what brings it back is told with it"


def test_the_path_to_the_api_server_comes_before_the_left_over_directory():
    answers = diagnose(of_story("I7: the same"))
    assert brief(answers) == [("calico.init_stuck", "n2", []), ("links.ipam_leftovers", "n2", ["calico.ipam_migration"])]
    assert answers[0]["unexplained"]


def test_a_migration_that_loops():
    ((rule_id, node, explains),) = brief(diagnose(of_story("I7: the API")))
    assert (rule_id, node) == ("links.ipam_leftovers", "n2")
    assert {"calico.ipam_migration", "calico.init_stuck", "calico.datastore_not_ready"} == set(explains)


def test_many_nodes_at_once():
    assert brief(diagnose(of_story("half of")))[0] == ("cluster.too_many_not_ready", "cluster", ["cluster.node_not_ready"] * 2)


# -- what is asked for -------------------------------------------------------------------------------------------------------


def test_others_troubles_are_left_out():
    findings = [finding("swap.active", "n1"), finding("load.disk", "n2"), finding("calico.datastore_not_ready", "cluster", nodes=["n2"])]
    assert brief(diagnose(findings, {"node": "n1"})) == [("swap.active", "n1", [])]
    assert brief(diagnose([finding("cluster.unreachable", "cluster"), *findings], {"node": "n1"})) == [
        ("cluster.unreachable", "cluster", []),
        ("swap.active", "n1", []),
    ]
    assert diagnose(findings, {"node": "n9"}) == []


def test_warnings_that_explain_nothing_are_left_out():
    assert diagnose([finding("host.sysctl", status="warn")]) == []
    assert diagnose([]) == []


def test_findings_that_explain_each_other_are_not_lost():
    ring = [finding("cluster.node_not_ready", because="calico"), finding("calico.init_stuck", cause="not_ready")]
    assert brief(diagnose(ring)) == [("cluster.node_not_ready", "n1", ["calico.init_stuck"])]


def test_a_large_cluster():
    rules = ("calico.crashing", "calico.overloaded_node", "load.outlier", "calico.bgp")
    findings = [finding(rule_id, "n%d" % node) for node in range(1000) for rule_id in rules]
    began = time.process_time()
    assert len(diagnose([*findings, finding("calico.address_conflict")])) == 2001
    assert time.process_time() - began < 2


def test_what_could_not_be_looked_at():
    stuck = finding("calico.init_stuck", "n1", cause="unknown")
    lost = [finding("runtime.unresponsive", node, "unknown") for node in ("n1", "n2")] + [finding("swap.returns", "n1", "unknown")]
    assert [one["unexplained"] for one in diagnose([stuck, *lost])] == [True]
    assert untold([stuck, *lost]) == lost[:1]
    assert untold([finding("runtime.unresponsive"), *lost]) == []


def test_a_finding_that_names_its_cause_takes_no_other():
    findings = [finding("cluster.node_not_ready", because="kubelet.certificate"), finding("load.disk"), finding("kubelet.certificate", path="/x; reboot")]
    assert brief(diagnose(findings)) == [("kubelet.certificate", "n1", ["cluster.node_not_ready"]), ("load.disk", "n1", [])]
    assert "'/x; reboot'" in diagnose(findings)[0]["disproved_by"]


def test_a_pod_is_found_on_its_node():
    cluster = {"pods": [{"namespace": "a", "name": "x", "node": "n1"}, {"namespace": "b", "name": "x", "node": "n2"}]}
    assert [place_of(pod, cluster) for pod in ("b/x", "b/y", "x")] == ["n2", None, None]
    assert place_of("a/x", None) is None
