"""What BIRD, Felix, logs and files of Calico say may be anything: it is read right, or refused, and never breaks the probe."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import calico
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.calico import _bird, _felix, _files, _filters, _logs, _processes, _sockets
from hypothesis import example, given
from hypothesis import strategies as st
from recorded import TREES, RecordedNode, _loaded, machine

TREE = "calico-3.31-node"
RECORDED = _loaded((TREES / TREE / ".recorded.yml").read_text())
LINES = st.lists(st.one_of(st.text(max_size=60), st.sampled_from([line for text in RECORDED["asks"].values() for line in text.split("\n")])), max_size=12)
GREETING = "0001 BIRD 0.3.3+birdv1.6.8 ready.\n"
HEADING = "2002-name     proto    table    state  since       info\n"


def table(*rows, heading=HEADING):
    return GREETING + heading + "".join(("1002-" if not at else " ") + row + "\n" for at, row in enumerate(rows)) + "0000 \n"


def rows(text):
    return _bird.protocols(text)["protocols"]


# -- BIRD: the vectors of calicoctl's own parser, and what it cannot read


@pytest.mark.parametrize(
    "row, wanted",
    [
        ("Meshd_172_17_8_102 BGP master up 2016-11-21 Established", {"kind": "other", "peer": None}),
        ("kernel1 Kernel master up 2016-11-21", None),
        ("Mesh_172_17_8_102 BGP master up 2016-11-21 Established", {"kind": "mesh", "peer": "172.17.8.102", "state": "Established", "since": "2016-11-21"}),
        (
            "Node_172_17_80_102 BGP master up 2016-11-21 Active Socket: error",
            {"kind": "node", "peer": "172.17.80.102", "state": "Active", "info": "Socket: error"},
        ),
        ("Global_172_17_8_133 BGP master down 2016-11-2 Failed", {"kind": "global", "peer": "172.17.8.133", "up": "down", "state": "Failed"}),
        ("Node_fd00_10__1 BGP master up 10:11:12 Established", {"peer": "fd00:10::1"}),
        ("Mesh_2001_db8__9_port_1790 BGP --- up 10:11:12.345 Idle Received: Cease", {"peer": "2001:db8::9", "port": 1790, "info": "Received: Cease"}),
        ("Node_10_0_0_7_port_179 BGP --- start 10:11:12.345 Connect", {"peer": "10.0.0.7", "port": 179, "state": "Connect", "info": ""}),
        ("Mesh_10_0_0_7 BGP master up 2026-11-18 20:03:30 Established", {"since": "2026-11-18 20:03:30", "state": "Established"}),
        ("Mesh_10_0_0_7 BGP master down 2026-11-18", {"since": "2026-11-18", "state": "", "up": "down"}),
        ("Mesh_10_0_0_7 BGP master start 10:11:12 Active        Socket: No route to host", {"state": "Active", "info": "Socket: No route to host"}),
        ("Local_Workload_10_65_0_2 BGP master up 10:11:12 Established", None),
        ("upstream BGP master up 10:11:12 Established", {"kind": "other", "name": "upstream", "peer": None}),
    ],
)
def test_a_row(row, wanted):
    found = rows(table(row))
    assert [wanted is not None] * len(found) == [True] * (wanted is not None)
    for one in found:
        assert {key: one.get(key) for key in wanted} == wanted


@pytest.mark.parametrize(
    "heading",
    [HEADING, "2002-Name       Proto      Table      State  Since         Info\n", "2002-name     proto    table    state since info\n"],
    ids=["1.6 and Calico's", "2 and 3", "1.3"],
)
def test_headings_of_all_releases(heading):
    assert len(rows(table("Mesh_10_0_0_7 BGP --- up 10:11:12 Established", heading=heading))) == 1


@pytest.mark.parametrize(
    "text",
    [
        table("Mesh_10_0_0_7 BGP master up 1 Established", heading="2002-name proto foo state since info\n"),
        GREETING + HEADING + "9000\n0000 \n",
        GREETING + "9001 Parse error, syntax error\n",
        GREETING + "8003 No protocols match\n",
        GREETING + HEADING + "1002-Mesh_10_0_0_7 BGP master up 1 Established\n",
        GREETING + "0000 \n",
        "",
        "220 mail ESMTP\n",
    ],
)
def test_what_is_no_table_is_refused(text):
    with pytest.raises(_bird.NotBird):
        _bird.protocols(text)


def test_no_protocols_is_a_table_without_rows():
    assert _bird.protocols(GREETING + "8004 No protocols\n") == {"protocols": [], "count": 0}


def test_those_that_are_down_come_first_where_there_are_too_many():
    """A mesh of more nodes than anybody should have: what is left out are sessions that are up."""
    many = ["Mesh_10_%d_%d_1 BGP master up 1 %s" % (at // 250, at % 250, "Active" if at % 100 == 99 else "Established") for at in range(2500)]
    found = _bird.protocols(table(*many))
    assert found["count"] == 2500 and len(found["protocols"]) == _bird.MOST_PEERS
    assert [one["state"] for one in found["protocols"][:26]] == ["Active"] * 25 + ["Established"]


@pytest.mark.parametrize(
    "more, version",
    [("", "v0.3.3+birdv1.6.8"), ("", "1.6.8"), (" Hostname is n1\n", "2.0.12"), (" Hostname is n1\n", "3.1.4")],
)
def test_a_status(more, version):
    text = "0001 BIRD %s ready.\n1000-BIRD %s\n1011-Router ID is 10.0.0.11\n%s Current server time is 2026-11-18 19:41:44.123\n" % (version, version, more)
    found = _bird.status(text + " Last reboot on 2026-11-18 19:21:19.000\n0013 Reconfiguration in progress\n")
    assert found == {
        "version": version,
        "router_id": "10.0.0.11",
        "now": "2026-11-18 19:41:44.123",
        "since": "2026-11-18 19:21:19.000",
        "said": "Reconfiguration in progress",
        "recovering": None,
    }


@pytest.mark.parametrize("text", ["", GREETING, GREETING + "0013 Daemon is up and running\n", GREETING + "0016 Access restricted\n", "1000-BIRD 2\n"])
def test_what_is_no_status_is_refused(text):
    with pytest.raises(_bird.NotBird):
        _bird.status(text)


@pytest.mark.parametrize("name", list(RECORDED["asks"]))
def test_the_end_of_an_answer_is_seen_at_its_end_only(name):
    """However the socket cuts it."""
    text = RECORDED["asks"][name]
    assert [at for at in range(len(text) + 1) if _bird.LAST.search(text[:at])] == [len(text)]


@given(LINES.map("\n".join), st.sampled_from(["", "\n", "\n0000 \n", "\n0013 x\n"]))
@example("1011-Router ID is ", "\n0013 \n")
@example("2002-name proto table state since info\n1002-", "\n0000 \n")
def test_no_answer_breaks_a_reader(text, end):
    for reader in (_bird.status, _bird.protocols, _bird.details):
        with contextlib.suppress(_bird.NotBird):
            json.dumps(reader(text + end))


@given(
    st.ip_addresses().filter(lambda ip: ip.version == 4 or "." not in str(ip)),
    st.sampled_from(["Mesh", "Node", "Global"]),
    st.sampled_from(["", "_port_179", "_port_65535"]),
)
def test_every_address_that_calico_writes_as_a_name_is_read(ip, kind, port):
    name = "%s_%s%s" % (kind, re.sub("[.:]", "_", str(ip)), port)
    (found,) = rows(table("%s BGP master up 10:11:12 Established" % name))
    assert found["peer"] == str(ip) and found["kind"] == kind.lower() and found.get("port") == (int(port[6:]) if port else None)


# -- logs


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("2026-11-18T19:20:47.881522516Z stdout F 2026-11-18 19:20:47.865 [INFO][9] x", (1795029647, "2026-11-18 19:20:47.865 [INFO][9] x")),
        ("2026-11-18T21:20:47.881522516+02:00 stderr P x", (1795029647, "x")),
        ("2026-11-18T19:20:47.881522516Z stderr F", (1795029647, "")),
        ('{"log":"x \\"y\\"\\n","stream":"stderr","time":"2026-11-18T19:20:47.1Z"}', (1795029647, 'x "y"')),
        (
            "2026-11-18 19:20:47.626 [INFO][12408] cni-plugin/k8s.go 665: done",
            (1795029647, "2026-11-18 19:20:47.626 [INFO][12408] cni-plugin/k8s.go 665: done"),
        ),
        ("bird: Unable to open configuration file", (None, "bird: Unable to open configuration file")),
        ("{", (None, "{")),
        ("[]", (None, "[]")),
        ('{"log": 7}', (None, "7")),
        ("9999-99-99T99:99:99.9Z stdout F x", (None, None)),
    ],
)
def test_a_line_of_a_log(line, wanted):
    when, message = _logs.parted(line)
    assert wanted[1] in (None, message) and (when == wanted[0] or wanted[1] is None)


SAID = {
    "no_address": "[WARNING][9] startup/startup.go 632: Couldn't autodetect an IPv4 address. If auto-detecting, choose a different autodetection method.",
    "not_local": "[WARNING][9] startup: Unable to reach: autodetected IPv4 address does not match any addresses found on local interfaces: 10.0.0.1",
    "bad_method": "[ERROR][9] startup/autodetection_methods.go 87: Invalid IP autodetection method: bogus",
    "address_conflict": "[WARNING][9] startup/startup.go 1206: Calico node 'n1' is already using the IPv4 address 10.0.2.15.",
    "name_twice": '[WARNING][9] startup: IPv4 address has changed. This could happen if there are multiple nodes with the same name. node="n1"',
    "unconfirmed": "[WARNING][9] startup/startup.go 793: Unable to confirm IPv4 address 10.0.0.63 is assigned to this host",
    "unaddressed": "[ERROR][9] startup/startup.go 396: No IPv4 or IPv6 addresses configured or detected, required for Calico networking",
    "unauthorized": "[WARNING][9] startup/startup.go 568: Connection to the datastore is unauthorized error=x",
    "datastore_retry": "[INFO][9] startup/startup.go 571: Hit error connecting to datastore - retry error=x",
    "api_slow": "[ERROR][9] startup/startup.go 193: failed to query kubeadm's config map error=context deadline exceeded",
    "node_resource": "[ERROR][9] startup/startup.go 482: Unable to set node resource configuration, retrying... error=x",
    "ipam_upgrade": "[ERROR][9] startup/startup.go 142: Unable to upgrade host's IPAM resources. error=x",
    "tunnel_address": "[ERROR][23] tunnel-ip-allocator/allocateip.go 506: Unable to autoassign an IPv4 address error=x",
    "failed_to_start": "Calico node failed to start",
    "datastore_locked": "[WARNING][73] felix/daemon.go 228: Waiting for datastore to be initialized (or migrated)",
    "rpf_loose": "[ERROR][73] felix/int_dataplane.go: Kernel's RPF check is set to 'loose'.  This would allow endpoints to spoof their IP address.",
    "iptables": "[WARNING][73] felix/table.go 1107: Failed to program iptables, will retry error=exit status 4",
    "ipset": "[ERROR][73] felix/ipsets.go: ipset v7.11: Kernel-library incompatibility: set in kernel is not supported by userspace",
    "mtu": "[WARNING][73] felix/int_dataplane.go 1456: Failed to auto-detect host MTU - no interfaces matched the MTU interface pattern.",
    "reporter": '[WARNING][73] felix/health.go 284: Reporter is not live: timed out. name="InternalDataplaneMainLoop"',
    "typha": "[ERROR][73] felix/daemon.go 586: Failed to connect to Typha. error=x",
    "bind": "bird: Mesh_10_0_0_12: Socket error: bind: Cannot assign requested address",
    "ipam_migration": "[ERROR][1] ipam/ipam_plugin.go 101: failed to migrate ipam, retrying... error=x",
    "node_name_missing": "[FATAL][1] ipam: KUBERNETES_NODE_NAME not specified, refusing to migrate...",
    "cni_token": "[FATAL][1] cni-installer/install.go 501: Unable to create token for CNI kubeconfig error=x",
    "cni_folder": "[FATAL][1] cni-installer/install.go 240: found no writeable directory, exiting error=x",
    "shared_mount": 'path "/sys/fs" is mounted on "/sys" but it is not a shared mount',
    "cni_unauthorized": "[ERROR][9] plugin: error getting ClusterInformation: connection is unauthorized: Unauthorized",
    "cni_not_ready": "[ERROR][9] cni-plugin/plugin.go 236: Calico is currently not ready to process requests",
    "cni_no_addresses": "[ERROR][9] ipam: failed to request IPv4 addresses: x",
    "cni_route": "route (Ifindex: 7, Dst: 10.0.0.1/32, Scope: 253) already exists for an interface other than 'cali1': x",
    "cni_nodename": "stat /var/lib/calico/nodename: no such file: check that the calico/node container is running and has mounted /var/lib/calico/",
}


def test_every_signature_is_known_by_a_line_that_calico_says():
    assert set(SAID) == {name for name, _words, _pattern in _logs.SIGNATURES}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("form", ["2026-11-18T19:20:47.881522516Z stderr F %s", "docker"])
def test_a_complaint_is_known_in_both_forms_of_a_log(name, form):
    line = form % SAID[name] if "%" in form else json.dumps({"log": SAID[name] + "\n", "stream": "stderr", "time": "2026-11-18T19:20:47.8Z"})
    found = _logs.complaints("noise\n" + line, ["noise", line], 1795029650)
    assert [(one["signature"], one["count"], one["age_s"], one["over"]) for one in found] == [(name, 1, 3, False)]
    assert found[0]["line"] == SAID[name].strip()


@pytest.mark.parametrize(
    "line",
    [
        '[INFO][73] felix/health.go 292: Reporter is not ready: reporting non-ready. name="int_dataplane"',
        "[DEBUG][1] token_watch.go 104: Unable to create token for CNI kubeconfig as token request api is not supported, falling back",
        "[INFO][9] startup/startup.go 400: No IPv4 or IPv6 addresses configured or detected. Some features may not work properly.",
        '[WARNING][71] complete-startup/startup.go 298: Calico is not ready yet, waiting... reason="unable to connect to BIRDv6 socket"',
        "bird: Unable to open configuration file /etc/calico/confd/config/bird6.cfg: No such file or directory",
    ],
)
def test_what_every_healthy_start_says_is_no_complaint(line):
    assert _logs.complaints(line, [line], 1795029650) == []


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("startup/startup.go 552: Early log level set to info", "begun"),
        ("Determined node name: n1\nStarting node n1 with version v3.31.0\nChecking datastore connection\nHit error connecting", "asking"),
        ("Using autodetected IPv4 address 10.12.13.12/24 on matching interface eth0", "addressed"),
        ("Using autodetected IPv4 address on interface vec0: 10.0.0.11/24\nUsing node name: n1", "registered"),
        ("Using node name: n1\nCalico node started successfully", "started"),
        ("[INFO][73] felix/summary.go 100: Summarising", "running"),
        ("", None),
    ],
)
def test_how_far_a_start_came(text, wanted):
    assert _logs.stage(text) == wanted


def test_a_password_is_not_told():
    line = 'Hit error connecting to datastore - retry error=Get "https://root:geheim@10.0.0.1:2379/"'
    assert "geheim" not in json.dumps(_logs.complaints(line, [line], None)) and "geheim" not in _logs.shown(line)


@given(
    st.lists(st.one_of(st.text(max_size=80), st.sampled_from(sorted(SAID.values())), st.binary(max_size=60).map(lambda one: one.decode("latin1"))), max_size=8)
)
def test_no_log_breaks_the_reader(lines):
    text = "\n".join(lines)
    json.dumps([_logs.stage(text), _logs.complaints(text, lines, 1795029650), [_logs.parted(line) for line in lines], [_logs.shown(line) for line in lines]])


@given(st.datetimes(), st.integers(0, 999999999), st.integers(-14, 14))
def test_every_time_is_read(when, fraction, hours):
    zone = "Z" if not hours else "%s%02d:00" % ("+" if hours > 0 else "-", abs(hours))
    found = _logs.moment("%s.%09d%s" % (when.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0"), fraction, zone))
    assert found == (when.replace(microsecond=0) - type(when)(1970, 1, 1)).total_seconds() - hours * 3600


# -- the environment, files, sockets, the packet filter, Felix's table


@pytest.mark.parametrize(
    "name, told",
    [
        *((name, True) for name in ("IP", "IP6", "IP_AUTODETECTION_METHOD", "IP6_AUTODETECTION_METHOD", "CALICO_NETWORKING_BACKEND", "NODENAME")),
        *((name, True) for name in ("FELIX_HEALTHPORT", "FELIX_HealthPort", "FELIX_IPTABLESBACKEND", "FELIX_VXLANMTU", "CALICO_IPV4POOL_CIDR", "AS")),
        *((name, False) for name in ("ETCD_PASSWORD", "CALICO_API_TOKEN", "FELIX_ETCDKEYFILE", "ETCD_KEY_FILE", "K8S_TOKEN", "AWS_SECRET_ACCESS_KEY", "HOME")),
        *((name, False) for name in ("CALICO_ETCD_CERT", "FELIX_HEALTHSECRET", "CALICO_AUTH", "IPSEC_PSK", "CALICO_PASSPHRASE", "")),
    ],
)
def test_what_is_told_of_the_environment(name, told):
    assert (list(_processes.allowed("%s=x" % name)) == [name.upper()]) is told


MANY = "cidr=" + ",".join("10.%d.0.0/16" % number for number in range(255))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("IP_AUTODETECTION_METHOD=%s\0IP=autodetect\0" % MANY, {"IP_AUTODETECTION_METHOD": MANY, "IP": "autodetect"}),
        ("IP6_AUTODETECTION_METHOD=%s\0" % MANY, {"IP6_AUTODETECTION_METHOD": MANY}),
        ("IP_AUTODETECTION_METHOD=%s\0IP=autodetect\0" % (MANY + MANY), None),
        ("HOME=%s\0IP=autodetect\0" % ("x" * _processes.LONGEST * 2), {"IP": "autodetect"}),
        ("IP=autodetect\0HOME=%s\0" % ("x" * _processes.ENVIRONMENT), None),
    ],
)
def test_an_environment_is_told_as_a_whole_or_not_at_all(tmp_path, said, told):
    """What is left of a value that was cut means something else than the whole, and what comes behind it is missing."""
    environ = tmp_path / "proc/7/environ"
    environ.parent.mkdir(parents=True)
    environ.write_text(said)
    node = RecordedNode(str(tmp_path), {})
    assert _processes.environment(node, [{"pid": 7, "name": "calico-node", "does": "felix"}]) == told
    assert [one["what"] for one in node.problems] == ([] if told else ["the environment of calico-node"])


STAT = "%d (calico-node) %s " + "1 " * 40


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({8: ("S", "IP=autodetect\0")}, {"IP": "autodetect"}),
        ({}, {}),
        ({8: ("Z", "")}, {}),
        ({8: ("S", None)}, None),
    ],
    ids=["another runs", "none runs", "another has ended too", "another that may not be read"],
)
def test_programs_that_have_ended_since_they_were_listed_refuse_nothing(tmp_path, now, told):
    def run(pid, state, environ):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "stat").write_text(STAT % (pid, state))
        (tmp_path / "proc" / str(pid) / "cmdline").write_text("calico-node\0-startup\0")
        if environ is not None:
            (tmp_path / "proc" / str(pid) / "environ").write_text(environ)

    run(7, "S", "")
    node = RecordedNode(str(tmp_path), {})
    found = _processes.programs(node)
    shutil.rmtree(tmp_path / "proc/7")
    for pid, (state, environ) in now.items():
        run(pid, state, environ)
    assert [one["pid"] for one in found] == [7] and _processes.environment(node, found) == told
    assert [one["kind"] for one in node.problems] == ([] if told is not None else ["denied"])


@given(st.text(max_size=80), st.sampled_from(["TOKEN", "PASSWORD", "SECRET", "KEY", "CERT", "CREDENTIALS"]))
def test_no_secret_of_the_environment_is_told(text, word):
    json.dumps(_processes.allowed(text))
    assert _processes.allowed("CALICO_%s=geheim\0FELIX_HEALTH%s=geheim\0IP=http://root:geheim@x/" % (word, word)) == {"IP": "http://…@x/"}


@pytest.mark.parametrize(
    "name, words, wanted",
    [
        ("calico-node", ["-felix"], "felix"),
        ("calico-node", ["-felix-live", "-bird-live"], "felix-live bird-live"),
        ("calico-node", ["-allocate-tunnel-addrs", "-allocate-tunnel-addrs-run-once"], "allocate-tunnel-addrs allocate-tunnel-addrs-run-once"),
        ("calico", ["component", "felix"], "felix"),
        ("calico", ["component", "node", "startup"], "node startup"),
        ("calico", ["get", "nodes"], None),
        ("calico-felix", [], "felix"),
        ("calico-ipam", ["-upgrade"], "upgrade"),
        ("calico-ipam", [], None),
    ],
)
def test_what_a_program_does(name, words, wanted):
    found = _processes.told(name, [*words, ""])
    assert (found or {}).get("does") == wanted


@given(st.binary(max_size=200))
@example(b"1 (a) b) S " + b"1 " * 30)
def test_no_process_breaks_the_reader(said):
    _processes.status(said)


@given(
    st.one_of(
        st.text(max_size=60),
        st.recursive(
            st.one_of(st.none(), st.integers(), st.text(max_size=5)),
            lambda inner: st.dictionaries(st.sampled_from(["exp", "iat", "sub", "kubernetes.io", "pod", "name"]), inner, max_size=4),
            max_leaves=8,
        ),
    )
)
def test_no_token_breaks_the_reader(said):
    if not isinstance(said, str):
        said = "x.%s.y" % base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
    json.dumps(_files.claims(RecordedNode("/nonexistent", {}), said))


def test_the_token_itself_is_nowhere_in_the_facts(tmp_path):
    root, recorded, denied = machine(TREE, {}, tmp_path)
    token = re.search('token: *"?(\\S+?)"?$', (root / "etc/cni/net.d/calico-kubeconfig").read_text(), re.M).group(1)
    facts = RecordedNode(root, recorded, denied).facts({**calico.FACTS, **calico.WAITING})
    assert not [part for part in token.split(".") if part in json.dumps(facts)] and facts["token"]["left_s"] > 0


@pytest.mark.parametrize(
    "row, wanted",
    [
        ("   0: 00000000:00B3 00000000:0000 0A 0:0 0:0 0 0 0 4078 1 0", [{"port": 179, "address": "0.0.0.0"}]),
        ("   1: 0100007F:238B 00000000:0000 0A 0:0 0:0 0 0 0 4011 1 0", [{"port": 9099, "address": "127.0.0.1"}]),
        ("   2: 0B00000A:00B3 0C00000A:B2D3 01 0:0 0:0 0 0 0 4110 1 0", []),
        ("   3: 00000000000000000000000001000000:1561 0:0 0A 0:0 0:0 0 0 0 4110 1 0", [{"port": 5473, "address": "::1"}]),
        ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", []),
    ],
)
def test_who_listens(row, wanted):
    assert _sockets.bound("head\n" + row, _sockets.TCP, _sockets.LISTENS) == wanted


@given(st.text(st.sampled_from("0123456789ABCDEF: \nX"), max_size=300))
def test_no_table_of_sockets_breaks_the_reader(text):
    _sockets.bound(text, _sockets.UDP)


@pytest.mark.parametrize(
    "comment, wanted",
    [
        ("Drop IPIP packets from non-Calico hosts", {"IPIP": 7}),
        ("Reject IPIP packets from non-Calico hosts", {"IPIP": 7}),
        ("Drop IPv4 VXLAN packets from non-allowed hosts", {"IPv4 VXLAN": 7}),
        ("Drop IPv6 VXLAN packets from non-allowed hosts", {"IPv6 VXLAN": 7}),
        ("Drop VXLAN packets from non-whitelisted hosts", {"VXLAN": 7}),
        ("Allow IPIP packets from Calico hosts", {}),
        ("Drop IPinIP encapped packets originating in workloads", {}),
    ],
)
def test_the_counter_of_a_rule(comment, wanted):
    text = '[7:840] -A cali-INPUT -p 4 -m comment --comment "cali:_wjq-Yrma8Ly1Svo" -m comment --comment "%s" -j DROP\n' % comment
    ((packets, chain, rule),) = _filters.RULE.findall(text)
    found = {}
    _filters.count(found, [(rule, packets)])
    assert (chain, found) == ("cali-INPUT", wanted)


@given(st.text(max_size=200))
@example("| x | y |\n|||||\n| a | b | timed out | timed out |")
def test_no_answer_of_felix_breaks_the_reader(text):
    json.dumps(_felix.ill(text))


@given(st.sampled_from(sorted(RECORDED["asks"])), st.text(max_size=80), st.sampled_from(["answered", "refused", "hung", "denied"]))
def test_no_bird_stops_the_probe(tmp_path_factory, question, out, state):
    root = tmp_path_factory.mktemp("node")
    (root / "var/run/calico").mkdir(parents=True)
    (root / "var/run/calico/bird.ctl").touch()
    node = RecordedNode(root, {"asks": {**RECORDED["asks"], question: {"state": state, "out": out, "cut": True}}})
    found = node.facts({"bird": _bird.bird})["bird"]
    json.dumps(found)
    assert [one["path"] for one in found["sockets"]] == ["/var/run/calico/bird.ctl"] and {"state", "seconds", "asked"} <= set(found["sockets"][0])
