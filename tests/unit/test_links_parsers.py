"""What the kernel and the files of a node say may be anything: nothing of it stops the probe, and what is true is found."""

from __future__ import annotations

import json
import socket
import struct

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.links import _cni, _managers, _netlink, _owners, ip_rules, present, routes
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._links import choosable, ignored, ignored_since
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules.links import _listed
from hypothesis import example, given
from hypothesis import strategies as st
from recorded import TREES, RecordedNode, read

DECODERS = (_netlink.links, _netlink.addresses, _netlink.routes, _netlink.rules)
NAMES = st.binary(min_size=1, max_size=15).filter(lambda name: b"\0" not in name)
ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def family_of(ip):
    return socket.AF_INET if ip.version == 4 else socket.AF_INET6


@st.composite
def recorded_but_broken(draw):
    """A real message that was cut short or changed somewhere."""
    payload = bytearray(draw(st.sampled_from(recorded())))
    for at in draw(st.lists(st.integers(0, max(0, len(payload) - 1)), max_size=4)):
        payload[at] = draw(st.integers(0, 255))
    return bytes(payload[: draw(st.integers(0, len(payload)))])


def recorded():
    found = []
    for tree in ("links-docker-host", "links-calico-node"):
        lines = (TREES / tree / ".recorded.yml").read_text().splitlines()
        found += [bytes.fromhex(line.strip("- ")) for line in lines if line.startswith("    - ")]
    return found


@given(st.lists(st.one_of(st.binary(max_size=200), recorded_but_broken()), max_size=6))
@example([b"", b"\0" * 15, b"\xff" * 64])
def test_no_message_stops_a_decoder(payloads):
    for decode in DECODERS:
        json.dumps(list(decode(payloads)))


@given(st.lists(recorded_but_broken(), max_size=6), st.lists(recorded_but_broken(), max_size=6), st.lists(recorded_but_broken(), max_size=6))
def test_no_dump_stops_the_probe(links, addresses, main):
    node = RecordedNode("/nonexistent", {"dumps": {"18": _hex(links), "22": _hex(addresses), "26/2": _hex(main), "26/10": _hex(main)}})
    json.dumps(node.facts({"present": present, "routes": routes}))
    assert not [problem for problem in node.problems if problem["kind"] == "error"], node.problems


def _hex(payloads):
    return [payload.hex() for payload in payloads]


@given(st.integers(1, 2**31 - 1), NAMES, st.lists(st.tuples(st.integers(60, 90), st.binary(max_size=40)), max_size=5), NAMES)
def test_a_link_is_found_among_attributes_that_nobody_knows(index, name, others, altname):
    noise = b"".join(attribute(kind, value) for kind, value in others)
    nested = attribute(52 | 0x8000, attribute(53, altname + b"\0"))
    kind = attribute(18, attribute(1, b"bridge\0") + attribute(2 | 0x8000, b"\0" * 8))
    payload = struct.pack("=BxHiII", 0, 1, index, 0x10043, 0) + noise + attribute(3, name + b"\0") + kind + nested + noise
    (link,) = _netlink.links([payload])
    assert (link["index"], link["name"], link["kind"], link["altnames"]) == (
        index,
        name.decode("utf-8", "replace"),
        "bridge",
        [altname.decode("utf-8", "replace")],
    )
    assert link["up"] and link["carrier"] and not link["loopback"]


@given(ADDRESSES, st.integers(0, 32), st.integers(1, 9999), st.booleans())
def test_an_address_is_the_links_own_and_not_its_peers(ip, prefix, index, has_peer):
    peer = attribute(1, bytes(len(ip.packed))) if has_peer else b""
    own = attribute(2, ip.packed) if has_peer else attribute(1, ip.packed)
    payload = struct.pack("=BBBBI", family_of(ip), prefix, 0x81, 0, index) + peer + own
    ((found, held),) = _netlink.addresses([payload])
    assert found == index and socket.inet_pton(family_of(ip), held["ip"]) == ip.packed and held["prefix"] == prefix
    assert held["marks"] == ["secondary" if ip.version == 4 else "temporary"]


@given(st.lists(st.tuples(st.integers(1, 300), ADDRESSES), unique_by=lambda one: one[0], min_size=1, max_size=8), st.randoms())
def test_the_order_of_the_dump_stays(pairs, chance):
    chance.shuffle(pairs)
    links = [struct.pack("=BxHiII", 0, 1, index, 1, 0) + attribute(3, b"l%d\0" % index) for index, _ip in pairs]
    held = [struct.pack("=BBBBI", family_of(ip), 24, 0, 0, index) + attribute(1, ip.packed) for index, ip in pairs]
    node = RecordedNode("/nonexistent", {"dumps": {"18": _hex(links), "22": _hex(held)}})
    assert [link["index"] for link in present(node)["links"]] == [index for index, _ip in pairs]


@given(st.text(max_size=300))
@example("[keyfile]\nunmanaged-devices\n=\n[\n]x\\\n")
def test_no_configuration_stops_a_parser(text):
    json.dumps(_managers.settings(text))


@given(st.lists(st.tuples(st.sampled_from(["Name", "Type", "unmanaged-devices"]), st.from_regex(r"[a-z*!;:=. ]{0,20}[a-z]", fullmatch=True)), max_size=6))
def test_every_setting_is_found(pairs):
    text = "# [Match]\n[Match]\n; Name=no\n" + "".join("  %s = %s  \n\n" % pair for pair in pairs)
    assert _managers.settings(text) == [("Match", key, value.strip()) for key, value in pairs]


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["plugins", "delegates", "type", "ipam", "bridge", "name", "Id", "Names", "Driver", "Options"]), inner, max_size=5),
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_no_cni_configuration_and_no_docker_stops_the_probe(tmp_path_factory, said):
    root = tmp_path_factory.mktemp("node")
    (root / "run").mkdir()
    (root / "run/docker.sock").touch()
    for path, text in (
        ("etc/cni/net.d/x.conflist", json.dumps(said)),
        ("etc/containers/networks/x.json", json.dumps(said)),
        ("sys/class/net/br0/bridge/x", ""),
    ):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    http = {"/run/docker.sock /networks": json.dumps(said), "/run/docker.sock /containers/json": json.dumps([said])}
    node = RecordedNode(root, {"http": http, "commands": {"systemctl show": ""}})
    json.dumps(node.facts({"cni": _cni.cni, "podman": _owners.podman, "docker": _owners.docker}))
    assert all(problem["fact"] == "docker" for problem in node.problems), node.problems


@pytest.mark.parametrize(
    "ip, taken",
    [("10.0.0.1", 1), ("100.64.0.1", 1), ("fd00::1", 1), ("240.0.0.1", 1), ("169.254.1.1", 0), ("127.0.0.2", 0), ("224.0.0.1", 0), ("0.0.0.0", 0)]
    + [("255.255.255.255", 0), ("::1", 0), ("::", 0), ("fe80::1", 0), ("ff02::1", 0), ("2001:db8::1", 1)],
)
def test_what_go_calls_a_global_unicast_address(ip, taken):
    assert len(choosable({"addresses": [{"ip": ip, "prefix": 24}]})) == taken


@pytest.mark.parametrize(
    "name, since",
    [
        ("docker0", "3.2"),
        ("docker_gwbridge", "3.2"),
        ("cni0", "3.15"),
        ("lo", "3.2"),
        ("br-3a10a9384428", "3.25"),
        ("podman0", "3.25"),
        ("vxlan.calico", "3.24.4"),
    ]
    + [(name, None) for name in ("br0", "bond0", "eth0.100", "wg0", "weave", "cilium_host", "lxdbr0", "incusbr0", "kube-bridge", "nerdctl0")],
)
def test_the_names_that_calico_ignores(name, since):
    assert ignored_since(name) == since
    assert ignored(name, "3.31.0") == (since is not None) and ignored(name) == (since is not None and since != "3.25")


@pytest.mark.parametrize(
    "devices, hit",
    [("interface-name:cali*", True), ("interface-name:=cali*", False), ("*", True), ("*;except:interface-name:cali*", False), ("type:veth", True)]
    + [("type:ethernet", True), ("driver:veth", True), ("interface-name:docker0", False), ("mac:ee:ee:ee:ee:ee:ee", False), ("cali0123456789a", True)],
)
def test_network_managers_device_lists(devices, hit):
    assert _listed(devices.split(";"), "cali0123456789a", "veth") is hit


@given(st.ip_addresses(v=4), st.integers(0, 32), st.sampled_from([254, 255, 100]), st.booleans(), st.integers(1, 9))
def test_a_route_of_the_main_table_is_found(ip, prefix, table, learnt, links):
    """One link as an attribute, several as a list of ways; other tables and what the kernel has learnt are passed over."""
    ways = attribute(4, struct.pack("=I", 1)) if links == 1 else attribute(9, b"".join(struct.pack("=HBBi", 8, 0, 0, at + 1) for at in range(links)))
    target = attribute(1, ip.packed) if prefix else b""
    payload = (
        struct.pack("=8BI", socket.AF_INET, prefix, 0, 0, table, 3, 0, 1, 0x200 if learnt else 0) + target + attribute(15, struct.pack("=I", table)) + ways
    )
    found = list(_netlink.routes([payload]))
    assert len(found) == (table == 254 and not learnt)
    for route in found:
        assert (
            route["to"] == ("%s/%d" % (ip, prefix) if prefix else "default") and route["links"] == list(range(1, min(links, 8) + 1)) and route["by"] == "boot"
        )


RULES = """
02000000ff0000010000000008000f00ff00000008000e00ffffffff0500150002000000
02100000070000010000000008000f000700000008000e00ffffffff05001500000000000800060062000000080001000a090000
02000000fc0000010200000008000f00e803000008000e00ffffffff0500150000000000080006006300000008000a00000010000800100000001000
02002000640000010000000008000f006400000008000e00ffffffff050015000000000008000600fd7f0000080002000a000005
02000000fe0000010000000008000f00fe00000008000e00ffffffff050015000200000008000600fe7f0000
02000000fd0000010000000008000f00fd00000008000e00ffffffff050015000200000008000600ff7f0000
""".split()


def test_rules_beside_the_usual_are_found():
    """Recorded after `ip rule add to 10.9.0.0/16 lookup 7; ip rule add from 10.0.0.5 lookup 100; ip rule add not fwmark 0x100000/0x100000 lookup 1000`."""
    node = RecordedNode("/nonexistent", {"dumps": {"34/2": RULES}})
    assert ip_rules(node) == [
        {"priority": 98, "table": 7, "family": 4, "to": "10.9.0.0/16"},
        {"priority": 99, "table": 1000, "family": 4, "mark": 0x100000, "not": True},
        {"priority": 32765, "table": 100, "family": 4, "from": "10.0.0.5/32"},
    ]
    assert ip_rules(RecordedNode("/nonexistent", {})) == [] and not node.problems  # a kernel without such rules


def test_a_masked_file_of_networkd_is_neither_read_nor_a_problem(tmp_path):
    (tmp_path / "etc/systemd/network").mkdir(parents=True)
    (tmp_path / "etc/systemd/network/80-all.network").symlink_to("/dev/null")
    node = Node(str(tmp_path))
    assert _managers.networkd(node) == {"networks": []} and not node.problems


def test_a_nic_is_told_from_a_link_that_only_looks_like_one(tmp_path):
    links = {link["name"]: link for link in read("links-docker-host", {}, tmp_path, ["links"])["links"]["present"]["links"]}
    assert links["eth0"]["nic"] and "nic" not in links["docker0"]
    assert links["br-lan"]["ports"] == [{"name": "eth1", "kind": "ifb", "nic": True}] and links["br-3a10a9384428"]["port_count"] == 1
