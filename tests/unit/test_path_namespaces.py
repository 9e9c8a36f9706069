"""The real probe on real paths: two or three network namespaces with a cable between them, and packet filters on the way."""

# pylint: disable=used-before-assignment  # it does not see what an earlier manager of the same ``with`` has bound
from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from contextlib import ExitStack, contextmanager

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _wire
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from spaces import has_ipv6, inside, ip, space, usable

pytestmark = pytest.mark.skipif(bool(usable()), reason=usable() or "usable")

IPV6 = has_ipv6("::")
with_ipv6 = pytest.mark.skipif(not IPV6, reason="this machine's kernel has no IPv6")

LOOPBACK = ["link set lo up"]
NEAR, FAR = "192.0.2.1", "192.0.2.2"
NEAR6, FAR6 = "2001:db8::1", "2001:db8::2"
LISTEN = """
import socket, sys, time
links = []
for port in map(int, sys.argv[1:]):
    links.append(socket.create_server(("", port), family=socket.%s, backlog=50, dualstack_ipv6=%r))
print("ready", flush=True)
time.sleep(600)
""" % ("AF_INET6" if IPV6 else "AF_INET", IPV6)
PROBE = """
import json
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _probes
print(json.dumps(_probes.read(["path"], %r, targets=%r)))
"""
OWN = """
import json
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _wire
print(json.dumps({one: _wire.is_own(one) for one in %r}))
"""


@contextmanager
def cable(mtu=1500):
    """Two machines with one link between them."""
    with space(LOOPBACK) as near, space(LOOPBACK) as far:
        ip(near, "link", "add", "eth0", "mtu", str(mtu), "type", "veth", "peer", "name", "eth0", "netns", far)
        for name, *addresses in ((near, NEAR, NEAR6), (far, FAR, FAR6)):
            ip(name, "address", "add", addresses[0] + "/24", "dev", "eth0")
            if IPV6:
                ip(name, "address", "add", addresses[1] + "/64", "dev", "eth0", "nodad")
            ip(name, "link", "set", "eth0", "mtu", str(mtu), "up")
        yield near, far


@contextmanager
def routed(narrow, tells=True):
    """Two machines with a router between them, whose far side carries less; one that does not tell is what is called a black hole."""
    with space(LOOPBACK) as near, space(LOOPBACK) as router, space(LOOPBACK) as far:
        for name, own, others in ((near, "192.0.2.1", "192.0.2.254"), (far, "198.51.100.1", "198.51.100.254")):
            side = "near" if name == near else "far"
            ip(name, "link", "add", "eth0", "type", "veth", "peer", "name", side, "netns", router)
            ip(name, "address", "add", own + "/24", "dev", "eth0")
            ip(router, "address", "add", others + "/24", "dev", side)
            ip(router, "link", "set", side, "up")
            ip(name, "link", "set", "eth0", "up")
            ip(name, "route", "add", "default", "via", others)
        ip(router, "link", "set", "far", "mtu", str(narrow))
        filtered(router, "sysctl", "net.ipv4.ip_forward=1")
        if not tells:
            nft(router, "output icmp type destination-unreachable drop")
        yield near, far


def filtered(name, *command, stdin=None):
    subprocess.run(["ip", "netns", "exec", name, *command], input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)


def nft(name, *rules):
    """Rules such as ``input tcp dport 179 drop``."""
    if not shutil.which("nft"):
        pytest.skip("there is no nft command")
    chains = {}
    for rule in rules:
        hook, _blank, words = rule.partition(" ")
        chains.setdefault(hook, []).append(words)
    text = "".join("chain %s {\n type filter hook %s priority 0;\n %s\n}\n" % (hook, hook, "\n ".join(of)) for hook, of in chains.items())
    filtered(name, "nft", "-f", "-", stdin="table inet test {\n%s}\n" % text)


@contextmanager
def listening(name, *ports):
    program = subprocess.Popen(["ip", "netns", "exec", name, sys.executable, "-c", LISTEN, *map(str, ports)], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        yield
    finally:
        program.kill()
        program.wait()
        program.stdout.close()


def peer(name, deadline=3.0, address=FAR, ports=(), tunnels=(), size=None):
    facts = inside(name, PROBE % (deadline, {"peers": {"far": {"address": address, "ports": list(ports), "tunnels": list(tunnels)}}, "size": size}))
    assert facts["problems"] == []
    return facts["path"]["peers"]["nodes"]["far"]


def states(said):
    return {port: one["state"] for port, one in said["tcp"].items()}


@pytest.mark.parametrize("address", [FAR, pytest.param(FAR6, marks=with_ipv6)])
def test_ports_that_are_open_closed_filtered_and_rejected(address):
    with cable() as (near, far), listening(far, 179, 5473, 6443):
        nft(far, "input tcp dport { 5473, 9 } drop", "input tcp dport 6443 reject with icmpx type admin-prohibited")
        said = peer(near, address=address, ports=[179, 5473, 6443, 10250])
    assert states(said) == {"179": "open", "5473": "silent", "6443": "unreachable", "10250": "refused"}
    # Who has just come up is found at the second attempt, a second later.
    assert said["tcp"]["179"]["seconds"] < said["tcp"]["5473"]["seconds"] < 3


def test_a_path_that_is_shut_one_way():
    """What the far one sends is dropped before it leaves, so that only its own probes fail; what it answers passes."""
    with cable() as (near, far), listening(near, 179), listening(far, 179):
        nft(far, "output ct state new tcp dport 179 drop")
        here = peer(near, ports=[179])
        there = peer(far, address=NEAR, ports=[179])
    assert (states(here), states(there)) == ({"179": "open"}, {"179": "silent"})


def test_a_session_that_stands_is_not_disturbed():
    """It counts whoever made it, and the listener sees no second connection."""
    with cable() as (near, far), listening(far, 179, 10250):
        code = textwrap.dedent(
            """
            import socket
            session = socket.create_connection((%r, 179))
            """
            % FAR
        )
        facts = inside(near, code + PROBE % (3.0, {"peers": {"far": {"address": FAR, "ports": [179, 10250]}}}))
    said = facts["path"]["peers"]["nodes"]["far"]["tcp"]
    assert said["179"] == {"state": "open", "seconds": None, "in_use": True}
    assert said["10250"]["state"] == "open" and "in_use" not in said["10250"]


@pytest.mark.parametrize("address", [FAR, pytest.param(FAR6, marks=with_ipv6)])
def test_packets_on_a_cable(address):
    with cable() as (near, _far):
        said = peer(near, address=address)["packets"]
        jumbo = peer(near, address=address, size=9000)["packets"]
    assert (said["answers"], said["asked"], said["mtu"], said["told"]) == (True, 1500, 1500, None)
    assert (jumbo["asked"], jumbo["mtu"], jumbo["told"]) == (9000, 1500, {"mtu": 1500, "by": "its own link"})


@pytest.mark.parametrize("narrow", [1400, 1450])
def test_a_router_that_tells_what_it_passes_on(narrow):
    with routed(narrow) as (near, _far):
        said = peer(near, address="198.51.100.1", size=1500)["packets"]
    assert (said["answers"], said["asked"], said["mtu"], said["told"]) == (True, 1500, narrow, {"mtu": narrow, "by": "192.0.2.254"})


def test_a_black_hole():
    """Small packets pass, large ones vanish without a word: the usual sizes are tried."""
    with routed(1430, tells=False) as (near, _far):
        said = peer(near, address="198.51.100.1", size=1500)["packets"]
    assert (said["answers"], said["asked"], said["mtu"], said["told"]) == (True, 1500, 1430, None)


def test_one_that_answers_no_ping():
    with cable() as (near, far), listening(far, 179):
        nft(far, "input icmp type echo-request drop")
        said = peer(near, ports=[179])
    assert states(said) == {"179": "open"}
    assert (said["packets"]["answers"], said["packets"]["mtu"]) == (False, None)


def test_tunnels_are_only_heard_of_where_somebody_objects():
    with cable() as (near, far):
        nobody = peer(near, tunnels=[4789, "ipip"])
        ip(far, "link", "add", "vxlan.calico", "type", "vxlan", "id", "4096", "dstport", "4789", "dev", "eth0")
        ip(far, "link", "set", "vxlan.calico", "up")
        there = peer(near, tunnels=[4789])
        nft(far, "input udp dport 4789 reject with icmpx type admin-prohibited")
        forbidden = peer(near, tunnels=[4789])
    assert nobody["objects"]["4789"] == "refused"
    assert there["objects"] == {}
    assert forbidden["objects"] == {"4789": "unreachable"}


# -- what the rules make of it -----------------------------------------------------------------------------------------

NODES = {"n1": "192.0.2.11", "n2": "192.0.2.12", "n3": "192.0.2.13"}


@contextmanager
def network():
    """Three nodes on one bridge, each with a BIRD and a kubelet that listen."""
    with ExitStack() as all_of_it:
        bridge = all_of_it.enter_context(space(["link add br0 type bridge", "link set br0 up"]))
        spaces = {}
        for name, address in NODES.items():
            spaces[name] = all_of_it.enter_context(space(LOOPBACK))
            ip(spaces[name], "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", bridge)
            ip(spaces[name], "address", "add", address + "/24", "dev", "eth0")
            ip(spaces[name], "link", "set", "eth0", "up")
            ip(bridge, "link", "set", name, "master", "br0", "up")
            all_of_it.enter_context(listening(spaces[name], 179, 10250))
        yield spaces


def judged(spaces):
    """{node: (its findings of calico.ports that are bad)} after each has asked the others."""
    facts = {}
    for name, where in spaces.items():
        peers = {other: {"address": address, "ports": [179, 10250]} for other, address in NODES.items() if other != name}
        facts[name] = inside(where, PROBE % (3.0, {"peers": peers}))
    known = policy({})
    findings = _judge.judge(facts, dict.fromkeys(facts, known), ["calico.ports", "calico.path_mtu"], known)
    assert not [one for one in findings if "broke:" in one["message"]]
    return {name: [one for one in findings if one["node"] == name and one["status"] in ("fail", "warn")] for name in facts}


def test_all_is_well():
    with network() as spaces:
        assert judged(spaces) == {"n1": [], "n2": [], "n3": []}


def test_the_node_whose_port_is_shut_is_named():
    with network() as spaces:
        nft(spaces["n3"], "input tcp dport 179 drop")
        said = judged(spaces)
    (finding,) = said["n3"]
    assert said["n1"] == said["n2"] == []
    assert {"port": 179, "direction": "incoming", "shut_for": ["n1", "n2"], "one_way": True}.items() <= finding["evidence"].items()


def test_the_node_that_gets_nothing_out_is_named():
    with network() as spaces:
        nft(spaces["n1"], "output ct state new tcp dport 179 drop")
        said = judged(spaces)
    (finding,) = said["n1"]
    assert said["n2"] == said["n3"] == []
    assert {"port": 179, "direction": "outgoing", "to": ["n2", "n3"]}.items() <= finding["evidence"].items()


def test_a_path_between_two_that_is_shut_one_way():
    with network() as spaces:
        nft(spaces["n2"], "input ip saddr 192.0.2.11 tcp dport 179 drop")
        said = judged(spaces)
    (finding,) = said["n2"]
    assert said["n1"] == said["n3"] == []
    assert {"direction": "incoming", "shut_for": ["n1"], "one_way": True}.items() <= finding["evidence"].items()


def test_a_node_that_is_cut_off():
    with network() as spaces:
        ip(spaces["n3"], "link", "set", "eth0", "down")
        said = judged(spaces)
    assert said["n1"] == said["n2"] == []
    assert len(said["n3"]) == 2 and all("neither" in one["message"] for one in said["n3"]), said["n3"]


def test_a_node_behind_a_narrow_link():
    """Its own link carries less than the others' packets need: what is too large vanishes, in both directions."""
    with network() as spaces:
        ip(spaces["n3"], "link", "set", "eth0", "mtu", "1400")
        said = judged(spaces)
    assert {one["id"] for found in said.values() for one in found} == {"calico.path_mtu"}
    for name in ("n1", "n2"):
        (finding,) = said[name]
        assert finding["status"] == "fail" and finding["evidence"]["to"] == ["n3"] and finding["evidence"]["mtu"] <= 1400


def test_many_silent_peers_cost_one_deadline():
    with cable() as (near, _far):
        peers = {"p%d" % number: {"address": "192.0.2.%d" % (10 + number), "ports": [179, 5473, 6443, 10250]} for number in range(60)}
        facts = inside(near, PROBE % (2.0, {"peers": peers}))
    assert facts["taken"]["seconds"] < 3.5 and facts["taken"]["cpu"] < 1
    assert facts["path"]["peers"]["asked"] == 60
    assert {one["state"] for node in facts["path"]["peers"]["nodes"].values() for one in node["tcp"].values()} <= {"silent", "unreachable"}


def test_without_targets_and_with_nonsense():
    for targets in ({}, {"peers": {"x": "no address", "y": {"address": None}, "z": 5}, "size": 10**9, "ports": ["a", -1]}, {"peers": ["list"], "api": [""]}):
        with space(LOOPBACK) as name:
            facts = inside(name, PROBE % (1.0, targets))
        assert facts["path"]["peers"]["nodes"] == {}, facts
        assert json.dumps(facts["path"]["api"]) is not None


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
def test_an_address_of_this_machine_is_no_peer():
    own = {"127.0.0.1": True, "::1": True, "203.0.113.7": False, "2001:db8::77": False, "nonsense": None, "300.1.1.1": None, "": None}
    assert {address: _wire.is_own(address) for address in own} == own


@with_ipv6
def test_what_may_be_bound_without_being_there_is_a_peer():
    """As net.ipv4.ip_nonlocal_bind allows where keepalived or haproxy runs."""
    own = {NEAR: True, NEAR6: True, "192.0.2.9": True, FAR: False, FAR6: False, "203.0.113.7": False, "2001:db8::77": False}
    with cable() as (near, _far):
        ip(near, "address", "add", "192.0.2.9/32", "dev", "eth0")
        for kind in ("ipv4", "ipv6"):
            subprocess.run(["ip", "netns", "exec", near, "sysctl", "-qw", "net.%s.ip_nonlocal_bind=1" % kind], check=True)
        said = inside(near, OWN % list(own))
    assert said == own
