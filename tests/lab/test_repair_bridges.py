"""A mesh that a stray bridge broke is healed on real nodes, and no packet between the others is lost; docker's own network goes and comes back.

The nodes are looked at by plain commands, kubectl, calicoctl and birdcl.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from contextlib import contextmanager

import pytest
from labs import BOOT, ROOT, Lab, changed, eventually, own_name
from mesh import BRIDGE, ILL, WELL, healed, old_start, registered  # noqa: F401 - the fixtures among them
from test_cluster import NODES, pods, talkers  # noqa: F401 - the last is a fixture

STRAY = "br-3a10a9384428"
HEALTHY = [node for node in NODES if node != ILL]
# In a pod: once a second, whether each of the others answers within two.
ASKS = """
while sleep 1; do
  for pair in PAIRS; do
    if timeout 2 socat -u "TCP:${pair#*=}:8080" - >/dev/null 2>&1; then echo "${pair%%=*} answers"; else echo "${pair%%=*} is lost"; fi
  done
done
"""


def sessions(cluster):
    """{node: how many of its BGP sessions are established}, as each BIRD says."""
    return {node: _established(cluster, pod["metadata"]["name"]) for node, pod in pods(cluster, "k8s-app=calico-node").items()}


def _established(cluster, pod):
    said = cluster.ask("kubectl", "exec", "-n", "kube-system", pod, "-c", "calico-node", "--", "birdcl", "-s", "/var/run/calico/bird.ctl", "show", "protocols")[
        1
    ]
    return sum(line.startswith("Mesh_") and line.split()[-1] == "Established" for line in said.splitlines())


@contextmanager
def traffic(cluster, named):
    """Lets every pod ask every other once a second; gives a function that tells {(from, to): Counter of answers and losses} so far."""
    addresses = {node: pod["status"]["podIP"] for node, pod in pods(cluster, "talker").items()}
    heard, asking = dict.fromkeys(named, b""), {}
    for node, name in named.items():
        pairs = " ".join("%s=%s" % (other, addresses[other]) for other in named if other != node)
        command = cluster.command("kubectl", "exec", name, "--", "sh", "-c", ASKS.replace("PAIRS", pairs))
        asking[node] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.set_blocking(asking[node].stdout.fileno(), False)

    def told():
        for node, process in asking.items():
            heard[node] += process.stdout.read() or b""
        lines = [(node, *line.split(" ", 1)) for node, said in heard.items() for line in said.rpartition(b"\n")[0].decode().splitlines()]
        return {pair: Counter(how for one, other, how in lines if (one, other) == pair) for pair in {(one, other) for one, other, _how in lines}}

    try:
        yield told
    finally:
        for process in asking.values():
            process.kill()
            process.wait()


def lost(counts, nodes):
    """How many questions among these nodes got no answer."""
    return sum(how["is lost"] for (one, other), how in counts.items() if one in nodes and other in nodes)


def since(later, earlier):
    return {pair: later[pair] - earlier.get(pair, Counter()) for pair in later}


def flows(counts):
    """Whether every pair has talked, and nothing was lost."""
    return len(counts) == len(NODES) * (len(NODES) - 1) and not lost(counts, NODES) and all(how["answers"] for how in counts.values())


def test_a_broken_mesh_is_healed_and_the_others_lose_nothing(old_start, talkers):  # noqa: F811 - fixtures
    cluster = old_start
    eventually("the whole mesh", lambda: sessions(cluster) == dict.fromkeys(NODES, len(NODES) - 1), BOOT)
    with traffic(cluster, talkers) as told:
        eventually("traffic between all", lambda: flows(told()), BOOT)
        before = told()
        cluster.do("fault", ILL, "stray-bridge")
        eventually("Calico to register the bridge", lambda: registered(cluster) == {**WELL, ILL: BRIDGE}, BOOT)
        eventually("its sessions to break", lambda: sessions(cluster)[ILL] == 0, BOOT)
        broken = since(told(), before)

        predicted = cluster.play("repair_bridges", "--check", "--diff")
        assert STRAY in cluster.on(ILL, "ip -br link") and registered(cluster)[ILL] == BRIDGE
        done = cluster.play("repair_bridges", "--diff")
        assert changed(predicted) == {node: int(node == ILL) for node in NODES}
        assert changed(done)[ILL] in (1, 2) and not any(changed(done)[node] for node in HEALTHY)  # the second: calico-node was started anew
        assert re.findall(r"^[-+].*$", predicted, re.M) == re.findall(r"^[-+].*$", done, re.M)
        assert STRAY not in cluster.on(ILL, "ip -br link") and registered(cluster) == WELL
        eventually("the whole mesh again", lambda: sessions(cluster) == dict.fromkeys(NODES, len(NODES) - 1), 300)
        repaired = told()
        eventually("traffic between all again", lambda: flows(since(told(), repaired)) or repaired.update(told()), 300)
        whole = told()
    print(
        "lost while broken: %d of the ill node, %d of the others; in all: %d of the others" % (lost(broken, NODES), lost(broken, HEALTHY), lost(whole, HEALTHY))
    )
    assert lost(whole, HEALTHY) == 0
    assert not any(changed(cluster.play("repair_bridges")).values())
    assert "+172.18.0.1/16" in cluster.play("undo", "--check", "--diff", "--limit", ILL)


# -- a real docker -------------------------------------------------------------------------------------------------------

MADE = "docker network create --subnet 172.30.5.0/24 --gateway 172.30.5.9 --label com.docker.compose.project=shop -o com.docker.network.driver.mtu=1400 one"
KEPT = "docker network inspect one | jq -S 'map(del(.Id, .Created))' 2>/dev/null || docker network inspect one | grep -v '\"Id\"\\|\"Created\"'"
EMPTY = "tar -c --files-from /dev/null | docker import - empty >/dev/null; docker create --name needs --network one empty /nothing"
ALONE = {"nodecare_cluster": False}


@pytest.fixture(scope="module")
def with_docker():
    """A node with docker, and no cluster."""
    made = Lab(own_name("d"))
    try:
        made.up("--layer", "nodes", "--nodes", 1, "--docker")
        made.on("n1", "systemctl start docker")
        yield made
    finally:
        made.do("down")


def test_dockers_own_network_goes_and_comes_back(with_docker):
    lab = with_docker
    name = "br-" + lab.on("n1", MADE)[:12]
    before = lab.on("n1", KEPT)
    lab.on("n1", EMPTY)
    said = lab.play("repair_bridges", expect=(2,), **ALONE)
    assert "the container needs (created) of docker" in said and name in lab.on("n1", "ip -br link")
    lab.on("n1", "docker rm needs")

    predicted = lab.play("repair_bridges", "--check", "--diff", **ALONE)
    assert name in lab.on("n1", "ip -br link")
    done = lab.play("repair_bridges", "--diff", **ALONE)
    assert changed(predicted) == changed(done) == {"n1": 1}
    lab.on("n1", "systemctl restart docker")  # it would make again what it still knows
    assert name not in lab.on("n1", "ip -br link") and "one" not in lab.on("n1", "docker network ls --format '{{.Name}}'").split()
    assert "docker0" in lab.on("n1", "ip -br link")
    assert changed(lab.play("repair_bridges", **ALONE)) == {"n1": 0}

    lab.play("undo", **ALONE)
    assert lab.on("n1", KEPT) == before
    lab.on("n1", "docker network rm one")


def test_a_docker_that_does_not_run_keeps_its_networks(with_docker):
    lab = with_docker
    name = "br-" + lab.on("n1", MADE)[:12]
    lab.on("n1", "systemctl stop docker.socket docker")
    said = lab.play("repair_bridges", expect=(2,), **ALONE)
    assert "start docker, then run this again" in said and name in lab.on("n1", "ip -br link")
    lab.on("n1", "systemctl start docker; docker network rm one")
