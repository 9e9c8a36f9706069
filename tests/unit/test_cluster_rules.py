"""The rules about a cluster, on a real healthy one and on documents in which something is missing or of another form."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

HEALTHY = table("clusters/healthy")
STORIES = [case for name in ("calico-cluster", "cluster") for case in table("cases/" + name) if case.get("cluster", {}).get("nodes")]
IDS = [rule_id for rule_id, rule in RULES.items() if rule.asks_cluster]
POLICY = policy({})


def judged(nodes, cluster):
    machines = {name: {"taken": {"hostname": name}, "problems": [], **facts} for name, facts in nodes.items()}
    return _judge.judge(machines, dict.fromkeys(machines, POLICY), IDS, POLICY, cluster)


def test_a_healthy_cluster_gives_nothing_to_do():
    findings = judged({}, HEALTHY)
    assert [(one["id"], one["node"], one["message"]) for one in findings if one["status"] in ("fail", "warn")] == []


def places(thing, path=()):
    """Every place in a document."""
    yield path
    for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ():
        yield from places(value, (*path, key))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_rule_breaks_on_a_document_with_holes(data):
    """What could not be read is null; a rule then says that it cannot tell, and does not fall over it."""
    case = data.draw(st.sampled_from(STORIES))
    cluster = {"problems": [], **copy.deepcopy(case["cluster"])}
    for path in data.draw(
        st.lists(st.sampled_from([one for one in places(cluster) if one and one[0] != "problems" and one[-1] not in NAMES]), max_size=3, unique=True)
    ):
        empty(cluster, path)
    findings = judged({name: machine.get("facts") or {} for name, machine in (case.get("nodes") or {}).items()}, cluster)
    assert [one["message"] for one in findings if "broke:" in one["message"]] == []


NAMES = ("name", "namespace", "component", "kind")  # without these there is no such thing


def empty(thing, path):
    for step in path[:-1]:
        thing = thing.get(step) if isinstance(thing, dict) else thing[step] if isinstance(thing, list) and isinstance(step, int) and step < len(thing) else None
        if thing is None:
            return
    if isinstance(thing, dict):
        thing[path[-1]] = None


@pytest.mark.parametrize("name", ["'; reboot #", "a\nb", "\x1b[31m", "%(x)s %d"])
def test_hostile_names_stay_text(name):
    cluster = {"problems": [], "nodes": [{"name": name, "created": 1, "conditions": {"Ready": {"status": "False", "message": name}}}], "pods": [], "calico": {}}
    findings = judged({}, {**cluster, "taken": {"at": 5000}})
    assert {one["id"] for one in findings if one["status"] == "fail"} >= {"cluster.node_not_ready"}


# -- who is accused ------------------------------------------------------------------------------------------------------


def address(number):
    return "10.0.0.%d" % (number + 11)


def mesh(count, ill, wrong, read, complains):
    """A mesh in which one node has no session: with a wrong address, or with its own, to which the way is closed."""
    places = {number: wrong if number == ill and wrong else address(number) for number in range(count)}
    nodes = [entry(number, places[number]) for number in range(count)]
    pods = [pod(number, ready=number != ill) for number in range(count)]
    others = ",".join(places[number] for number in range(count) if number != ill)
    said = "Readiness probe failed: calico/node is not ready: BIRD is not ready: BGP not established with %s\n" % others
    events = [{"kind": "Pod", "namespace": "kube-system", "name": "calico-node-%d" % ill, "reason": "Unhealthy", "message": said, "last": 999990}]
    facts = {}
    for number in read:
        rows = [{"peer": places[other], "state": "Active" if ill in (number, other) else "Established"} for other in range(count) if other != number]
        facts["n%d" % number] = {"calico": {"bird": {"sockets": [{"path": "/var/run/calico/bird.ctl", "state": "answered", "protocols": rows}]}}}
    cluster = {
        "taken": {"at": 1000000},
        "nodes": nodes,
        "pods": pods,
        "events": events if complains else [],
        "calico": {"backend": "bird", "bgp": {"peers": []}},
    }
    return facts, {"problems": [], **cluster}


def entry(number, registered):
    ready = {"Ready": {"status": "True"}}
    return {"name": "n%d" % number, "created": 1, "internal_ips": [address(number)], "conditions": ready, "calico": {"ipv4": registered + "/24"}}


def pod(number, ready):
    runs = {"name": "calico-node", "state": "running", "restarts": 0, "since": 10, "last": None}
    about = {"namespace": "kube-system", "name": "calico-node-%d" % number, "component": "calico-node", "node": "n%d" % number, "created": 5}
    return {**about, "ready": ready, "init": [], "containers": [runs]}


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_only_the_ill_node_is_accused(data):
    """Whoever was read, and whoever complains: with three nodes or more it is never one that is well."""
    count = data.draw(st.integers(3, 6))
    ill = data.draw(st.integers(0, count - 1))
    wrong = data.draw(st.sampled_from(["", "172.18.0.1", "10.0.0.66"]))
    read = data.draw(st.sets(st.integers(0, count - 1)))
    complains = data.draw(st.booleans())
    findings = judged(*mesh(count, ill, wrong, read, complains))
    accused = {one["node"] for one in findings if one["id"] == "calico.bgp" and one["status"] == "fail"}
    known = complains or ill in read or read
    sure = wrong or complains or ill in read or len(read) >= 2  # else one view alone does not tell which end is ill
    if known and sure:
        assert accused == {"n%d" % ill}
    if not known:
        assert accused == set()
