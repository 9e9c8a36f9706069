"""A fleet whose targets are the Nodes of a real API server: what preflight takes with a cluster, against ping.

run.py starts it inside a lab that has a control plane and upstream's Calico manifest: members.py KUBECONFIG HOSTS FORKS ROUNDS.
Each target has a name, a link and an address of its own on the lab's bridge, so that they ask each other as nodes do; the pods are
made by the real controllers, and what kubelets would say of them comes from tests/lab/bare_kubelets.py, which rests while time is taken.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import run
from kubernetes import client, config

from lab.fleet import Face, Fleet, Target

KUBELETS = run.CHECKOUT / "tests" / "lab" / "bare_kubelets.py"
ROOM = {"pods": "20", "cpu": "4", "memory": "8Gi"}  # without it no pod is placed
BEAT = 4  # seconds within which the kubelets have told of every Node that it lives
# The way to the API server's service is what kube-proxy makes on each node. All namespaces share one table of neighbours, which so
# many nodes that ask each other would overflow, and what is permanent does not count in it.
LINK = """
ip link add eth0 address {mac} type veth peer name {name} netns 1
nsenter --target 1 --net ip link set {name} master lan0 up
ip address add {address}/24 dev eth0 && ip link set eth0 up && ip route add default via 10.0.0.1
nft add table ip nat && nft 'add chain ip nat services {{ type nat hook output priority -100; }}'
nft add rule ip nat services ip daddr 10.96.0.1 tcp dport 443 dnat to 10.0.0.1:6443
printf 'neigh add %s lladdr %s dev eth0 nud permanent\\n' {others} | ip -batch -
"""


def main(kubeconfig: str, hosts: int, forks: int, rounds: int) -> dict:
    addresses = {"node-%03d" % number: "10.0.0.%d" % (100 + number) for number in range(1, hosts + 1)}
    targets = {name: Target(Face(setup=_link(name, addresses))) for name in addresses}
    with tempfile.TemporaryDirectory(prefix="nodecare-bench-") as place, Fleet(targets) as fleet, _kubelets(kubeconfig, Path(place), addresses) as kubelets:
        shown = ["-e", "nodecare_kubeconfig=%s" % kubeconfig, "-e", "nodecare_cluster=true", "-e", "nodecare_report_dir=%s/report" % place]
        commands = {
            "ping": ["ansible", "all", "-m", "ping"],
            "preflight with a cluster": ["ansible-playbook", "playbooks/preflight.yml", "-e", "nodecare_fail_on=never", *shown],
        }
        seen = run.rounds(commands, fleet, rounds, forks, kubelets)
        told = json.loads(Path(place, "report", "report.json").read_text())
        judged = [one for one in told["findings"] if one["id"] == "cluster.node_not_ready" and one["status"] == "pass"]
        assert len(judged) == hosts, "only %d of %d targets were found to be Ready Nodes" % (len(judged), hosts)
    return run.compared(seen, "ping")


def _link(name: str, addresses: dict[str, str]) -> str:
    macs = {address: "02:00:00:00:00:%02x" % int(address.rpartition(".")[2]) for address in addresses.values()}
    own = addresses[name]
    others = " ".join("%s %s" % one for one in macs.items() if one[0] != own)
    return LINK.format(name=name, mac=macs[own], address=own, others=others)


@contextmanager
def _kubelets(kubeconfig: str, place: Path, addresses: dict[str, str]) -> Iterator:
    """The Nodes with all their pods, as something that rests while a block runs."""
    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    for name, address in addresses.items():
        api.create_node({"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}}})
        known = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
        api.patch_node_status(name, {"status": {"capacity": ROOM, "allocatable": ROOM, "addresses": known}})
    orders = place / "orders.json"
    orders.write_text(json.dumps({name: {"registers": {"first-found": address + "/24"}} for name, address in addresses.items()}))
    process = subprocess.Popen([sys.executable, str(KUBELETS), kubeconfig, str(orders)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 600
        while _ready(api) < len(addresses):
            assert time.monotonic() < until and process.poll() is None, "only %d of %d Nodes have a calico-node" % (_ready(api), len(addresses))
            time.sleep(2)
        yield lambda: _at_rest(process)
    finally:
        process.kill()
        process.wait()


def _ready(api: client.CoreV1Api) -> int:
    pods = api.list_namespaced_pod("kube-system", label_selector="k8s-app=calico-node").items
    return sum(any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ()) for pod in pods)


@contextmanager
def _at_rest(process: subprocess.Popen) -> Iterator[None]:
    """They are this machine's only for want of others, and would be in the way; a Node counts as alive for 40 s without them."""
    time.sleep(BEAT)
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:]))))
