"""How long Calico's real start takes behind a slow path to a real API server with many nodes, against what was foreseen.

What is foreseen comes from the real probe, which measures the same path. A twin is enough: Calico's start-up is the real one,
and no kubelet is there to kill it.
"""

from __future__ import annotations

import json
import sys

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._startup_time import Latency, startup
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from labs import ROOT, Lab, own_name

PART = 0.3  # of the measured time, by which the foreseen one may be wrong
BUSY = 1.5  # seconds more, for a machine that has other things to do
OWN = 1  # the twin's Node
PROBE = """
import json, sys
sys.path.insert(0, %r)
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _probes
print(json.dumps(_probes.read(["path"], 30.0, targets={"api": ["10.0.0.1:6443"]})["path"]["api"][0]))
""" % str(ROOT / ".collections")
# (answers come so many ms later, nodes of the cluster, at a first start of its node, what else)
PAIRS = [
    (100, 1, True, {}),
    (600, 1, False, {}),
    (300, 501, True, {}),
    (300, 501, True, {"tunnel": True}),
    (500, 1201, False, {}),
    (800, 1201, True, {}),
    (400, 1201, True, {"old": True}),
    (400, 1201, False, {"old": True}),
]


@pytest.fixture(scope="module")
def lab():
    made = Lab(own_name("u"))
    try:
        made.do("twins", 1, timeout=1800)
        made.do("cut", "kube-controller-manager")  # it would mark all these nodes as unreachable, one after the other
        yield made
    finally:
        made.do("down")


@pytest.fixture
def path(lab):
    yield lambda ms: lab.do("api", "slow", "--for", "everyone", "--ms", ms)
    lab.do("api", "heal")


def node(number):
    """As a kubelet writes it: most of it is the list of images."""
    name, address = "s%05d" % number, "10.64.%d.%d" % (number // 250, 1 + number % 250)
    images = [{"names": ["registry.example/team-%02d/service-%d:v1.%d.0" % (one % 20, one, one)], "sizeBytes": 100000000 + one} for one in range(50)]
    conditions = [{"type": kind, "status": "False", "reason": "Kubelet", "message": "as it should be"} for kind in ("MemoryPressure", "DiskPressure", "Ready")]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"projectcalico.org/IPv4Address": address + "/8"}},
        "status": {"addresses": [{"type": "InternalIP", "address": address}], "conditions": conditions, "images": images},
    }


def grow(lab, count, where):
    """Nodes until there are so many."""
    have = len(lab.kubectl("get", "nodes", "-o", "name").split())
    if have < count:
        file = where / "nodes.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node(number) for number in range(have, count)]}))
        lab.kubectl("create", "-f", file, timeout=600)


def tunnels(lab, wanted):
    lab.kubectl("patch", "ippool", "default-ipv4-ippool", "--type=merge", "--patch", json.dumps({"spec": {"ipipMode": "Always" if wanted else "Never"}}))


def restarted(lab, first, old=False):
    words = ["--first"] * first + ["--old-calico-start"] * old
    return json.loads(lab.do("twin-restart", "t1", *words, timeout=900).splitlines()[-1])


@pytest.mark.parametrize(("ms", "nodes", "first", "more"), PAIRS)
def test_foreseen(lab, path, tmp_path, figure, ms, nodes, first, more):
    grow(lab, nodes, tmp_path)
    tunnels(lab, more.get("tunnel", False))
    path(ms)
    server = json.loads(lab.do("exec", sys.executable, "-c", PROBE))
    latency, bad = (Latency(*(server[step][part] for step in ("connect", "tls", "answer"))) for part in ("p50", "p90"))
    assert ms / 1000 <= latency.answer < ms / 1000 + 0.2, server
    foreseen, slow = (
        startup("3.22.0" if more.get("old") else "3.31.0", "kubernetes", one, nodes, first, tunnels=1 if more.get("tunnel") else 0) for one in (latency, bad)
    )
    measured = restarted(lab, first, more.get("old", False))
    told = "%d ms, %d nodes, %s: foreseen %s, measured %s" % (ms, nodes, "first start" if first else "restart", foreseen, measured)
    figure(told)
    assert abs(foreseen.felix - measured["felix"]) < PART * measured["felix"] + BUSY * (measured["felix"] < 10), told
    assert abs(foreseen.bird - measured["live"]) < PART * measured["live"] + BUSY * (measured["live"] < 10), told
    if not more:
        sides(server, nodes, first, measured["live"], slow.bird)


def sides(server, nodes, first, live, slow):
    """What the rule says of a probe that would have waited long enough, though all answers were as late as the latest, and of one that would not."""
    known = policy({})
    for wait, status in ((live * 0.65, "fail"), (max(live * 2.2, slow * known["calico_start_spare"] + 2), "pass")):
        probe = {"how": "exec", "what": "calico-node -felix-live -bird-live", "delay_s": max(0.0, wait - 2), "period_s": 1, "timeout_s": 10, "failures": 2}
        calico = {"install": {"kind": "manifest"}, "version": "3.31.0", "datastore": "kubernetes", "probes": {"liveness": probe}, "pools": []}
        entries = [{"name": "node", "calico": {} if first else {"ipv4": "10.0.0.101/24"}}, *({"name": "s%d" % number} for number in range(1, nodes))]
        facts = {"node": {"taken": {"hostname": "node"}, "problems": [], "path": {"api": [server], "etcd": []}}}
        cluster = {"schema": "nodecare.cluster/1", "problems": [], "nodes": entries, "calico": calico}
        (finding,) = [one for one in _judge.judge(facts, {"node": known}, ["calico.liveness_budget"], known, cluster) if one["node"] == "node"]
        assert finding["status"] == status, (live, wait, finding["message"], finding["evidence"])


def test_it_gives_up_where_an_answer_takes_too_long(lab, path):
    """The message is the one that is foreseen."""
    path(2300)
    server = json.loads(lab.do("exec", sys.executable, "-c", PROBE))
    foreseen = startup("3.31.0", "kubernetes", Latency(0.0, server["tls"]["p50"], server["answer"]["p50"]), 1, False)
    code, said = lab.ask("twin-restart", "t1", timeout=120)
    assert code and foreseen.ends and foreseen.ends in said, said
