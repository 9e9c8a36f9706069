# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Felix's packet filter rules: whom they turn away, and whether they are where the others' are."""

from __future__ import annotations

from ... import _ports
from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, skip, unknown, warn
from ._programs import absent

FOREIGN = threshold("calico_foreign_packets", 10, "Packets of tunnels from unknown hosts from which on they are reported; a few come while a node joins.")
KINDS = {"legacy": "iptables-legacy", "nft": "iptables-nft", "tables": "nftables"}
PROTOCOLS = {"IPIP": "proto 4"}  # of VXLAN it is a port


@rule(
    "calico.foreign_tunnels",
    "Tunnelled packets come from hosts that Calico does not know",
    severity="warning",
    needs=("calico.signs", "calico.filters", "calico.processes"),
    uses=("links.cni", "cluster.calico"),
    remedy=by_hand("timeout 20 tcpdump -ni any -c 20 %(filter)s  # a source that is no node's registered address: see calico.registered_wrong_address"),
)
def foreign_tunnels(signs, filters, processes, cni, calico, policy):
    """Felix drops tunnelled packets from every address that no node has registered.

    So they come from a node that registered another address than it sends from, whose pods nobody hears, or from a node of
    another cluster.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    read = {kind: one for kind, one in filters.items() if one["state"] == "answered"}
    dropped = {}
    for one in read.values():
        for what, count in one["foreign"].items():
            dropped[what] = dropped.get(what, 0) + count
    many = {what: count for what, count in dropped.items() if count >= policy[FOREIGN]}
    if many:
        what = max(many, key=many.get)
        said = " and ".join("%d %s packets" % (count, kind) for kind, count in many.items())
        vxlan = _ports.of_felix(calico or {"env": processes["env"], "felix": {}}, _ports.VXLAN)
        by = PROTOCOLS.get(what, "udp port %d" % vxlan if vxlan else "udp")
        return warn("%s from hosts that no node's registered address names were dropped" % said, packets=many, filter=by)
    if len(read) < len(filters):
        return unknown("cannot tell: %s could not be listed" % " and ".join(KINDS[kind] for kind in filters if kind not in read))
    if not any(one["calico"] for one in read.values()):
        return skip("Felix has no rules in iptables or nftables here")
    return passed("they come from Calico's own nodes only", packets=dropped) if dropped else skip("Felix uses no tunnels here that it would guard")


@rule(
    "calico.iptables_mix",
    "Felix writes its rules where the others' are not",
    needs=("calico.signs", "calico.filters", "calico.processes"),
    uses="links.cni",
    remedy=by_hand(
        "set FELIX_IPTABLESBACKEND=%(wanted)s (iptablesBackend of FelixConfiguration), then drain and reboot %(node)s", disruptive=True, reboot=True
    ),
)
def iptables_mix(signs, filters, processes, cni, policy):
    """iptables-legacy and iptables-nft keep separate rules, and a packet must pass both. Felix looks for the kind that kube-proxy and
    the kubelet use; before 3.26 it only counted rules, and foreign ones misled it.

    Rules that Felix once wrote to the other kind stay there until a reboot, and go on dropping.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    if any(one["state"] != "answered" for one in filters.values()):
        return unknown("cannot tell: %s could not be listed" % " and ".join(KINDS[kind] for kind, one in filters.items() if one["state"] != "answered"))
    ours = [kind for kind, one in filters.items() if one["calico"]]
    others = [kind for kind, one in filters.items() if one["kube"] and kind != "tables"]
    told = (processes["env"] or {}).get("FELIX_IPTABLESBACKEND")
    evidence = {"calico": ours, "kubernetes": others, "told": told, "wanted": {"nft": "NFT", "legacy": "Legacy"}.get((others or ours or ["nft"])[0])}
    if not ours:
        return skip("Felix has no rules in iptables or nftables here")
    if len(ours) > 1:
        return fail("Felix's chains are in %s, and a packet must pass both" % " and in ".join(KINDS[kind] for kind in ours), **evidence)
    if others and ours[0] not in others and ours[0] != "tables":
        told_so = " (it is told to: FELIX_IPTABLESBACKEND=%s)" % told if told else ""
        return fail("Felix's chains are in %s%s, those of Kubernetes in %s" % (KINDS[ours[0]], told_so, KINDS[others[0]]), **evidence)
    return passed("all chains are in %s" % KINDS[ours[0]], **evidence)
