"""Which machine is which Node, and which findings there are where the cluster is known."""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES, _rule
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._with_cluster import joined, unread

READ = {"schema": "nodecare.node/1", "taken": {"at": 1.0, "hostname": ""}, "problems": []}
POD = {"namespace": "kube-system", "name": "calico-node-x", "node": "n1"}
EVENT = {"kind": "Pod", "namespace": "kube-system", "name": "calico-node-x", "reason": "Unhealthy"}


def entry(name, *addresses):
    return {"name": name, "internal_ips": list(addresses)}


def holding(*addresses):
    return {"links": {"present": {"links": [{"name": "eth0", "addresses": [{"ip": one, "prefix": 24} for one in addresses]}]}}}


@pytest.mark.parametrize(
    "inventory_name, facts",
    [
        ("n1", {}),
        ("alias", {"taken": {"hostname": "n1"}}),
        ("alias", {"taken": {"hostname": "N1"}}),
        ("alias", {"kubelet": {"installed": {"node_name": "n1"}}, "taken": {"hostname": "n2"}}),
        ("n2", {"taken": {"hostname": "n1"}}),
        ("alias", holding("192.168.0.1", "10.0.0.11")),
    ],
    ids=["inventory", "hostname", "hostname in capitals", "the kubelet's word", "hostname before inventory", "address"],
)
def test_a_machine_finds_its_node(inventory_name, facts):
    views = joined({inventory_name: {**READ, **facts}}, {"nodes": [entry("n1", "10.0.0.11"), entry("n2", "10.0.0.12")]})
    assert views[inventory_name]["cluster"]["node"]["name"] == "n1"


def test_no_node_stands_for_two_machines():
    views = joined({name: {**READ, "taken": {"hostname": "n1"}} for name in ("a", "b")}, {"nodes": [entry("n1")]})
    assert [views[name]["cluster"]["node"] and views[name]["cluster"]["node"]["name"] for name in ("a", "b")] == ["n1", None]


def test_what_is_a_nodes_own():
    cluster = {"nodes": [entry("n1"), entry("n2")], "pods": [POD], "events": [EVENT, {"kind": "Node", "namespace": "", "name": "n2", "reason": "NodeNotReady"}]}
    views = joined({"n1": READ}, cluster)
    assert [(name, len(view["cluster"]["node"]["pods"]), len(view["cluster"]["node"]["events"])) for name, view in sorted(views.items())] == [
        ("n1", 1, 1),
        ("n2", 0, 1),
    ]


@pytest.fixture
def rules():
    """Only the rules of a test."""
    catalogue = dict(RULES)
    RULES.clear()
    yield
    RULES.clear()
    RULES.update(catalogue)


def judged(nodes, cluster):
    by = policy({})
    findings = _judge.judge(nodes, dict.fromkeys(nodes, by), list(RULES), by, cluster)
    return sorted((one["id"], one["node"], one["status"], one["message"]) for one in findings)


@pytest.mark.parametrize("members", [["n1"], ["n2"], []], ids=["a member", "not yet a member", "no Node at all"])
def test_no_rule_is_lost_where_the_cluster_was_read(members):
    """A machine leaves those that ask the cluster to the report, which must then have them all."""
    said = [{one[:2] for one in judged({"n1": READ}, cluster)} for cluster in (None, {"nodes": [entry(name) for name in members]}, unread("refused"))]
    assert said[0] and said[0] <= said[1] and said[0] <= said[2]
    alone = _judge.judge_node("n1", READ, policy({}), _judge.left_without(unread("refused"), {"n1": READ}, list(RULES)))
    assert alone and not [one["id"] for one in alone if RULES[one["id"]].asks_cluster]


@pytest.mark.usefixtures("rules")
def test_where_no_cluster_was_read_its_rules_are_skipped():
    _rule.rule("calico.one", "One", needs="cluster.node")(lambda node, policy: _rule.fail("bad"))
    _rule.of_cluster("cluster.all", "All", needs="cluster.nodes")(lambda nodes, policy: _rule.fail("bad"))
    assert judged({"n1": READ}, None) == [("calico.one", "n1", "skip", "no cluster was read")]


@pytest.mark.usefixtures("rules")
def test_a_cluster_that_could_not_be_read_leaves_its_rules_unknown():
    _rule.rule("calico.one", "One", needs="cluster.node")(lambda node, policy: _rule.fail("bad"))
    _rule.of_cluster("cluster.all", "All", needs="cluster.nodes")(lambda nodes, policy: _rule.fail("bad"))
    why = "cannot tell: the cluster: connection refused"
    assert judged({"n1": READ}, unread("connection refused")) == [("calico.one", "n1", "unknown", why), ("cluster.all", "cluster", "unknown", why)]


@pytest.mark.usefixtures("rules")
def test_a_machine_that_has_not_joined():
    _rule.rule("calico.one", "One", needs="cluster.node")(lambda node, policy: _rule.fail("bad"))
    _rule.rule("calico.two", "Two", needs="cluster.calico", uses="cluster.node")(lambda calico, node, policy: _rule.fail("%r" % node))
    said = judged({"new": READ}, {"nodes": [entry("n1")], "calico": {}})
    assert ("calico.one", "new", "skip", "this machine is no node of the cluster") in said
    assert ("calico.two", "new", "fail", "None") in said


@pytest.mark.usefixtures("rules")
def test_a_node_that_no_machine_stands_for_is_accused_but_never_praised():
    _rule.across("calico.each", "Each", needs="cluster.node.name")(lambda names, policy: {name: _rule.fail("bad") for name in names if name == "n2"})
    _rule.rule("calico.own", "Own", needs="links.present", uses="cluster.node")(lambda links, node, policy: _rule.fail("bad"))
    said = judged({"n1": READ}, {"nodes": [entry("n1"), entry("n2"), entry("n3")]})
    assert [one[:3] for one in said] == [("calico.each", "n1", "pass"), ("calico.each", "n2", "fail"), ("calico.own", "n1", "unknown")]


@pytest.mark.usefixtures("rules")
def test_what_the_sweep_could_not_see_is_never_a_pass():
    _rule.rule("calico.own", "Own", needs="cluster.node.name", uses="cluster.node.events")(lambda name, events, policy: _rule.passed("well"))
    cluster = {
        "nodes": [entry("n1")],
        "pods": [],
        "events": None,
        "problems": [{"fact": "cluster.events", "what": "events", "why": "forbidden", "kind": "error"}],
    }
    assert judged({"n1": READ}, cluster) == [("calico.own", "n1", "unknown", "cannot tell: events: forbidden")]
