"""Whom a node asks: few, its neighbours, and in both directions."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _targets
from hypothesis import given
from hypothesis import strategies as st
from tables import table

HEALTHY = table("clusters/healthy")


def changed(**calico):
    cluster = copy.deepcopy(HEALTHY)
    cluster["calico"].update(calico)
    return cluster


def test_a_small_cluster():
    said = _targets.of_cluster("n1", ["10.0.0.11"], HEALTHY)
    assert said["api"] == ["10.96.0.1:443", "10.0.0.1:6443"] and said["etcd"] == []
    assert said["peers"] == {name: {"address": address, "ports": [179], "tunnels": []} for name, address in (("n2", "10.0.0.12"), ("n3", "10.0.0.13"))}


def test_a_machine_that_has_not_joined():
    """kube-proxy does not serve it yet, so it does not ask the service's address; it asks all the nodes."""
    said = _targets.of_cluster("new", ["10.0.0.99"], HEALTHY)
    assert said["api"] == ["10.0.0.1:6443"] and set(said["peers"]) == {"n1", "n2", "n3"}


def test_a_machine_under_another_name():
    assert set(_targets.of_cluster("alias", ["10.0.0.12"], HEALTHY)["peers"]) == {"n1", "n3"}


def test_what_the_mode_needs():
    vxlan = changed(backend="vxlan", pools=[{"vxlan": "Always", "ipip": "Never"}])
    vxlan["pods"].append({"component": "calico-typha", "node": "n2", "namespace": "x", "name": "t", "created": 1.0})
    vxlan["nodes"][0]["roles"] = ["control-plane"]
    said = _targets.of_cluster("n1", [], vxlan)["peers"]
    assert said["n2"] == {"address": "10.0.0.12", "ports": [10250, 5473], "tunnels": [4789]}
    assert said["n3"]["ports"] == [10250]
    etcd = changed(datastore="etcd", env={"ETCD_ENDPOINTS": "https://10.0.0.1:2379, https://10.0.0.2:2379"})
    assert _targets.of_cluster("n1", [], etcd)["etcd"] == ["https://10.0.0.1:2379", "https://10.0.0.2:2379"]
    assert _targets.of_cluster("n1", [], changed(datastore="etcd", env={"ETCD_ENDPOINTS": {"from": "configmap x"}}))["etcd"] == []


def test_bgp_has_a_port_of_its_own_for_all_nodes_or_for_one():
    cluster = changed(bgp={"mesh": True, "asn": 64512, "port": 178, "ports": {"n3": 1790}, "peers": []})
    said = _targets.of_cluster("n1", [], cluster)
    assert {name: one["ports"] for name, one in said["peers"].items()} == {"n2": [178], "n3": [1790]}
    assert said["bgp"] == 178 and _targets.of_cluster("n3", [], cluster)["bgp"] == 1790


VXLAN = [{"vxlan": "CrossSubnet", "ipip": "Never"}]


@pytest.mark.parametrize(
    ("pools", "felix", "env", "tunnels"),
    [
        (VXLAN, {"vxlanPort": 4790}, {}, [4790]),
        (VXLAN, {}, {"FELIX_VXLANPORT": "8472"}, [8472]),
        (VXLAN, {"vxlanPort": 4790}, {"FELIX_VXLANPORT": "8472"}, [8472]),
        (VXLAN, {"vxlanPort": 4790}, {"FELIX_VXLANPORT": {"from": "configmap x key y"}}, []),
        (VXLAN, {"vxlanPort": 4790}, {"FELIX_VXLANPORT": "what it wants"}, [4790]),
        (VXLAN, None, {}, []),
        ([], {"wireguardEnabled": True, "wireguardListeningPort": 51999}, {}, [51999]),
        ([], {"wireguardEnabled": True, "wireguardEnabledV6": True, "wireguardListeningPortV6": 52000}, {}, [51820, 52000]),
        ([], {"wireguardEnabledV6": True}, {"FELIX_WIREGUARDLISTENINGPORTV6": "52001"}, [52001]),
        ([{"vxlan": "Never", "ipip": "Always"}], {"vxlanPort": 4790}, {}, ["ipip"]),
    ],
)
def test_tunnels_have_ports_of_their_own(pools, felix, env, tunnels):
    """One whose port is not known is not asked for: a port that is the wrong one is refused by every node that is well."""
    said = _targets.of_cluster("n1", [], changed(pools=pools, felix=felix and {"every": felix, "nodes": {}}, env=env))["peers"]
    assert [one["tunnels"] for one in said.values()] == [tunnels, tunnels]


@pytest.mark.parametrize(
    ("every", "own", "env", "tunnels"),
    [
        (True, {"wireguardEnabled": False}, {}, {"n2": [51820], "n3": []}),
        (False, {"wireguardEnabled": True, "wireguardListeningPort": 51999}, {}, {"n2": [], "n3": [51999]}),
        (True, {"wireguardEnabled": False}, {"FELIX_WIREGUARDENABLED": "True"}, {"n2": [51820], "n3": [51820]}),
        (True, {}, {"FELIX_WIREGUARDENABLED": "no"}, {"n2": [], "n3": []}),
        (True, {}, {"FELIX_WIREGUARDENABLED": {"from": "configmap x key y"}}, {"n2": [], "n3": []}),
    ],
)
def test_wireguard_can_be_on_or_off_at_one_node(every, own, env, tunnels):
    """One that has it off is not asked: it would send the packet back, and be accused."""
    cluster = changed(pools=[], felix={"every": {"wireguardEnabled": every}, "nodes": {"n3": own}}, env=env)
    said = _targets.of_cluster("n1", [], cluster)["peers"]
    assert {name: one["tunnels"] for name, one in said.items()} == tunnels


def test_a_network_of_its_own():
    cluster = copy.deepcopy(HEALTHY)
    cluster["nodes"][1]["calico"]["ipv4"] = "10.1.0.12/24"
    assert _targets.of_cluster("n1", [], cluster, calico_network=True)["peers"]["n2"]["address"] == "10.1.0.12"
    assert _targets.of_cluster("n1", [], cluster)["peers"]["n2"]["address"] == "10.0.0.12"


def test_nothing_is_known():
    empty = {"schema": "nodecare.cluster/1", "nodes": None, "pods": None, "calico": None, "services": None}
    assert _targets.of_cluster("n1", [], empty) == {"api": [], "etcd": [], "peers": {}, "bgp": 179}


def test_hosts_of_the_play():
    said = _targets.of_play("a", {"a": "10.0.0.1", "b": "10.0.0.2", "c": "a name", "d": "{{ template }}"})
    assert said == {"peers": {"b": {"address": "10.0.0.2", "ports": [179, 5473, 10250]}}}


@given(st.sets(st.text("abcdefghij0123456789-", min_size=1, max_size=6), min_size=2, max_size=200))
def test_who_is_asked_asks_back_and_nobody_asks_many(names):
    asked = {name: set(_targets.ring(name, [one for one in names if one != name])) for name in names}
    assert all(len(others) <= 2 * _targets.NEIGHBOURS and name not in others for name, others in asked.items())
    assert all(name in asked[other] for name, others in asked.items() for other in others)
