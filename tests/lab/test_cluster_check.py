"""cluster_check on a real API server: the rights that it needs, a server that is slow, refuses or hangs, and a big cluster."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
import yaml
from labs import ROOT, Lab, eventually, own_name

READER = ROOT / "docs" / "nodecare-reader.yml"
ROLE = next(one for one in yaml.safe_load(READER.read_text())["items"] if one["kind"] == "ClusterRole")
SERVER = "https://10.0.0.1:6443"
ROOM = {"pods": "9", "cpu": "4", "memory": "8Gi"}  # without it no pod is placed
MANIFEST = """
from lab import network
from lab.calico import calico
from lab.control_plane import ControlPlane
from lab.space import Space
network.apply(ControlPlane(Space(%r)), calico())
"""


class Cluster:
    """A lab's API server, and somebody who has no more rights than the ClusterRole gives."""

    def __init__(self, lab):
        self.lab = lab
        self.place = lab.control_plane
        lab.kubectl("apply", "-f", READER)
        self.token = lab.kubectl("-n", "kube-system", "create", "token", "nodecare-reader")

    def check(self, **options):
        """What cluster_check returns, as Ansible's user has it."""
        given = {"host": SERVER, "api_key": self.token, "ca_cert": str(self.place / "pki" / "ca.crt"), **options}
        words = self.lab.command("exec", "--", "ansible", "localhost", "-m", "nodecare.kubernetes.cluster_check", "-a", json.dumps(given))
        environment = self.lab.environment(ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK="ansible.builtin.oneline")
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        assert self.token not in done.stdout + done.stderr
        return json.loads(done.stdout.partition("=>")[2])["cluster"]

    def grant(self, rules):
        """Other rights, once the API server acts by them."""
        patch = self.lab.kubectl("patch", "clusterrole", "nodecare-reader", "--type=merge", "--patch", json.dumps({"rules": rules}))
        time.sleep(2)
        return patch


@pytest.fixture(scope="module")
def cluster():
    """One Calico node without a machine; what the manifest asks for beside it waits for a kubelet for ever."""
    made = Lab(own_name("k"))
    try:
        made.do("twins", 1, timeout=1800)
        made.do("exec", "--", "python3", "-c", MANIFEST % made.name)
        made.kubectl("label", "node", "t1", "kubernetes.io/os=linux")
        made.kubectl("patch", "node", "t1", "--subresource=status", "--type=merge", "--patch", json.dumps({"status": {"capacity": ROOM, "allocatable": ROOM}}))
        eventually("its address", lambda: "IPv4Address" in made.kubectl("get", "node", "t1", "-o", "yaml"))
        eventually("its pods", lambda: {"calico-node", "kube-proxy"} <= placed(made))
        yield Cluster(made)
    finally:
        made.do("down")


def placed(lab):
    """The DaemonSets whose pods are meant for the node."""
    names = lab.kubectl("get", "pods", "-A", "--field-selector=spec.nodeName=t1", "-o", "name")
    return {name.rpartition("-")[0].partition("/")[2] for name in names.splitlines()}


@pytest.fixture
def granted(cluster):
    yield cluster
    cluster.grant(ROLE["rules"])


@pytest.fixture
def healed(cluster):
    yield cluster
    cluster.lab.do("api", "heal")


def problems(found):
    return {one["fact"]: one["kind"] for one in found["problems"]}


def test_the_role_is_enough(cluster):
    found = cluster.check()
    assert found["problems"] == []
    (node,) = found["nodes"]
    assert (node["name"], node["internal_ips"], node["calico"]["ipv4"]) == ("t1", ["10.0.0.101"], "10.0.0.101/24")
    calico = found["calico"]
    assert (calico["install"]["kind"], calico["version"], calico["datastore"], calico["backend"]) == ("manifest", "3.31.0", "kubernetes", "bird")
    assert calico["cluster_information"]["datastore_ready"] is True
    assert calico["probes"]["liveness"]["what"] == "/bin/calico-node -felix-live -bird-live"
    assert {pod["component"] for pod in found["pods"]} == {"calico-node", "calico-kube-controllers", "kube-proxy"}
    assert found["kube_proxy"]["mode"] == "iptables"
    assert found["services"] == {"networks": ["10.96.0.0/16"], "kubernetes": {"ip": "10.96.0.1", "port": 443, "endpoints": ["10.0.0.1:6443"]}}
    assert [budget["name"] for budget in found["budgets"]] == ["calico-kube-controllers"]


@pytest.mark.parametrize("number", range(len(ROLE["rules"])))
def test_nothing_of_the_role_is_too_much(granted, number):
    """Without any one of its rules something is denied, and only that is missing; what this cluster has not, it cannot miss."""
    rules = [rule for place, rule in enumerate(ROLE["rules"]) if place != number]
    granted.grant(rules)
    found = granted.check()
    assert set(problems(found).values()) == {"denied"}
    assert len(found["problems"]) < 12
    assert found["taken"]["version"]


def test_the_role_sees_no_secret(cluster):
    """Nor does it let anybody write."""
    for verb, what in (("list", "secrets"), ("get", "configmaps"), ("get", "pods/log"), ("create", "pods"), ("patch", "nodes"), ("delete", "pods")):
        _code, said = cluster.lab.ask("kubectl", "auth", "can-i", verb, what, "-A", "--as=system:serviceaccount:kube-system:nodecare-reader")
        assert said.splitlines()[-1] == "no", (verb, what, said)


def test_a_slow_server_is_read_within_its_deadline(healed):
    """5 s an answer, and as long for a handshake."""
    healed.lab.do("api", "slow", "--ms", 5000, "--for", "users")
    found = healed.check()
    assert found["taken"]["seconds"] <= 21
    assert found["nodes"] and found["pods"] and found["calico"]["env"]
    assert set(problems(found).values()) <= {"late", "hung"}
    assert found["taken"]["answers"]["slowest_s"] >= 5


@pytest.mark.parametrize(("kind", "why"), [("refuse", "Connection refused"), ("drop", "no answer within 4 s")])
def test_a_server_out_of_reach(healed, kind, why):
    healed.lab.do("api", kind, "--for", "users")
    found = healed.check(timeout=8)
    assert [(one["fact"], one["why"]) for one in found["problems"]] == [("cluster", why)]
    assert found["taken"]["seconds"] < 9


def test_a_server_that_hangs(cluster):
    cluster.lab.do("freeze", "kube-apiserver-1")
    try:
        found = cluster.check(timeout=8)
    finally:
        cluster.lab.do("thaw", "kube-apiserver-1")
    assert [(one["fact"], one["kind"]) for one in found["problems"]] == [("cluster", "hung")]


def test_a_big_cluster_takes_few_requests(cluster, figure):
    words = ("exec", "--", ROOT / ".venv/bin/python", "tests/bench/cluster.py", cluster.place / "admin.conf", 1000)
    measured = json.loads(cluster.lab.do(*words, timeout=1800).splitlines()[-1])
    figure(", ".join("%s %s" % one for one in measured.items()))
    assert measured["problems"] == []
    assert (measured["nodes"], measured["pods"]) == (1001, 1003)
    assert measured["requests"] <= 40
    assert measured["memory_mib"] < 200
