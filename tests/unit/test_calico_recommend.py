"""The recommended method against the prediction: whatever it says of any nodes, the prediction says the same."""

from __future__ import annotations

import ipaddress
import itertools

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nodecare.kubernetes.plugins.filter.calico_autodetect import calico_autodetect
from ansible_collections.nodecare.kubernetes.plugins.filter.calico_recommend import calico_recommend
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico import _re2
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._commands import set_method
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._recommend import exactly
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._settings import expanded
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._stability import NEWCOMERS, USUAL
from hypothesis import given
from hypothesis import strategies as st
from test_calico_autodetect import facts_of

VERSIONS = ("3.31.0", "3.24.3", "3.22.0", "3.15.1", "3.9.0")
LO = "lo 127.0.0.1/8"


def node(*links, routes=("default dev eth0 via 10.0.0.1",)):
    return {"links": facts_of([LO, *links], routes)}


def of_cluster(nodes, internal, **calico):
    entries = [{"name": name, "internal_ips": internal[name]} for name in nodes]
    return {"schema": "nodecare.cluster/1", "problems": [], "nodes": entries, "calico": {"version": "3.31.0", "env": {}, **calico}}


PLAIN = {"n1": node("eth0 10.0.0.11/24"), "n2": node("eth0 10.0.0.12/24", "br-3a10a9384428 172.18.0.1/16")}
INTERNAL = {"n1": ["10.0.0.11"], "n2": ["10.0.0.12"]}
ORDER = [
    pytest.param("3.31.0", {"cluster": of_cluster(PLAIN, INTERNAL)}, "kubernetes-internal-ip", [], id="the InternalIP"),
    pytest.param("3.22.3", {"cluster": of_cluster(PLAIN, INTERNAL)}, "cidr=10.0.0.0/24", ["kubernetes-internal-ip"], id="masked"),
    pytest.param("3.21.0", {"cluster": of_cluster(PLAIN, INTERNAL)}, "cidr=10.0.0.0/24", ["kubernetes-internal-ip"], id="too old for it"),
    pytest.param("3.31.0", {"by_default_route": True}, "kubernetes-internal-ip", [], id="what the kubelets will take"),
    pytest.param(
        "3.15.0", {"network": ["10.0.0.0/16"]}, "interface=^eth0$", ["kubernetes-internal-ip", "cidr=10.0.0.0/16", "cidr=10.0.0.0/24"], id="older still"
    ),
]


@pytest.mark.parametrize(("version", "given_more", "method", "refused"), ORDER)
def test_the_order(version, given_more, method, refused):
    said = calico_recommend(PLAIN, version, **given_more)
    assert (said["method"], list(said["refused"]), said["steady"], said["why"]) == (method, refused, True, "")
    assert {name: one["address"] for name, one in said["table"][method].items()} == {"n1": "10.0.0.11/24", "n2": "10.0.0.12/24"}
    assert said["table"]["first-found"]["n2"]["right"] is (version == "3.31.0")


def test_a_wide_network_is_not_steady():
    """In 10.0.0.0/8 there is room for the bridges of podman and LXD; in the nodes' own subnets there is none."""
    said = calico_recommend(PLAIN, "3.21.0", network="10.0.0.0/8")
    assert said["method"] == "cidr=10.0.0.0/24"
    assert said["refused"]["cidr=10.0.0.0/8"] == "it is no longer right once podman makes podman1 with 10.88.0.1 (n1)"


def test_what_only_ways_tell_apart():
    """Two addresses on one link, of which the second is meant, and nothing but a way to tell them apart."""
    nodes = {"n1": node("eth0 192.168.7.11/24 10.0.0.11/24"), "n2": node("ens3 192.168.7.12/24 10.0.0.12/24", routes=["default dev ens3 via 10.0.0.1"])}
    said = calico_recommend(nodes, "3.15.0", by_default_route=True)
    assert (said["method"], said["steady"]) == ("can-reach=10.0.0.1", False)
    assert "another route to 10.0.0.1 is added" in said["why"]
    assert said["refused"]["interface=^ens3$,^eth0$"] == "it gives n1 192.168.7.11/24 on eth0 (as 2 of 2 nodes)"


def test_kubesprays_variable_is_asked_before_other_ways():
    nodes = {"n1": node("eth0 192.168.7.11/24 10.0.0.11/24"), "n2": node("eth0 192.168.7.12/24 10.0.0.12/24")}
    cluster = of_cluster(nodes, INTERNAL, env={"NODEIP": {"from": "field status.hostIP"}})
    said = calico_recommend(nodes, "3.15.0", cluster=cluster)
    assert (said["method"], said["steady"]) == ("can-reach=$(NODEIP)", True)


def test_where_no_method_is_right():
    nat = {"n1": node("eth0 10.0.2.15/24"), "n2": node("eth0 10.0.2.15/24")}
    said = calico_recommend(nat, "3.31.0", by_default_route=True)
    assert said["method"] == "" and "n1, n2 should all have 10.0.2.15" in said["why"]
    said = calico_recommend(nat, "3.31.0")
    assert said["left_out"] == dict.fromkeys(nat, "only the default route tells it, which counts with by_default_route")
    elsewhere = calico_recommend(PLAIN, "3.31.0", cluster=of_cluster(PLAIN, {"n1": ["10.0.0.99"], "n2": ["10.0.0.12"]}))
    assert "no link of n1 holds 10.0.0.99" in elsewhere["why"]


def test_a_bundle_and_nodes_that_were_not_read():
    cluster = of_cluster([*PLAIN, "n3"], {**INTERNAL, "n3": ["10.0.0.13"]})
    bundle = {"schema": "nodecare.bundle/1", "nodes": {**{name: {**one, "taken": {}} for name, one in PLAIN.items()}, "n9": {"taken": {}}}, "cluster": cluster}
    said = calico_recommend(bundle)
    assert (said["method"], said["unread"], said["left_out"]) == ("kubernetes-internal-ip", ["n3"], {"n9": "its links were not read"})


@pytest.mark.parametrize(
    ("facts", "more", "words"),
    [
        ({}, {}, "needs a dictionary of nodes"),
        ({"n1": {"links": {}}}, {}, "needs a dictionary of nodes"),
        ("text", {}, "needs a dictionary of nodes"),
        (PLAIN, {"family": 5}, "4 or 6"),
        (PLAIN, {"network": ["x"]}, "network"),
        (PLAIN, {"version": "2.6.0"}, "Calico"),
    ],
)
def test_what_it_cannot_use(facts, more, words):
    with pytest.raises(AnsibleFilterError, match=words):
        calico_recommend(facts, **more)


NAMES = ("eth0", "ens3", "eth1", "bond0", "br0", "wg0", "docker0", "eth0.100", "x,y", "a(b", "$(reboot)", "br-3a10a9384428", "vxlan.calico")
NETWORKS = ("10.0.0.0/24", "10.0.1.0/24", "192.168.7.0/24", "172.17.73.0/24", "203.0.113.0/24", "10.0.0.0/16")


@st.composite
def layouts(draw):
    """({node: links}, {node: wanted}): each node has some links with addresses in some networks, and one of these is the node's own."""
    found, wanted = {}, {}
    for number in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
        links = []
        for name in names:
            nets = draw(st.lists(st.sampled_from(NETWORKS), max_size=2))
            links.append((name, ["%s/%s" % (ipaddress.ip_network(net)[10 * number + at + 20], net.split("/")[1]) for at, net in enumerate(nets)]))
        held = [address for _name, addresses in links for address in addresses]
        if held:
            found["n%d" % number] = links
            wanted["n%d" % number] = draw(st.sampled_from(held)).split("/")[0]
    return found, wanted


def facts_from(links):
    return {"links": facts_of([LO, *("%s %s" % (name, " ".join(held)) for name, held in links)])}


@given(layouts(), st.sampled_from(VERSIONS))
def test_the_prediction_agrees(drawn, version):
    """What is recommended gives every node its address, and where it is called steady it still does after all that people add."""
    layout, wanted = drawn
    if not layout:
        return
    facts = {name: {**facts_from(links), "taken": {"hostname": name}} for name, links in layout.items()}
    internal = {name: [ip] for name, ip in wanted.items()}
    cluster = of_cluster(facts, internal, version=version)
    said = calico_recommend(facts, version, cluster=cluster)
    for name in facts if said["method"] else ():
        assert taken(facts[name], said["method"], version, internal[name]) == wanted[name]
        for changed in changes(layout[name], wanted[name]) if said["steady"] else ():
            assert taken(facts_from(changed), said["method"], version, internal[name]) == wanted[name], changed
    for method, why in said["refused"].items():
        row = said["table"].get(method, {})
        assert why and (not row or not all(one["right"] and one["steady"] for one in row.values()))
        assert all(taken(facts[name], method, version, internal[name]) == (one["address"].partition("/")[0] or None) for name, one in row.items())


def taken(facts, method, version, internal):
    found = calico_autodetect(facts, method, version, internal_ip=internal)["address"]
    return found.partition("/")[0] or None


def changes(links, wanted):
    """A bridge or VPN that is made, one that is made again, NICs in another order, a virtual address beside the node's own."""
    networks = [ipaddress.ip_interface(one).network for _name, held in links for one in held]
    for who, name in NEWCOMERS:
        free = [ip for ip in USUAL.get(who, ()) if not any(ip in network for network in networks)]
        if free and name not in dict(links):
            yield [*links, (name, ["%s/24" % free[0]])]
    nics = [at for at, (name, _held) in enumerate(links) if name.startswith(("eth", "ens"))]
    for order in itertools.permutations(nics):
        swapped = list(links)
        for place, at in zip(nics, order):
            swapped[place] = links[at]
        yield swapped
    for at, (name, held) in enumerate(links):
        if name.startswith("br"):
            yield [*links[:at], *links[at + 1 :], links[at]]
        own = [one for one in held if one.startswith(wanted + "/")]
        if own:
            network = ipaddress.ip_interface(own[0]).network
            yield [*links[:at], (name, [*held, "%s/32" % network[200]]), *links[at + 1 :]]


@given(st.text(alphabet="abz019.,-+()[]{}^$*?|\\<>\"'`&;=#@!~%_ü", min_size=1, max_size=15), st.sampled_from(NAMES))
def test_an_exact_expression_finds_that_name_alone(name, other):
    expression = exactly(name)
    assert "," not in expression
    found = _re2.compiled("(%s)" % expression)
    assert found(name) and found(other) == (name == other)


COMMANDS = [
    pytest.param({"kind": "manifest"}, {}, "IP=autodetect 'IP_AUTODETECTION_METHOD=interface=^eth0$'  # and in the manifest", id="manifest"),
    pytest.param({"kind": "operator"}, {"installation": {}}, '"firstFound": null, "interface": "^eth0$", "skipInterface": null', id="operator"),
    pytest.param({"kind": "kubespray"}, {}, 'calico_ip_auto_method: "interface=^eth0$" in kubespray', id="kubespray"),
    pytest.param({"kind": "rke2"}, {"version": "3.27.0"}, '{"installation": {"calicoNetwork": {"nodeAddressAutodetectionV4": {"interface"', id="rke2"),
    pytest.param({"kind": "rke2"}, {"version": "3.25.1"}, '{"firstFound": false, "interface": "^eth0$"}', id="an rke2 whose charts name a method, too"),
    pytest.param(
        {"kind": "rke2"}, {"daemonset": {"name": "rke2-canal", "namespace": "kube-system"}}, '{"calico": {"ipAutoDetectionMethod"', id="rke2 with canal"
    ),
    pytest.param({"kind": "k3s"}, {"installation": {"spec": {}}}, "kubectl patch installations.operator.tigera.io default", id="k3s with the operator"),
    pytest.param({"kind": "k3s"}, {}, "kubectl -n kube-system set env daemonset/calico-node", id="k3s with the manifest"),
    pytest.param({}, {}, "install Calico with IP=autodetect and IP_AUTODETECTION_METHOD=", id="nothing yet"),
]


@pytest.mark.parametrize(("install", "more", "words"), COMMANDS)
def test_how_it_is_set(install, more, words):
    assert words in set_method("interface=^eth0$", 4, {"install": install, **more})


def test_variables_as_the_kubelet_replaces_them():
    env = {"NODEIP": {"from": "field status.hostIP"}, "DEV": "eth0", "HIDDEN": {"from": "configMap site dev"}, "NODE": {"from": "field spec.nodeName"}}
    said = {
        text: expanded(text, env, {"name": "n1"}, lambda: ["10.0.0.11"])
        for text in ("can-reach=$(NODEIP)", "a$$(DEV)b", "$(DEV)$", "$(NONE)", "$(HIDDEN)", "$(NODE)")
    }
    assert list(said.values()) == ["can-reach=10.0.0.11", "a$(DEV)b", "eth0$", "$(NONE)", None, "n1"]
    assert expanded("$(NODEIP)", env, None, list) is None
