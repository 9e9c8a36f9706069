# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which address a node should have for Calico: that by which Kubernetes knows it, or will know it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from .._addresses import network_of
from .._cluster import is_ready
from .._links import POD_NETWORK
from .._same import Same
from ._host import is_global_unicast, parsed_either
from ._reach import default_source

CALICOS, NODES = "the network that Calico is to use", "the nodes' network"


class Wanted(NamedTuple):
    """``ips`` are all that are right, the first is meant. ``sure`` where somebody has said so, ``why`` where there is none."""

    ips: tuple
    by: str
    sure: bool = True
    why: str = ""

    def has(self, address):
        """Whether an address, with or without its mask, is right."""
        found = parsed_either(address or "")
        return bool(found) and found[0] in self.ips

    @property
    def by_policy(self):
        return self.by.startswith((CALICOS, NODES))

    @property
    def ip(self):
        return self.ips[0] if self.ips else None


def wanted(host, family, node=None, nodes=(), networks=(), named=(), kubelet_ip="", own_names=()):
    """The first that is known of: the network that Calico is said to use, the Node's InternalIP, the nodes' network, what the kubelet will take.

    ``named`` are the networks for Calico alone, ``networks`` those of the nodes, ``own_names`` the addresses of the host's
    own name in its /etc/hosts.
    """
    named, networks = (tuple(one for one in some or () if one.version == family) for some in (named, networks))
    if named:
        return _inside(host, family, named, CALICOS)
    internal = [ip for ip in map(_ip, (node or {}).get("internal_ips") or ()) if ip and ip.version == family]
    if internal:
        twins = [name for name in _living(Same((nodes,))).get(str(internal[0]), ()) if name != node["name"]]
        if not twins:
            return Wanted(tuple(internal), "its InternalIP")
        if not networks:
            return Wanted((), "its InternalIP", why="its InternalIP %s is also that of %s" % (internal[0], ", ".join(twins[:3])))
    if networks:
        return _inside(host, family, networks, NODES)
    return of_kubelet(host, family, kubelet_ip, own_names)


@lru_cache(maxsize=4)
def _living(same):
    """{InternalIP: names} of the Nodes, but for those that are NotReady: such a one may be left over from the very machine that is asked about."""
    found = {}
    for node in same[0] or ():
        for ip in (node.get("internal_ips") or ()) if is_ready(node) is not False else ():
            found.setdefault(ip, []).append(node["name"])
    return found


def of_kubelet(host, family, kubelet_ip="", own_names=()):
    """The InternalIP that a kubelet finds for its node: as it is told, by the host's name, or by the default route."""
    told = [ip for ip in map(_ip, str(kubelet_ip or "").split(",")) if ip and ip.version == family and not ip.is_unspecified]
    if told:
        return Wanted((told[0],), "the kubelet's --node-ip")
    named = [ip for ip in map(_ip, own_names or ()) if ip and ip.version == family and is_global_unicast(ip) and host.holder(ip)[1]]
    if named:
        return Wanted((named[0],), "its own name in /etc/hosts", sure=False)
    leaving = default_source(host, family)
    if leaving:
        return Wanted((leaving,), "the default route", sure=False)
    return Wanted((), "", sure=False, why="neither a Node, the policy's networks nor a default route tells which IPv%d address it should have" % family)


def _inside(host, family, networks, by):
    """Addresses of the node inside these networks; one that may move to another node, as keepalived and kube-vip add them, is not the node's."""
    shown = ", ".join(map(str, networks))
    links = [link for link in host.links if not POD_NETWORK.match(link.name)]
    held = [(link, one) for link in links for one in link.of(family) if is_global_unicast(one.ip) and any(one.ip in network for network in networks)]
    own = [one for link, one in held if not is_virtual(link, one)]
    ordered = sorted(own, key=lambda one: one.secondary)
    why = "" if ordered else "no link of this node holds an address of its own inside %s" % shown
    return Wanted(tuple(one.ip for one in ordered), "%s %s" % (by, shown), why=why)


def is_virtual(link, held):
    """A single address inside another's network on the same link, or on the loopback."""
    if held.prefix != held.ip.max_prefixlen:
        return False
    wider = [one for one in link.of(held.ip.version) if one.prefix < held.prefix]
    return link.name == "lo" or any(held.ip in network_of("%s/%d" % (one.ip, one.prefix)) for one in wider)


def _ip(text):
    found = parsed_either(str(text or "").strip())
    return found[0] if found else None
