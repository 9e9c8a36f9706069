# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's IP pools against the other networks of the cluster."""

from __future__ import annotations

import ipaddress

from ... import _cluster
from ..._calico._host import network
from .._rule import by_hand, fail, of_cluster, passed, skip, warn

NEW_POOL = by_hand(
    "add an IPPool with a network of its own, disable %(pool)s, and have the pods made again one node after the other; only then delete it", disruptive=True
)


@of_cluster(
    "calico.overlap",
    "An IP pool overlaps another network of the cluster",
    needs="cluster.calico",
    uses=("cluster.nodes", "cluster.services"),
    remedy=NEW_POOL,
)
def overlap(calico, nodes, services, policy):
    """Pods get their addresses from the pools. Where a pool covers nodes or services, packets to these end at a pod or nowhere, and
    the default pool, 192.168.0.0/16, often does.

    What is on the nodes' links and in their routes is compared with the pools by links.overlap.
    """
    pools = [(str(one.get("name")), network(str(one.get("cidr")))) for one in calico.get("pools") or [] if not one.get("disabled")]
    pools = [(name, cidr) for name, cidr in pools if cidr]
    if not pools:
        return skip("Calico has no IP pool in use")
    found = [one for name, cidr in pools for one in (*_services(name, cidr, services), *_nodes(name, cidr, nodes or []))]
    for at, (name, cidr) in enumerate(pools):
        for other, its in pools[at + 1 :]:
            if _overlap(cidr, its):
                found.append(fail("the pools %s (%s) and %s (%s) overlap" % (name, cidr, other, its), pool=name, network=str(cidr), overlaps=str(its)))
    return found or passed("%s overlap neither each other nor nodes nor services" % ", ".join(str(cidr) for _name, cidr in pools))


def _services(name, cidr, services):
    for text in (services or {}).get("networks") or ():
        its = network(str(text))
        if its and _overlap(cidr, its):
            yield fail("the pool %s (%s) overlaps the services' network %s" % (name, cidr, its), pool=name, network=str(cidr), overlaps=str(its))


def _nodes(name, cidr, nodes):
    """A node inside a pool is lost to pods; a node's network around a pool only hides what else is there."""
    inside = [(node["name"], ip) for node in nodes for ip in (*_cluster.internal(node), *_cluster.registered(node).values()) if _holds(cidr, ip)]
    if inside:
        names = list(dict.fromkeys(node for node, _ip in inside))
        message = "the pool %s (%s) covers the addresses of nodes: %s of %s" % (name, cidr, inside[0][1], _cluster.listed(names))
        yield fail(message, pool=name, network=str(cidr), overlaps=str(inside[0][1]), nodes=names[:10])
        return
    around = [(node["name"], its) for node in nodes for its in _networks(node) if _overlap(cidr, its)]
    if around:
        names = list(dict.fromkeys(node for node, _its in around))
        message = "the pool %s (%s) lies inside the network %s of %s: pods may get addresses that hosts there have"
        message %= (name, cidr, around[0][1], _cluster.listed(names))
        yield warn(message, pool=name, network=str(cidr), overlaps=str(around[0][1]), nodes=names[:10])


def _networks(node):
    """The networks of the addresses that Calico has registered with their masks."""
    held = node.get("calico") or {}
    for text in (held.get("ipv4"), held.get("ipv6")):
        if network(str(text)):
            yield network(str(text))


def _holds(cidr, ip):
    return ip.version == cidr.version and ip in cidr


def _overlap(one, other):
    return isinstance(other, (ipaddress.IPv4Network, ipaddress.IPv6Network)) and one.version == other.version and one.overlaps(other)
