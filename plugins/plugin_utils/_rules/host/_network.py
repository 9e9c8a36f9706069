# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Ports, packet filters and name servers."""

from __future__ import annotations

import re

from ... import _ports
from .._rule import by_hand, fail, passed, rule, unknown, warn

KUBERNETES = r"kube|hyperkube|k3s|rke2|k0s"
PORTS = {  # port: (who needs it, names of processes that may hold it, how bad another is)
    10250: ("the kubelet", KUBERNETES, fail),
    10248: ("the kubelet's health check", KUBERNETES, fail),
    10249: ("kube-proxy's metrics", KUBERNETES, warn),
    10256: ("kube-proxy's health check", KUBERNETES + "|cilium", warn),
    _ports.HEALTH: ("Calico's health check", "calico|felix", fail),
    _ports.BGP: ("Calico's BGP", "bird|calico|gobgp", warn),
    6443: ("the API server", KUBERNETES, fail),
    2379: ("etcd", "etcd|k3s|rke2|k0s", fail),
    2380: ("etcd", "etcd|k3s|rke2|k0s", fail),
    10257: ("the controller manager", KUBERNETES, fail),
    10259: ("the scheduler", KUBERNETES, fail),
}
OF_CONTROL_PLANE = {6443: "kube-apiserver", 2379: "etcd", 2380: "etcd", 10257: "kube-controller-manager", 10259: "kube-scheduler"}


@rule(
    "host.ports",
    "A port that the node needs is taken",
    needs=("host.ports", "host.role"),
    uses=("cluster.calico", "cluster.node", "calico.processes"),
    remedy=by_hand("ss -ltnp 'sport = :%(port)s'; stop or move that program"),
)
def ports(held, role, calico, node, processes, policy):
    """The kubelet, kube-proxy and Calico listen on fixed ports. Another program there keeps them from starting, or answers
    health checks in their place. The control plane's ports only matter on nodes that have its manifests, and Calico's 179 and 9099
    only where BGPConfiguration and calico-node's environment give it no others.
    """
    verdicts, elsewhere = [], _elsewhere(calico or {"env": (processes or {}).get("env")}, (node or {}).get("name"))
    for one in held:
        port = one["port"]
        if OF_CONTROL_PLANE.get(port) not in (None, *role["manifests"]) or port in elsewhere:
            continue
        what, expected, speak = PORTS[port]
        if "process" not in one:
            verdicts.append(unknown("cannot tell who listens on port %d, which %s needs (read without root?)" % (port, what), port=port))
        elif not re.search(expected, one["process"]):
            verdicts.append(speak("port %d, which %s needs, is taken by %s (process %d)" % (port, what, one["process"], one["pid"]), **one))
    return verdicts


def _elsewhere(calico, node):
    """The usual ports that Calico is told not to use."""
    used = {_ports.BGP: _ports.bgp(calico, node), _ports.HEALTH: _ports.health(calico)}
    return {usual for usual, port in used.items() if port != usual}


@rule("host.iptables_mix", "Two kinds of iptables are in use at once", severity="warning", needs="host.iptables")
def iptables_mix(facts, policy):
    """iptables-legacy and iptables-nft keep separate rules, and a packet must pass both. Kubernetes and Calico look for the
    kind in use; with rules in both they may pick different ones, and services stop working on this node alone.
    """
    if not facts["legacy_tables"]:
        return passed("only one kind is in use" + (" (%s)" % facts["default"] if facts["default"] else ""))
    if "legacy_rules" not in facts or "nft_tables" not in facts:
        if facts["default"] == "nft":
            return unknown(
                "the kernel holds tables of iptables-legacy beside the default iptables-nft, but iptables-legacy-save and nft are not both there to list them"
            )
        return None
    if not facts["legacy_rules"] or not facts["nft_tables"]:
        return None
    ours = [kind for kind in ("legacy", "nft") if facts[kind + "_ours"]]
    speak = fail if len(ours) == 2 else warn
    said = "iptables-legacy holds %d rules, and iptables-nft has the tables %s" % (facts["legacy_rules"], ", ".join(facts["nft_tables"]))
    if ours:
        said += "; chains of Kubernetes or Calico are in %s" % " and ".join(ours)
    remedy = by_hand(
        "update-alternatives --set iptables /usr/sbin/iptables-nft, on all nodes alike; then reboot, which flushes the other kind", disruptive=True, reboot=True
    )
    return speak(said, remedy, legacy_rules=facts["legacy_rules"], nft_tables=facts["nft_tables"], ours=ours)


@rule("host.firewall", "A firewall manager runs", severity="warning", needs="host.firewalls")
def firewall(running, policy):
    """Firewall managers close ports that nodes need and flush or reorder the rules of Calico and kube-proxy when they
    reload. Calico's documentation asks to switch them off and use its own policies for hosts.
    """
    said = {"firewalld.service": "firewall-cmd --reload flushes the rules of others", "ufw.service": "it drops what is forwarded unless told otherwise"}
    return [
        warn("%s runs: %s" % (one, said[one]), by_hand("systemctl disable --now %(unit)s, or open the ports of Kubernetes and Calico in it"), unit=one)
        for one in running
        if one in said
    ]


@rule("host.resolv", "Pods would get a name server that they cannot use", severity="warning", needs="host.resolv")
def resolv(facts, policy):
    """The kubelet copies the node's resolver settings into pods. A name server on the node's own loopback is there the pod's
    own, so CoreDNS would ask itself for ever. kubeadm handles the case of systemd-resolved.
    """
    path, servers = facts["path"], facts["nameservers"]
    if not servers:
        why = "has no name server" if facts["there"] else "does not exist"
        return warn("%s %s" % (path, why), by_hand("enter the network's name servers in %(path)s"), path=path)
    loopback = [one for one in servers if one.startswith("127.") or one == "::1"]
    if loopback and (facts["configured"] or not facts["resolved"]):
        speak = fail if facts["configured"] else warn
        remedy = by_hand("name a file with real name servers as resolvConf in /var/lib/kubelet/config.yaml, such as /run/systemd/resolve/resolv.conf")
        return speak("%s names %s, which in a pod is the pod itself: CoreDNS would ask itself" % (path, loopback[0]), remedy, path=path, nameserver=loopback[0])
    if len(servers) > 3:
        return warn("%s names %d name servers; pods get the first 3" % (path, len(servers)), by_hand("keep 3 in %(path)s"), path=path, nameservers=servers)
    return None
