"""Whom a node asks: few, its neighbours, and in both directions."""

from __future__ import annotations

import copy

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


def test_a_network_of_its_own():
    cluster = copy.deepcopy(HEALTHY)
    cluster["nodes"][1]["calico"]["ipv4"] = "10.1.0.12/24"
    assert _targets.of_cluster("n1", [], cluster, calico_network=True)["peers"]["n2"]["address"] == "10.1.0.12"
    assert _targets.of_cluster("n1", [], cluster)["peers"]["n2"]["address"] == "10.0.0.12"


def test_nothing_is_known():
    empty = {"schema": "nodecare.cluster/1", "nodes": None, "pods": None, "calico": None, "services": None}
    assert _targets.of_cluster("n1", [], empty) == {"api": [], "etcd": [], "peers": {}}


def test_hosts_of_the_play():
    said = _targets.of_play("a", {"a": "10.0.0.1", "b": "10.0.0.2", "c": "a name", "d": "{{ template }}"})
    assert said == {"peers": {"b": {"address": "10.0.0.2", "ports": [179, 5473, 10250]}}}


@given(st.sets(st.text("abcdefghij0123456789-", min_size=1, max_size=6), min_size=2, max_size=200))
def test_who_is_asked_asks_back_and_nobody_asks_many(names):
    asked = {name: set(_targets.ring(name, [one for one in names if one != name])) for name in names}
    assert all(len(others) <= 2 * _targets.NEIGHBOURS and name not in others for name, others in asked.items())
    assert all(name in asked[other] for name, others in asked.items() for other in others)
