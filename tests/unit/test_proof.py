"""What proves that a node is well again, by what an API server and a BIRD say look by look."""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.action.node_proof import LEASES, Node
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _proof
from api_server import Api, Recorded

NODE, POD = "/api/v1/nodes/n1", "calico-node-7w8jl"
WANTS = {"node": "n1", "since": None, "boot_id": None, "calico_node": True, "bgp": False, "timeout": 5.0}
BEATEN = {"renewTime": "2026-11-18T20:00:00.000000Z"}
LATER = {"renewTime": "2026-11-18T20:00:10.000000Z"}
SILENT = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}]}}


class Looks:
    """The API server's objects, changed from one look to the next."""

    def __init__(self, change=None, answers=None, **wants):
        self.api = Api(change, answers)
        entry = next(one for one in self.api.objects["/api/v1/nodes"] if one["metadata"]["name"] == "n1")
        self.api.objects[NODE] = {**entry, **self.api.objects.get(NODE, {})}
        self.pod = next(one for one in self.api.objects["/api/v1/pods"] if one["spec"]["nodeName"] == "n1" and "calico-node" in one["metadata"]["name"])
        self.api.objects["/api/v1/pods"] = [self.pod]
        self.node = Node(Recorded(self.api), {**WANTS, **wants})
        self.beat(BEATEN)

    def beat(self, spec):
        self.api.objects[LEASES] = [{"metadata": {"name": "n1"}, "spec": spec}]

    def look(self):
        return "; ".join(self.node.look())


def test_a_well_node_has_only_to_live():
    looks = Looks()
    assert looks.look().startswith("a heartbeat after")
    looks.beat(LATER)
    assert looks.look() == ""
    assert looks.node.proven[0] == "Ready" and looks.node.proven[2].endswith("is ready")


def test_a_clock_that_is_ahead_proves_nothing():
    looks = Looks(since=100.0)
    looks.beat({"renewTime": "2126-11-18T20:00:00Z"})
    assert looks.look() == looks.look() == "a heartbeat after 20:00:00 UTC"


def test_a_clock_that_is_behind_is_waited_for():
    """A heartbeat has to be newer than what is asked for, too."""
    looks = Looks(since=1795032005.0)
    looks.look()
    looks.beat({"renewTime": "2026-11-18T20:00:04Z"})
    assert "a heartbeat after" in looks.look()


def test_a_boot():
    looks = Looks(boot_id="one")
    looks.api.objects[NODE]["status"]["nodeInfo"]["bootID"] = "one"
    looks.look()
    looks.beat(LATER)
    assert looks.look() == "its kubelet to say that it has booted anew"
    looks.api.objects[NODE]["status"]["nodeInfo"]["bootID"] = "two"
    assert looks.look() == ""


def test_what_is_missing_is_named():
    looks = Looks({NODE: SILENT})
    looks.pod["status"] = {"conditions": [{"type": "Ready", "status": "False"}], "phase": "Pending"}
    looks.pod["spec"]["initContainers"] = [{"name": "upgrade-ipam"}, {"name": "install-cni"}]
    assert "Ready (NodeStatusUnknown: Kubelet stopped posting node status.)" in looks.look()
    assert "%s to be ready (it is in Init:0/2; %s)" % (looks.pod["metadata"]["name"], _proof.HEALTHY_WAIT) in looks.look()
    looks.api.objects["/api/v1/pods"] = []
    assert "a calico-node pod on it" in looks.look()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({NODE: 404}, "the cluster to have a Node n1"),
        ({NODE: 500}, "an answer of the API server (it broke (HTTP status 500))"),
        ({LEASES: 403}, "an answer of the API server (somebody cannot list this (HTTP status 403))"),
    ],
)
def test_a_server_that_does_not_say_is_waited_for(answers, said):
    assert Looks(answers=answers).look() == said


def bird(*states, state="answered"):
    protocols = [{"peer": "10.0.0.%d" % number, "state": one, "info": "Connection refused"} for number, one in enumerate(states, 1)]
    return {"sockets": [{"path": "/var/run/calico/bird.ctl", "state": state, "protocols": protocols}]}


@pytest.mark.parametrize(
    ("said", "missing", "proven"),
    [
        (bird("Established", "Active"), "", "1 of 2 BGP sessions are established"),
        (bird("Active"), "a BGP session (10.0.0.1 is in Active Connection refused)", ""),
        (bird(""), "a BGP session (10.0.0.1 is in no state Connection refused)", ""),
        (bird(), "its BIRD to have a BGP session", ""),
        (bird(state="hung"), "its BIRD to answer (/var/run/calico/bird.ctl: hung)", ""),
        ({"sockets": []}, "a BIRD on it that could be asked", ""),
        (None, "a BIRD on it that could be asked", ""),
    ],
)
def test_a_session(said, missing, proven):
    assert _proof.session(said) == (missing, proven)


MESH = {"mesh": True, "peers": []}


def of_peers(*peers):
    return {"mesh": False, "peers": [{"node": node, "node_selector": selector} for node, selector in peers]}


@pytest.mark.parametrize(
    ("calico", "nodes", "expected"),
    [
        ({"bgp": MESH}, ["n1", "n2"], (True, True)),
        ({"bgp": MESH}, ["n1"], (True, False)),
        ({"bgp": MESH}, ["n2"], (False, False)),
        ({"bgp": of_peers(("n1", ""))}, ["n1", "n2"], (True, True)),
        ({"bgp": of_peers(("", "all()"))}, ["n1"], (True, True)),
        ({"bgp": of_peers(("n2", ""), ("", "rack == 'a'"))}, ["n1", "n2"], (True, False)),
        ({"bgp": None}, ["n1", "n2"], (True, False, "calico.bgp")),
        ({"backend": None, "bgp": MESH}, ["n1", "n2"], (True, False, "calico.backend")),
        ({"backend": "vxlan", "bgp": None}, ["n1", "n2"], (True, False)),
        ({"datastore": "etcd", "bgp": None}, ["n1", "n2"], (True, True)),
        ({"datastore": "etcd", "bgp": None}, ["n1"], (True, False)),
        ({"bgp": MESH}, None, (False, False, "pods")),
    ],
)
def test_what_a_node_has_to_prove(calico, nodes, expected):
    pods = nodes and [{"node": name, "component": "calico-node"} for name in nodes] + [{"node": "n1", "component": "calico-typha"}]
    cluster = {"pods": pods, "calico": {"datastore": "kubernetes", "backend": "bird", **calico}}
    assert _proof.expected(cluster, "n1") == _proof.Expected(*expected)
