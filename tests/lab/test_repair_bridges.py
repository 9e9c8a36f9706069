"""A mesh that a stray bridge broke is healed on real nodes, and no packet between the others is lost.

The nodes are looked at by plain commands, kubectl, calicoctl and birdcl.
"""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import contextmanager

from labs import BOOT, ROOT, changed, eventually
from mesh import BRIDGE, ILL, WELL, healed, old_start, registered  # noqa: F401 - the fixtures among them
from test_cluster import NODES, pods, talkers  # noqa: F401 - the last is a fixture

STRAY = "br-3a10a9384428"
PACKET = re.compile(r"^(\w+) (\d+ bytes from|no answer yet|From).*\bicmp_seq=(\d+)(?=\s)", re.M)
SLOW = 5  # packets later one may still be answered on a busy machine
HEALTHY = [node for node in NODES if node != ILL]
# In a pod: a packet to each of the others once a second. The kernels answer, however busy the machine is.
ASKS = """
for pair in PAIRS; do
  ping -n -O -i 1 "${pair#*=}" | while read -r line; do echo "${pair%%=*} $line"; done &
done
wait
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
    """Lets every pod ping every other; gives a function that tells {(from, to): {number of the packet: whether it was answered}} so far."""
    addresses = {node: pod["status"]["podIP"] for node, pod in pods(cluster, "talker").items()}
    heard, asking = dict.fromkeys(named, b""), {}
    for node, name in named.items():
        pairs = " ".join("%s=%s" % (other, addresses[other]) for other in named if other != node)
        command = cluster.command("kubectl", "exec", name, "--", "sh", "-c", ASKS.replace("PAIRS", pairs))
        asking[node] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.set_blocking(asking[node].stdout.fileno(), False)

    def told():
        found = {}
        for node, process in asking.items():
            heard[node] += process.stdout.read() or b""
            for other, what, number in PACKET.findall(heard[node].decode()):
                packets = found.setdefault((node, other), {})
                packets[int(number)] = packets.get(int(number), False) or what.endswith("bytes from")
        return {pair: {number: sent[number] for number in sent if sent[number] or number < max(sent) - SLOW} for pair, sent in found.items()}

    try:
        yield told
    finally:
        for process in asking.values():
            process.kill()
            process.wait()


@contextmanager
def routes(cluster, nodes):
    """Gives a function that tells {node: routes to the others of these nodes that its kernel has lost} so far. No moment is too short to be seen."""
    gateways = ["via %s " % WELL[node].partition("/")[0] for node in nodes]
    for node in nodes:
        cluster.on(node, "systemd-run -q --unit=lab-routes sh -c 'exec ip monitor route >/run/lab-routes'")

    def told():
        seen = {node: cluster.on(node, "cat /run/lab-routes").splitlines() for node in nodes}
        return {node: [line for line in lines if line.startswith("Deleted ") and any(one in line for one in gateways)] for node, lines in seen.items()}

    try:
        yield told
    finally:
        for node in nodes:
            cluster.ask("ssh", node, "systemctl stop lab-routes; rm -f /run/lab-routes")


def lost(packets, nodes):
    """How many packets among these nodes got no answer."""
    return sum(not answered for (one, other), sent in packets.items() if one in nodes and other in nodes for answered in sent.values())


def since(later, earlier):
    return {pair: {number: sent[number] for number in sent if number > max(earlier.get(pair, {}), default=0)} for pair, sent in later.items()}


def flows(packets):
    """Whether every pair has talked, and nothing was lost."""
    return len(packets) == len(NODES) * (len(NODES) - 1) and all(sent and all(sent.values()) for sent in packets.values())


def test_a_broken_mesh_is_healed_and_the_others_lose_nothing(old_start, talkers, figure):  # noqa: F811 - fixtures
    cluster = old_start
    eventually("the whole mesh", lambda: sessions(cluster) == dict.fromkeys(NODES, len(NODES) - 1), BOOT)
    with traffic(cluster, talkers) as told, routes(cluster, HEALTHY) as withdrawn:
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
        assert withdrawn() == {node: [] for node in HEALTHY}
    figure(
        "lost while broken: %d of the ill node, %d of the others; in all: %d of the others" % (lost(broken, NODES), lost(broken, HEALTHY), lost(whole, HEALTHY))
    )
    assert lost(whole, HEALTHY) == 0
    assert not any(changed(cluster.play("repair_bridges")).values())
    assert "+172.18.0.1/16" in cluster.play("undo", "--check", "--diff", "--limit", ILL)
