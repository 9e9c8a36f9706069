"""Random nodes: network namespaces full of links, and what Calico's own programs say about each.

A layout is a list of ``ip`` commands and a list of questions, both made from a seed, so that a seed is all that has to be kept.
Each is tried in a child of its own, whose namespace ends with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import traceback

from ansible_collections.nodecare.kubernetes.plugins.module_utils import _probes

CLONE_NEWNET = 0x40000000
NAMES = """
eth0 eth1 ens7 enp0s31f6 bond0 team0 UPPER0 a.b x-y_z br0 br-lan br-3a10a9384428 docker0 docker_gwbridge virbr0 lxcbr0 lxdbr0 cbr0 mycbr0
cni0 cni-podman0 podman0 podman1 nerdctl0 veth1a2b3c vethwe-bridge ibmveth0 cali0123456789a mycali tunl1 flannel.1 kube-ipvs0 kube-bridge
kube-dummy-if dummy0 mydummy0 vxlan.calico vxlan-v6.calico vxl.calico vxlanxcalico wireguard.cali wg-v6.cali wg0 nodelocaldns mylocal0 fallo1
lowpan0 lo-vip tailscale0 zt0 weave cilium_host ovs-sys eth0.100 vlan100 vmnet1 eth10 $(reboot) a<b>"x `id`;& (eth0) [eth1] eth+ ^eth {2}
""".split()
ADDRESSES_4 = (
    *("10.0.2.15/24", "10.0.2.16/24", "10.0.2.200/32", "10.0.0.66/24", "10.1.0.7/16", "172.17.0.1/16", "172.18.0.1/16", "172.19.0.1/16"),
    *("192.168.1.10/24", "192.168.1.11/24", "192.168.64.2/30", "100.64.3.4/10", "203.0.113.9/29", "169.254.7.1/16", "127.8.8.8/8", "10.244.1.0/32"),
    *("10.0.2.15/32", "198.51.100.255/24", "240.1.2.3/8", "10.255.255.254/31", "172.16.0.0/12"),
)
ADDRESSES_6 = (
    *("2001:db8::10/64", "2001:db8::11/64", "2001:db8:1::1/128", "fd00:1::1/64", "fd00:2::1/48", "fe80::1:2:3/64", "2001:db8:0:5::/64"),
    *("::102:304/96", "2002::1/16", "64:ff9b::a00:1/96", "fec0::1/64"),
)
DESTINATIONS = (
    *("8.8.8.8", "10.0.2.15", "10.0.2.200", "10.0.0.1", "172.18.0.5", "192.168.1.77", "127.0.0.1", "0.0.0.0", "", "2001:db8::99", "::1"),
    *("fd00:1::2", "::", "255.255.255.255", "203.0.113.1", "010.0.0.1", "100.64.0.1", "198.18.7.7", "192.0.2.0"),
)
PATTERNS = (
    *("eth0", "eth.*", "^eth0$", "br-.*", "^(eth|en).*", "ens7", "bond", "", ".*", "docker", "cali", "(?i)upper0", "ETH", "(?i:ETH)\\d", "eth[0-9]+"),
    *("^[^v]", "e(t)h0", "(eth0", "eth0)", "eth0)|(ens7", "eth(?!0)", "(?<=e)th0", "(?P<n>eth)0", "\\beth", "\\Bth0\\b", "eth{1,2}0", "[[:alpha:]]+0$"),
    *("*eth", "e**", "eth\\1", "eth\\z", "eth0\\Z", "\\pL+\\d", "\\p{Lu}", "[z-a]", "eth[", "x{1001}", "\\.", "^en(p|s)", "\\x65th0", "\\Qa.b\\E", "$", "lo"),
)
CIDRS = (
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "10.0.2.0/24", "10.0.2.15/32", "0.0.0.0/0", "2001:db8::/32", "fd00::/8", "::/0", "10.0.2.15/24"),
    *("10.0.0.0", "10.0.0.0/33", "nonsense", "", "010.0.0.0/8", "::ffff:10.0.0.0/104", "fe80::/10", "127.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8"),
)
STORED_4 = ("", "10.0.2.15/24", "172.18.0.1/16", "10.9.9.9/24", "10.0.2.15", "nonsense")
STORED_6 = ("", "", "2001:db8::10/64", "fd00:9::9/128")
SAID_4 = ("autodetect", "autodetect", "autodetect", "", "none", "10.0.2.15", "10.0.2.15/25", "172.18.0.1", "10.7.7.7", "fd00::1", "300.1.1.1", "10.0.0.1/")
SAID_6 = ("", "", "", "none", "autodetect", "autodetect", "2001:db8::10", "fd00:1::1/64", "10.0.2.15", "x")


def layout(seed):
    """(the commands that make a node's links, the questions about it)."""
    chance = random.Random(seed)
    return list(_links(chance)), [*_detections(chance), *_starts(chance)]


def _links(chance):
    if chance.random() < 0.8:
        yield "link set lo up"
    if chance.random() < 0.2:
        yield "address add %s dev lo" % chance.choice(("10.0.2.200/32", "172.20.0.1/32", "198.51.100.7/32"))
    names = chance.sample(NAMES, chance.randint(1, 8))
    indexes = chance.sample(range(2, 600), len(names))
    for at, name in enumerate(names):
        index = "index %d" % indexes[at] if chance.random() < 0.25 else ""
        yield "link add %s" % _kind(chance, "name %s %s" % (name, index), names[:at])
        for _time in range(chance.choice((0, 1, 1, 1, 2, 3))):
            yield _address(chance, name)
        if chance.random() < 0.6:
            yield "link set dev %s up" % name
    for name in names:
        yield from _changes(chance, name)
    for _time in range(chance.choice((0, 0, 1, 2, 3))):
        yield _route(chance, chance.choice(names))


def _kind(chance, named, earlier):
    """Kinds that a kernel has which was not made for networks; what it has not stays away, and that is a layout, too."""
    kind = chance.choice(("ifb", "ifb", "ifb", "bridge", "bridge", "veth", "vlan", "vxlan", "dummy"))
    if kind == "vlan" and earlier:
        return "link %s %s type vlan id %d" % (chance.choice(earlier), named, chance.randint(1, 4000))
    if kind == "veth":
        return "%s type veth peer name peer%d" % (named, len(earlier))
    return "%s type %s" % (named, {"vlan": "bridge", "vxlan": "vxlan id %d dstport 4789" % chance.randint(1, 4000)}.get(kind, kind))


def _address(chance, name):
    if chance.random() < 0.3:
        return "address add %s dev %s nodad %s" % (chance.choice(ADDRESSES_6), name, chance.choice(("", "", "preferred_lft 0")))
    address = chance.choice(ADDRESSES_4)
    peer = chance.random() < 0.1
    shown = "%s peer %s" % (address.split("/", maxsplit=1)[0], "10.77.0.%d/30" % chance.randint(1, 250)) if peer else address
    return "address add %s dev %s %s" % (shown, name, chance.choice(("", "", "", "", "scope link", "scope host")))


def _changes(chance, name):
    drawn = chance.random()
    if drawn < 0.08:
        yield "link delete dev %s" % name
    elif drawn < 0.16:
        yield "link set dev %s down" % name
    elif drawn < 0.24:
        yield "address flush dev %s" % name
    elif drawn < 0.32:
        yield _address(chance, name)


def _route(chance, name):
    target = chance.choice(("default", "8.8.8.0/24", "10.0.0.0/8", "172.18.0.0/24", "198.18.0.0/15", "192.0.2.0/24"))
    hop = chance.choice(("", "", "via 10.0.2.2", "via 192.168.1.1", "via 172.18.0.9"))
    if chance.random() < 0.15:
        return "route add %s %s metric %d" % (chance.choice(("blackhole", "unreachable", "prohibit")), target, chance.randint(1, 900))
    return "route add %s %s dev %s %s" % (target, hop, name, chance.choice(("", "", "metric 100", "src 10.0.2.15", "onlink" if hop else "")))


def _method(chance):
    kind = chance.choice(
        ("first-found", "interface=", "interface=", "skip-interface=", "skip-interface=", "cidr=", "cidr=", "can-reach=", "kubernetes-internal-ip")
    )
    if kind in ("interface=", "skip-interface="):
        names = [*PATTERNS, *chance.sample(NAMES, 5)]
        return kind + chance.choice((",", ",", " , ")).join(chance.sample(names, chance.choice((1, 1, 1, 2, 3))))
    if kind == "cidr=":
        return kind + ",".join(chance.sample(CIDRS, chance.choice((1, 1, 2))))
    if kind == "can-reach=":
        return kind + chance.choice(DESTINATIONS)
    return kind + chance.choice(("", "", "", "6", "x")) if kind == "kubernetes-internal-ip" else kind


def _internal(chance):
    addresses = [one.split("/")[0] for one in (*ADDRESSES_4, *ADDRESSES_6)]
    return chance.choice((None, [], chance.sample(addresses, 1), chance.sample(addresses, 2), ["10.0.2.15"], ["10.0.2.15", "2001:db8::10"]))


def _detections(chance):
    for family in (4, 6):
        yield {"method": "first-found", "family": family, "internal": None}
    for _time in range(12):
        yield {"method": _method(chance), "family": chance.choice((4, 4, 6)), "internal": _internal(chance)}
    if chance.random() < 0.1:
        yield {"method": chance.choice(("bogus", "First-Found", "interface", "cidr")), "family": 4, "internal": None}


def _starts(chance):
    for _time in range(8):
        said = {"IP": chance.choice(SAID_4), "IP6": chance.choice(SAID_6)}
        for name in ("IP", "IP6"):
            if chance.random() < 0.6:
                said[name + "_AUTODETECTION_METHOD"] = _method(chance)
        if chance.random() < 0.1:
            said["CALICO_NETWORKING_BACKEND"] = chance.choice(("none", "bird", "vxlan"))
        if chance.random() < 0.1:
            said["DISABLE_NODE_IP_CHECK"] = chance.choice(("true", "false"))
        stored = chance.choice((None, {"v4": chance.choice(STORED_4), "v6": chance.choice(STORED_6)}))
        yield {"env": said, "stored": stored, "others": list(_others(chance)), "internal": _internal(chance)}


def _others(chance):
    for number in range(chance.choice((0, 0, 1, 3))):
        taken = chance.choice(("10.0.2.15/24", "172.18.0.1/16", "10.50.%d.1/24" % number, "", "bad" if chance.random() < 0.1 else "10.0.2.15/32"))
        yield {"name": "n%d" % number, "v4": taken, "v6": chance.choice(("", "", "2001:db8::10/64"))}


def tried(seed, programs):
    """{commands, refused, facts, questions, answers by version} of one layout."""
    return in_a_namespace(lambda: _tried(seed, programs))


def in_a_namespace(work):
    """What ``work`` answers in a child whose network namespace ends with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            _say(writing, work)
        finally:
            os._exit(0)  # whatever happens, the child must not come back into the parent's tests
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(said or b'{"error": "the child ended without a word"}')
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def _say(writing, work):
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "no network namespace of its own")
        said = work()
    except BaseException:  # noqa: BLE001  whatever it is, the parent is told
        said = {"error": traceback.format_exc()}
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(json.dumps(said).encode())


def _tried(seed, programs):
    commands, questions = layout(seed)
    refused = configured(commands)
    facts, answers = in_a_quiet_moment(lambda: {version: asked(program, questions) for version, program in programs.items()})
    return {"commands": commands, "refused": refused, "facts": facts, "questions": questions, "answers": answers}


def in_a_quiet_moment(ask):
    """(facts, what ``ask`` answers); both again where the kernel was still giving links their IPv6 addresses in between."""
    for _attempt in range(20):
        facts = probed()
        answers = ask()
        if _chosen_from(probed()) == _chosen_from(facts):
            return facts, answers
    raise AssertionError("the links of the namespace never settled")


def _chosen_from(facts):
    held = [
        (link["name"], [(one["ip"], one["prefix"], "tentative" in one.get("marks", ())) for one in link["addresses"]]) for link in facts["present"]["links"]
    ]
    return held, facts["present"]["left_out"], facts["routes"]


def configured(commands):
    """How many of the commands the kernel refused: a layout may ask for what it does not have."""
    batch = "".join(_quoted(one) + "\n" for one in commands)
    return subprocess.run(["ip", "-force", "-batch", "-"], input=batch, capture_output=True, text=True, check=False).stderr.count("failed")


def asked(program, questions):
    """What one version of Calico answers, here."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    said = subprocess.run([str(program), "--serve"], input=lines, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def _quoted(command):
    """iproute2's batch files know quotes and backslashes."""
    return " ".join('"%s"' % word.replace("\\", "\\\\").replace('"', '\\"') if set(word) & set("\"'`$;#") else word for word in command.split())


def probed():
    links = _probes.read(["links"])["links"]
    return {part: links.get(part) for part in ("present", "routes")}
