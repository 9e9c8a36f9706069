"""The real probe in real network namespaces, compared with what iproute2 sees there."""

from __future__ import annotations

import json
import subprocess

import pytest
from ansible_collections.nodecare.kubernetes.plugins.filter.stray_bridges import stray_bridges
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from spaces import CALICO_NODE, DOCKER_HOST, HOSTILE, ip, probe, space, usable

pytestmark = pytest.mark.skipif(bool(usable()), reason=usable() or "usable")

MANY_INDEXES = [
    "link set lo up",
    "link add late0 index 4097 type bridge",
    "link add eth0 index 300 type ifb",
    "link add old0 index 7 type bridge",
    "link property add dev eth0 altname enp0s31f6",
    "link property add dev eth0 altname enx0123456789abcdef",
    "address add 192.0.2.10/24 dev eth0",
    "address add 192.0.2.200/32 dev eth0",
    "address add 192.0.2.11/24 dev eth0",
    "address add 2001:db8::10/64 dev eth0 nodad",
    "address add 198.51.100.1/24 dev old0",
    "address add 198.51.100.1/24 dev late0",
    "link add veth0 type veth peer name pod0",
    "address add 198.18.0.1/24 dev veth0",
    "link set eth0 up",
    "link set old0 up",
    "route add default via 192.0.2.1",
    "route add 203.0.113.0/24 via 192.0.2.7 metric 50",
    "route add blackhole 100.64.0.0/10",
    "-6 route add default via 2001:db8::1",
]
ODD_NAMES = [["link", "add", "name", name, "type", "bridge"] for name in HOSTILE]


def judged(facts, rule_id, **raw):
    known = policy(raw)
    return _judge.judge({"n": facts}, {"n": known}, [rule_id], known)


@pytest.mark.parametrize("commands", [DOCKER_HOST, CALICO_NODE, MANY_INDEXES, ODD_NAMES], ids=["docker", "calico", "indexes", "odd names"])
def test_the_probe_sees_what_iproute2_sees(commands):
    with space(commands) as name:
        facts, links, addresses, routes = in_a_quiet_moment(name)
    seen = facts["links"]["present"]
    held = {one["ifname"]: one.get("addr_info", []) for one in addresses}
    left_out = [one["ifname"] for one in links if one["ifname"] not in [link["name"] for link in seen["links"]]]
    assert len(left_out) == seen["left_out"]["count"] and all(name.startswith(("veth", "container", "cali", "pod")) for name in left_out)
    shown = [one for one in links if one["ifname"] not in left_out]
    keys = ("ifindex", "ifname", "mtu", "address", "master", "altnames")
    assert [(link["index"], link["name"], link["mtu"], link.get("mac"), link.get("master"), link.get("altnames")) for link in seen["links"]] == [
        tuple(one.get(key) for key in keys) for one in shown
    ]
    for link, one in zip(seen["links"], shown):
        assert link.get("kind") == one.get("linkinfo", {}).get("info_kind")
        assert (link.get("up", False), link.get("carrier", False)) == ("UP" in one["flags"], "LOWER_UP" in one["flags"])
        assert link["state"] == one["operstate"].lower()
        assert [(has["ip"], has["prefix"], "secondary" in has.get("marks", [])) for has in link["addresses"]] == [
            (has["local"], has["prefixlen"], has.get("secondary", False)) for has in held[link["name"]]
        ]
    mine = {(route["to"], route.get("via")) for route in facts["links"]["routes"]["main"]}
    theirs = {(whole(one), one.get("gateway")) for one in routes if kept(one)}
    assert mine == theirs
    assert not [problem for problem in facts["problems"] if problem["fact"] != "links.managers"]


def in_a_quiet_moment(name):
    """What the probe and iproute2 see; both again where the kernel was still bringing links up in between."""
    for _attempt in range(20):
        before = oracle(name)
        facts = probe(name)
        if oracle(name) == before:
            return facts, *before
    raise AssertionError("the links of the namespace never settled")


def oracle(name):
    links, addresses, routes = (json.loads(ip(name, *words)) for words in (("-d", "-j", "link"), ("-j", "address"), ("-j", "route")))
    return settled(links), settled(addresses), routes + json.loads(ip(name, "-6", "-j", "route"))


def settled(said):
    """Without the clocks that run in it: the timers of bridges, the ages of addresses."""
    if isinstance(said, list):
        return [settled(one) for one in said]
    if isinstance(said, dict):
        return {key: settled(value) for key, value in said.items() if not key.endswith(("_life_time", "info_data", "info_slave_data"))}
    return said


def kept(route):
    return not (route["dst"].startswith(("fe80:", "ff00:", "multicast")) or route.get("protocol") in ("bird", "80") or route.get("dev", "").startswith("cali"))


def whole(route):
    """iproute2 leaves the length of a single address away."""
    return route["dst"] if "/" in route["dst"] or route["dst"] == "default" else route["dst"] + ("/128" if ":" in route["dst"] else "/32")


def test_a_docker_bridge_is_stray_and_an_administrators_is_not():
    with space(DOCKER_HOST) as name:
        facts = probe(name)
    (stray,) = stray_bridges(facts)
    assert (stray["bridge"], stray["subnet"], stray["ports"]) == ("br-3a10a9384428", "172.18.0.1/16", ["veth8c2f1ab"])
    assert stray_bridges(facts, "3.31") == []
    by_status = {one["evidence"]["bridge"]: one["status"] for one in judged(facts, "links.stray_bridge")}
    assert by_status == {"br-3a10a9384428": "fail", "docker0": "pass"}
    (ambiguous,) = judged(facts, "links.ambiguous_address", networks={"nodes": ["10.0.2.0/24"]})
    assert ambiguous["status"] == "fail" and ambiguous["evidence"]["link"] == "br-lan", ambiguous


def test_names_made_to_break_things_stay_names():
    bridges = [[*command] for command in ODD_NAMES]
    held = [["address", "add", "172.2%d.0.1/16" % at, "dev", name] for at, name in enumerate(HOSTILE)]
    with space(bridges + held) as name:
        facts = probe(name)
    assert [one["bridge"] for one in stray_bridges(facts)] == list(HOSTILE)
    for one in judged(facts, "links.stray_bridge"):
        assert one["evidence"]["bridge"] in HOSTILE
        assert "$(reboot)" not in one["remedy"]["manual"].replace("'$(reboot)'", "")


def test_a_loopback_that_is_down_is_found():
    with space([]) as name:
        (verdict,) = judged(probe(name), "links.loopback")
    assert (verdict["status"], verdict["message"]) == ("fail", "lo is down")


def test_hundreds_of_pods_cost_a_count_and_not_a_page():
    pods = 300
    with space(CALICO_NODE) as name:
        batch = "".join("link add cali%011x type veth peer name p%d\n" % (at, at) for at in range(pods))
        subprocess.run(["ip", "-n", name, "-batch", "-"], input=batch, text=True, check=True)
        facts = probe(name)
    left = facts["links"]["present"]["left_out"]
    assert left["count"] == 2 * pods + 4 and left["kinds"]["cali"] == pods + 2
    assert len(json.dumps(facts)) < 8000
    assert facts["taken"]["cpu"] < 0.5
