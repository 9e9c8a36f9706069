# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Links: does the node have one clear address, and does anything else get in the pod network's way?"""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache

from ...module_utils._bridges import MULTUS, POD_NETWORK, first, named
from .._addresses import interface_of, network_of
from .._calico._host import network as pool_network
from .._calico._methods import limits
from .._calico._re2 import Refused, Untold
from .._calico._settings import ENFORCES, OTHER, settings
from .._calico._settings import VERSION as CALICO
from .._links import ALWAYS, candidates, choosable, ignored, other_network, stray_bridges
from .._same import Same
from ._rule import by_hand, fail, passed, proven, repaired_by, rule, skip, warn

OF_CALICO = ("calico.processes", "cluster.calico", "cluster.nodes")  # where it is told how Calico finds a node's address


@rule(
    "links.stray_bridge",
    "A container tool's bridge could be taken for the node's address",
    needs="links.present",
    uses=("links.routes", "links.declared", "links.docker", "links.podman", "links.libvirt", "links.cni", *OF_CALICO),
)
def stray_bridge(present, routes, declared, docker, podman, libvirt, cni, processes, calico, nodes, policy):
    """Calico's first-found detection takes the address of the link that the kernel lists last, whoever made it and whether or not it is up.

    A bridge that docker, podman or the like leaves on a node then becomes the node's address, and its peers see BGP sessions
    to an address that they cannot reach. Calico ignores bridges named br-… only from 3.25 on. Where the cluster, the running
    calico-node or the policy tells which method is used, bridges that this method never takes are no danger; where Calico only
    enforces policies on another program's network, none is.
    """
    facts = {"present": present, "routes": routes, "declared": declared, "docker": docker, "podman": podman, "libvirt": libvirt, "cni": cni}
    if other_network(cni):
        return skip(OTHER % other_network(cni))
    known, only_enforces = _of_calico(cni, processes, calico, nodes, policy)
    if only_enforces:
        return skip(ENFORCES)
    docker_is_here = bool(docker) and (docker["asked"] or "why" in docker)
    strays = [_stray(bridge, known.get(4), policy[CALICO], docker_is_here) for bridge in stray_bridges(facts)]
    return strays or proven("no container tool's bridge holds an address")


def _of_calico(*facts):
    """({family: how Calico is told to find an address}, whether it only enforces policies), as the cluster, the running calico-node or the policy says."""
    return _told(Same(facts))


@lru_cache(1)
def _told(same):
    cni, processes, calico, nodes, policy = same
    running = (processes or {}).get("env")
    known, silence = settings(policy, calico, nodes, None, other_network(cni), lambda: ["its InternalIP"], running)
    return {family: one for family, one in (known or {}).items() if not one.unknown}, silence is not None and silence.why == ENFORCES


def _never_takes(known, bridge):
    """Whether this method passes over a bridge, whatever comes first."""
    limit = limits(known.method, known.numbers)
    try:
        passed_over = limit is None or limit.verdict(bridge["bridge"])
    except (Refused, Untold):
        return False
    return bool(passed_over) or not any(limit.within(interface_of(one).ip) for one in bridge["subnet"].split(", "))


def _stray(bridge, known, calico, docker_is_here):
    evidence = {key: value for key, value in bridge.items() if key != "because"}
    what = "%s %s (%s)" % (bridge["bridge"], bridge["subnet"], _whose(bridge))
    by_name = known is None or known.method in ("", "first-found")
    if not by_name and _never_takes(known, bridge):
        return passed("%s is nothing that %s takes" % (what, known.words), **evidence)
    if by_name and ignored(bridge["bridge"], known.version if known and known.version else calico):
        since = "" if bridge["ignored_since"] in (ALWAYS, None) else " since %s" % bridge["ignored_since"]
        return passed("%s is ignored by Calico%s" % (what, since), **evidence)
    heeds = "Calico before %s takes it" % bridge["ignored_since"] if bridge["ignored_since"] else "every Calico takes it"
    heeds = heeds if by_name else "%s takes it" % known.words
    message = "%s leads nowhere, but %s for the node's address if it comes last" % (what, heeds)
    if bridge["owner"] is None:
        return warn(message, by_hand("ip link show master %(bridge)s  # if nobody needs it: ip link delete %(bridge)s"), **evidence)
    return fail(message, _removal(bridge, docker_is_here), **evidence)


def _whose(bridge):
    name = {"docker": "docker network", "podman": "podman network"}.get(bridge["owner"], "")
    whose = "%s %s" % (name, bridge["network"]) if bridge.get("network") else "%s's" % bridge["owner"] if bridge["owner"] else "nobody's"
    users = bridge.get("containers") or bridge["ports"]
    count = bridge.get("container_count") or bridge["port_count"]
    if not users:
        return "%s, used by nobody" % whose
    named = ", ".join(users[:3]) + (" and %d more" % (count - 3) if count > 3 else "")
    return "%s, used by %s %s" % (whose, "container" if bridge.get("containers") else "port", named)


# How each owner removes a bridge that nobody uses; the playbook does the same, and refuses where it finds a user.
REPAIR = "repair_bridges"
BY_NETWORK = {tool: repaired_by(REPAIR, "%s network rm %%(network)s" % tool) for tool in ("docker", "podman", "nerdctl")}
BY_OTHERS = {
    "libvirt": by_hand("virsh net-list --all  # the network whose bridge is %(bridge)s, then: virsh net-destroy and virsh net-autostart --disable"),
    "lxd": by_hand("lxc network delete %(bridge)s"),
    "incus": by_hand("incus network delete %(bridge)s"),
    "lxc": by_hand("systemctl disable --now lxc-net"),
}
DEFAULT_BRIDGE = by_hand(
    "ansible-playbook nodecare.kubernetes.repair_bridges --limit %(node)s -e nodecare_bridges=docker0 -e nodecare_allow_default_bridge=true"
)
BY_KERNEL = repaired_by(REPAIR, "ip link delete %(bridge)s")


def _removal(bridge, docker_is_here):
    if bridge["bridge"] == "docker0":
        return DEFAULT_BRIDGE
    tool = bridge["owner"] if bridge.get("network") else ""
    if tool in BY_NETWORK and bridge.get("containers"):
        return by_hand("%s ps --filter network=%%(network)s  # end these, then: %s network rm %%(network)s" % (tool, tool), disruptive=True)
    by_id = re.match(r"br-([0-9a-f]{12})$", bridge["bridge"])
    if bridge["owner"] == "docker" and not tool and by_id and docker_is_here:
        remedy = repaired_by(REPAIR, "docker network rm %s" % by_id.group(1))
    else:
        remedy = BY_NETWORK.get(tool) or BY_OTHERS.get(bridge["owner"], BY_KERNEL)
    if bridge["ports"] and not tool:
        return by_hand("ip link show master %%(bridge)s  # end what uses these ports, then: %s" % remedy["manual"], disruptive=True)
    return remedy


@rule(
    "links.ambiguous_address",
    "Several addresses could be taken for the node's",
    needs=("links.present", "links.routes"),
    uses=("links.cni", *OF_CALICO),
    remedy=by_hand("name the right one in Calico: IP_AUTODETECTION_METHOD=cidr=<the nodes' network>, or interface=<link>, or kubernetes-internal-ip"),
)
def ambiguous_address(present, routes, cni, processes, calico, nodes, policy):
    """Calico's default detection knows nothing of routes: it takes the last link of the kernel's list that it does not ignore by name.

    With two NICs, a VPN, a bridge or a virtual address that may be the wrong one, and it may change when a link is added.
    IPv6 is looked at where the policy's networks have IPv6, or the node has no IPv4. Where the cluster, the running calico-node or
    the policy tells how Calico is set, calico.wrong_address and calico.unstable_address foresee its choice, and this rule is silent;
    so it is where Calico only enforces policies.
    """
    if other_network(cni):
        return skip(OTHER % other_network(cni))
    known, only_enforces = _of_calico(cni, processes, calico, nodes, policy)
    if only_enforces:
        return skip(ENFORCES)
    families = [family for family in _families(present["links"], policy) if family not in known]
    if known and not families:
        return skip("calico.wrong_address and calico.unstable_address tell what %s takes" % known[4].words)
    found = []
    for family in families:
        tried = candidates(present["links"], family, policy[CALICO])
        subnets = {(link["name"], subnet) for link, addresses in tried for subnet in _subnets(addresses)}
        if len(subnets) > 1 or (tried and _is_virtual(tried[0][1])):
            found.append(_ambiguous(family, tried, routes, policy))
    return found


def _families(links, policy):
    wanted = {network.version for networks in policy.networks.values() for network in networks}
    have = {family for family in (4, 6) if candidates(links, family, policy[CALICO])}
    return sorted(have & (wanted | {4})) or sorted(have)


def _subnets(addresses):
    """The distinct networks among a link's addresses; a single address inside a wider one adds none."""
    networks = {interface_of(address).network for address in addresses}
    return {one for one in networks if not any(one != other and one.subnet_of(other) for other in networks)}


def _is_virtual(addresses):
    """Whether the first address is a single one inside another's network, as keepalived and kube-vip add them."""
    chosen = interface_of(addresses[0])
    return chosen.network.prefixlen == chosen.max_prefixlen and len(_subnets(addresses)) < len(set(addresses))


def _ambiguous(family, tried, routes, policy):
    link, addresses = tried[0]
    chosen = "%s on %s%s" % (addresses[0], link["name"], "" if link.get("up") else " (down)")
    others = ["%s on %s" % (address, one["name"]) for one, held in tried for address in held][1:]
    leaving = sorted({name for route in routes["main"] if route["to"] == "default" and route["family"] == family for name in route.get("links", [])})
    evidence = {"first_found": addresses[0], "link": link["name"], "candidates": [chosen, *others][:10], "default_route": leaving}
    message = "first-found would take %s; it could also be %s%s" % (
        chosen,
        ", ".join(others[:4]),
        " and %d more" % (len(others) - 4) if len(others) > 4 else "",
    )
    nodes = [network for network in policy.networks.get("nodes", []) if network.version == family]
    if nodes and not _inside(addresses[0], nodes):
        return fail(message + "; the nodes' network is %s" % ", ".join(map(str, nodes)), **evidence)
    if nodes and not _is_virtual(addresses):
        return passed(message + "; that is in the nodes' network", **evidence)
    return warn(message + ("; the default route leaves by %s" % ", ".join(leaving) if leaving else ""), **evidence)


def _inside(address, networks):
    return any(interface_of(address).ip in network for network in networks)


@rule(
    "links.overlap",
    "Networks of this node and of the cluster overlap",
    needs=("links.present", "links.routes"),
    uses=("links.declared", "links.cni", "cluster.calico", "cluster.services"),
    remedy=by_hand("ip route show %(network)s  # give one of the two another network"),
)
def overlap(present, routes, declared, cni, calico, services, policy):
    """Where a bridge, a NIC or a route of the node covers addresses of pods, services or other nodes, packets to these end on the node itself.

    Compared with the networks that the policy names, and those of Calico's pools and of services where the cluster was read; a
    container tool's bridge is also compared with the node's own networks.
    """
    cluster = _of_cluster(policy, calico, services)
    found = [
        fail("the cluster's %s %s overlap its %s %s" % (kind, one, other_kind, other), network=str(one), overlaps=str(other))
        for kind, one, other_kind, other in _overlapping_policy(policy)
    ]
    containers = {bridge["bridge"] for bridge in stray_bridges({"present": present, "routes": routes, "declared": declared, "cni": cni})}
    for link, network in _networks(present["links"]):
        for kind, other in _foreign(link["name"] in containers, cluster):
            if _overlap(network, other):
                said = "%s on %s overlaps the %s %s" % (network, link["name"], kind, other)
                speak = fail if link["name"] in containers else _by_size(network, other)
                found.append(speak(said, network=str(network), link=link["name"], overlaps=str(other)))
        if link["name"] in containers:
            for own, mine in _networks(present["links"]):
                if own["name"] not in containers and _overlap(network, mine):
                    message = "%s on the bridge %s overlaps %s on %s" % (network, link["name"], mine, own["name"])
                    found.append(fail(message, network=str(network), link=link["name"], overlaps=str(mine)))
    found += [one for route in routes["main"] for one in _by_route(route, cluster)]
    if not found and not cluster:
        return skip("only bridges were compared: the policy names no networks of pods, services and nodes (nodecare_networks)")
    return found


def _of_cluster(policy, calico, services):
    """{kind: networks} of the policy; where it names none of a kind, those that the cluster itself has."""
    pools = [pool_network(str(one.get("cidr"))) for one in (calico or {}).get("pools") or () if not one.get("disabled")]
    own = {"pods": pools, "services": [pool_network(str(text)) for text in (services or {}).get("networks") or ()]}
    known = {kind: policy.networks.get(kind) or [one for one in own.get(kind, ()) if one] for kind in ("pods", "services", "nodes")}
    return {kind: networks for kind, networks in known.items() if networks}


def _by_size(network, other):
    """The cluster's routes are narrower than a NIC's network that is wider than theirs: that only loses the hosts in it."""
    return warn if network != other and network.supernet_of(other) else fail


def _overlapping_policy(policy):
    named = [(kind, network) for kind in ("nodes", "pods", "services") for network in policy.networks.get(kind, ())]
    return [
        (kind, one, other_kind, other)
        for at, (kind, one) in enumerate(named)
        for other_kind, other in named[at + 1 :]
        if kind != other_kind and _overlap(one, other)
    ]


def _networks(links):
    """(link, network) of every address that is not the loopback's or a pod network's; single addresses are no network."""
    for link in links:
        if not link.get("loopback") and not POD_NETWORK.match(link["name"]):
            for address in choosable(link):
                yield link, interface_of(address).network


def _foreign(leads_nowhere, cluster):
    """The cluster's networks that must not be on a link. The nodes' own is only wrong on a bridge that leads nowhere."""
    kinds = ("pods", "services", "nodes") if leads_nowhere else ("pods", "services")
    return [(kind, network) for kind in kinds for network in cluster.get(kind, ())]


def _overlap(one, other):
    return one.version == other.version and one.overlaps(other)


def _by_route(route, cluster):
    """Routes that somebody set on purpose; those of the kernel repeat an address, those of BGP and of pod networks are meant so."""
    if route["to"] == "default" or route.get("by") not in ("static", "dhcp", "ra") or any(POD_NETWORK.match(name) for name in route.get("links", [])):
        return
    network = network_of(route["to"])
    for kind in ("pods", "services"):
        for other in cluster.get(kind, ()):
            if _overlap(network, other):
                message = "the route to %s by %s overlaps the %s %s" % (network, ", ".join(route.get("links", [])) or "nothing", kind, other)
                yield warn(message, network=str(network), overlaps=str(other))


@rule("links.loopback", "The loopback link is not usable", needs="links.present", remedy=by_hand("ip link set lo up"))
def loopback(present, policy):
    """The kubelet, calico-node's own probes and etcd talk to 127.0.0.1; where the loopback is down they all fail at once."""
    lo = next((link for link in present["links"] if link.get("loopback")), None)
    if lo is None:
        return fail("there is no loopback link")
    if not lo.get("up"):
        return fail("%s is down" % lo["name"], link=lo["name"])
    if not any(held["ip"] == "127.0.0.1" for held in lo["addresses"]):
        return fail("%s does not hold 127.0.0.1" % lo["name"], by_hand("ip address add 127.0.0.1/8 dev lo"), link=lo["name"])
    return passed("%s is up and holds 127.0.0.1" % lo["name"])


# A pod network: the plugins that its configuration names, and the links that only it makes.
POD_NETWORKS = {
    "calico": ({"calico"}, r"cali[0-9a-f]{11}$|vxlan(-v6)?\.calico$|wireguard\.cali$|wg-v6\.cali$|bpf(in|out)\.cali$"),
    "flannel": ({"flannel"}, r"flannel"),
    "weave": ({"weave-net"}, r"weave$|datapath$|vethwe-|vxlan-6784$"),
    "cilium": ({"cilium-cni"}, r"cilium_"),
    "kube-router": ({"kube-router"}, r"kube-bridge$|kube-dummy-if$"),
    "antrea": ({"antrea"}, r"antrea-"),
    "ovn-kubernetes": ({"ovn-k8s-cni-overlay"}, r"ovn-k8s-"),
}
OF_THE_CLUSTER = r"kube-ipvs|nodelocaldns"  # kube-proxy's and node-local-dns's
COMPANIONS = {"loopback", "portmap", "bandwidth", "tuning", "host-local", "firewall", "dnsname", "sbr"} | MULTUS


@rule("links.cni_leftovers", "An earlier pod network left something behind", severity="warning", needs=("links.present", "links.cni"))
def cni_leftovers(present, cni, policy):
    """Neither kubeadm reset nor a change of the pod network removes the links and configuration files of the earlier one.

    The runtime takes the first configuration file by name, so an old file may win over the new network's, and an old link
    may keep its routes and be taken for the node's address.
    """
    if cni.get("unread"):
        return None
    found = [one for directory in cni["directories"] for one in _files(directory, cni["joined"])]
    current = {name for directory in cni["directories"] for name in _current(directory)} if cni["joined"] else set()
    left = {}
    for link in present["links"]:
        for name, (_types, pattern) in POD_NETWORKS.items():
            if re.match(pattern, link["name"]) and name not in current:
                left.setdefault(name, []).append(link["name"])
        if re.match(OF_THE_CLUSTER, link["name"]) and not cni["joined"]:
            left.setdefault("an earlier cluster", []).append(link["name"])
        if re.match(r"(cni0|cbr0)$", link["name"]) and not _needs_bridge(cni):
            left.setdefault("an earlier pod network", []).append(link["name"])
        if link["name"] == "tunl0" and choosable(link) and not current & {"calico", "kube-router"}:
            left.setdefault("calico", []).append("tunl0")
    pods = present["left_out"]["kinds"].get("cali", 0)
    if pods and "calico" not in current:
        left.setdefault("calico", []).append("%d cali… links" % pods)
    return found + [_left_links(name, names, cni, present["links"]) for name, names in left.items()]


def _left_links(name, names, cni, links):
    held = [address for link in links if link["name"] in names for address in choosable(link)]
    now = "this node has not joined a cluster" if not cni["joined"] else "the configuration names another network"
    message = "%s of %s is still there (%s)%s" % (
        ", ".join(names[:5]),
        name,
        ", ".join(held[:3]) or "no address",
        "" if name.startswith("an ") else ", but " + now,
    )
    remedy = "ip -brief link show type veth  # delete each cali… link, or reboot" if " " in names[0] else "ip link delete %(link)s"
    return warn(message, by_hand(remedy), link=names[0], links=names[:10], of=name)


def _current(directory):
    """The pod networks that the runtime's choice of file stands for."""
    taken = first(directory)
    if taken is None:
        return set()
    if taken.get("delegate") and not named(directory):
        return set(POD_NETWORKS)  # only multus knows
    confs = directory["files"] if MULTUS & set(taken["types"]) else [taken]  # any of them may be a second network's
    found = {name for conf in confs for name, (types, _links) in POD_NETWORKS.items() if types & set(conf.get("types", []))}
    if any("calico" in conf.get("types", []) and "host-local" in conf.get("ipam", []) for conf in confs):
        found.add("flannel")  # canal: calico's policy on flannel's network
    if any("kube-bridge" in conf.get("bridges", []) for conf in confs):
        found.add("kube-router")
    return found


def _needs_bridge(cni):
    """Whether the configuration that is taken makes cni0 or cbr0 itself."""
    taken = [first(directory) for directory in cni["directories"]] if cni["joined"] else []
    return any(conf and ({"bridge", "flannel"} | MULTUS) & set(conf["types"]) for conf in taken)


def _files(directory, joined):
    """Files that get in each other's way, or in that of the network to come."""
    broken = [conf["file"] for conf in directory["files"] if conf.get("broken")]
    ours = [conf for conf in directory["files"] if not conf.get("broken") and _is_pod_network(conf)]
    where = directory["path"]
    found = [warn("%s/%s is no CNI configuration" % (where, name), file="%s/%s" % (where, name)) for name in broken]
    if not joined:
        return found + [
            warn(
                "%s/%s (%s) is there, but this node has not joined a cluster" % (where, conf["file"], conf["name"]),
                _set_aside(),
                file="%s/%s" % (where, conf["file"]),
            )
            for conf in ours
        ]
    taken = first(directory)
    for conf in ours:
        if conf is not taken and not MULTUS & set(taken["types"]):
            found.append(
                warn(
                    "%s/%s (%s) lies beside %s (%s), which the runtime takes because it comes first by name"
                    % (where, conf["file"], conf["name"], taken["file"], taken["name"]),
                    _set_aside(),
                    file="%s/%s" % (where, conf["file"]),
                    taken=taken["file"],
                )
            )
    return found


def _is_pod_network(conf):
    """Configurations that packages of runtimes bring, and those of podman and nerdctl, are no pod network of a cluster."""
    return not re.search(r"podman|nerdctl|crio|containerd-net|loopback", conf["file"]) and bool(set(conf["types"]) - COMPANIONS)


def _set_aside():
    return by_hand("mv %(file)s %(file)s.disabled")


@rule("links.ipam_leftovers", "Addresses of an earlier pod network are still kept", needs=("links.ipam", "links.cni"))
def ipam_leftovers(ipam, cni, policy):
    """Where /var/lib/cni/networks/k8s-pod-network exists, calico-node's init container upgrade-ipam migrates it before anything else.

    For the migration it locks the datastore of the whole cluster, and on any error it tries again for ever: calico-node stays
    at Init:0/3. The directory is often left by an earlier network. What other networks left only wastes addresses.
    """
    if cni.get("unread"):
        return None
    found = []
    for network in ipam:
        where = "/var/lib/cni/networks/" + network["network"]
        users = [
            conf
            for directory in cni["directories"]
            for conf in directory["files"]
            if conf.get("name") == network["network"] and ("host-local" in conf.get("ipam", []) or "flannel" in conf.get("types", []))
        ]
        evidence = {"path": where, **network}
        kept = "%d addresses (%s)" % (network["entries"], ", ".join(network["examples"])) if network["entries"] else "no address"
        if users:
            found.append(passed("%s is in use by %s" % (where, users[0]["file"]), **evidence))
        elif network["network"] != "k8s-pod-network":
            if network["entries"] and not re.search("podman|nerdctl|crio", network["network"]):
                found.append(warn("%s keeps %s, but no CNI configuration names this network" % (where, kept), **evidence))
        elif network["routed"]:
            message = "%s keeps %s, and %d of them still have a route: upgrade-ipam will migrate them, with the whole cluster's datastore locked" % (
                where,
                kept,
                network["routed"],
            )
            found.append(fail(message, by_hand("ip route show | grep -F /32  # drain the node before %(path)s is moved away", disruptive=True), **evidence))
        else:
            verdict = fail if network["entries"] else warn
            found.append(
                verdict("%s keeps %s, no route leads to any: upgrade-ipam will try to migrate it, and may never end" % (where, kept), _move_away(), **evidence)
            )
    return found


def _move_away():
    return repaired_by("repair_ipam", "mv %(path)s /var/lib/cni/$(basename %(path)s).left-over")


# What Calico makes: an example of each name, with its type, kind and driver as systemd-networkd matches them.
OF_CALICO = {
    "cali0123456789a": ({"ether"}, "veth", {"veth"}),
    "tunl0": ({"tunnel", "ipip"}, "ipip", {"ipip"}),
    "vxlan.calico": ({"vxlan", "ether"}, "vxlan", {"vxlan"}),
}


@rule("links.manager_touches_calico", "Another program manages Calico's links", severity="warning", needs="links.managers")
def manager_touches_calico(managers, policy):
    """NetworkManager and systemd-networkd remove addresses and routes that they did not set from the links that they manage.

    Calico's documentation asks that they leave its links alone.
    """
    found = []
    manager, networkd = managers["networkmanager"], managers["networkd"]
    if manager["state"] in RUNNING:
        touched = [name for name in OF_CALICO if not _left_alone(name, manager)]
        if touched:
            said = "unmanaged-devices comes from %s" % manager["said_in"] if manager["said_in"] else "no file sets unmanaged-devices"
            message = "NetworkManager is not told to leave %s alone (%s)" % (", ".join(map(_pattern, touched)), said)
            found.append(warn(message, by_hand(NETWORK_MANAGER), touches=touched))
    if networkd["state"] in RUNNING:
        for name in OF_CALICO:
            network = next((one for one in networkd["networks"] if _network_matches(one["match"], name)), None)
            if network and not network.get("unmanaged"):
                match = " ".join("%s=%s" % item for item in sorted(network["match"].items())) or "everything"
                message = "systemd-networkd manages %s: %s matches %s" % (_pattern(name), network["file"], match)
                found.append(warn(message, by_hand(NETWORKD), file=network["file"], touches=name))
    if managers["cloud_setup"]:
        message = "%s is enabled: it adds rules that lead pods' packets past Calico's routes" % ", ".join(managers["cloud_setup"])
        found.append(warn(message, by_hand("systemctl disable --now %(units)s"), units=" ".join(managers["cloud_setup"])))
    return found


RUNNING = ("active", "reloading")
NETWORK_MANAGER = (
    "printf '[keyfile]\\nunmanaged-devices+=interface-name:cali*;interface-name:tunl*;interface-name:vxlan.calico;interface-name:vxlan-v6.calico;"
    "interface-name:wireguard.cali;interface-name:wg-v6.cali\\n' > /etc/NetworkManager/conf.d/zz-calico.conf && systemctl reload NetworkManager"
)
NETWORKD = (
    "printf '[Match]\\nName=cali* tunl* vxlan.calico vxlan-v6.calico wireguard.cali wg-v6.cali\\n[Link]\\nUnmanaged=yes\\n'"
    " > /etc/systemd/network/00-calico.network && networkctl reload"
)


def _pattern(name):
    return "cali*" if name.startswith("cali") else name


def _left_alone(name, manager):
    """Whether NetworkManager is told to ignore a link, by its list, by a device section or by the rules that come with it."""
    kind = OF_CALICO[name][1]
    if kind == "veth" and manager["leaves_veth"]:
        return True
    if _listed(manager["unmanaged"], name, kind):
        return True
    sections = [one for one in manager["devices"] if _listed([part for part in re.split(r"[;,]\s*", one["match-device"]) if part], name, kind)]
    return any(one["managed"].lower() in ("0", "false", "no", "off") for one in sections)


def _listed(devices, name, kind):
    """NetworkManager's device list: any entry may match, unless an ``except:`` does."""
    found = False
    for device in devices:
        wanted = device[7:] if device.startswith("except:") else device
        if _device_matches(wanted.strip(), name, kind):
            if device.startswith("except:"):
                return False
            found = True
    return found


def _device_matches(wanted, name, kind):
    sort, colon, value = wanted.partition(":")
    if wanted == "*":
        return True
    if not colon:
        return wanted == name
    if sort == "interface-name":
        return value[1:] == name if value.startswith("=") else fnmatch.fnmatchcase(name, value.lstrip("~"))
    if sort == "type":
        return value in {"veth": ("veth", "ethernet"), "ipip": ("ip-tunnel",), "vxlan": ("vxlan",)}[kind]
    return sort == "driver" and fnmatch.fnmatchcase(kind, value)


def _network_matches(match, name):
    """Whether a .network file takes one of Calico's links. One that asks for a MAC address, a path or the like does not."""
    types, kind, drivers = OF_CALICO[name]
    have = {"Name": {name}, "OriginalName": {name}, "Type": types, "Kind": {kind}, "Driver": drivers}
    asked = {key: value for key, value in match.items() if value}
    return bool(asked) and all(key in have and _globs(value, have[key]) for key, value in asked.items())


def _globs(patterns, values):
    """systemd's lists: any pattern may match; a ``!`` before the first turns the whole list round."""
    turned = patterns.startswith("!")
    hit = any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns.lstrip("!").split() for value in values)
    return hit is not turned
