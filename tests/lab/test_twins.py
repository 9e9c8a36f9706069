"""Calico nodes in network namespaces: their mesh is real, and so is an old one's love for a docker bridge."""

from __future__ import annotations

import json

import pytest
from labs import Lab, eventually, own_name

TWINS = ("t1", "t2", "t3")
BRIDGE = "br-3a10a9384428"
ADDRESS = "172.18.0.1/16"


@pytest.fixture
def lab():
    made = Lab(own_name("t"))
    yield made
    made.do("down")


def registered(lab):
    """{twin: the address that Calico keeps for it}"""
    nodes = json.loads(lab.do("calicoctl", "get", "nodes", "-o", "json", "--allow-version-mismatch"))["items"]
    return {one["metadata"]["name"]: one["spec"].get("bgp", {}).get("ipv4Address") for one in nodes}


def make_bridge(lab):
    lab.do("in", "t1", "ip", "link", "add", BRIDGE, "type", "bridge")
    lab.do("in", "t1", "ip", "address", "add", ADDRESS, "dev", BRIDGE)


def test_mesh(lab):
    lab.do("twins", len(TWINS), timeout=1800)
    for twin in TWINS:
        said = lab.do("in", twin, "birdcl", "-s", "/var/run/calico/bird.ctl", "show", "protocols")
        assert sum("Established" in line for line in said.splitlines()) == len(TWINS) - 1, said
    assert registered(lab) == {twin: "10.0.0.%d/24" % (100 + int(twin[1:])) for twin in TWINS}


def test_an_old_start_takes_a_bridge_without_a_restart(lab):
    """Its address monitor looks once a minute."""
    lab.do("twins", 2, "--old-calico-start", timeout=1800)
    eventually("both to be registered", lambda: registered(lab) == {"t1": "10.0.0.101/24", "t2": "10.0.0.102/24"})
    make_bridge(lab)
    eventually("the bridge's address to be registered", lambda: registered(lab)["t1"] == ADDRESS)
    assert registered(lab)["t2"] == "10.0.0.102/24"
