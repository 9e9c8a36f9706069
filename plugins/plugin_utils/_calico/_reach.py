# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. From which of its addresses a node would send to a destination: what can-reach asks the kernel by connecting a UDP socket."""

from __future__ import annotations

import ipaddress

from ._host import parsed_ip


def reach(destination, family, host, reached=None):
    """(source address, Go's error, why it cannot be told), of which one is given.

    The node's own answer (``reached``) is the truth where it was asked. Without it the main routing table answers, which is
    what counts as long as the node has no policy routing.
    """
    if reached is not None:
        return parsed_ip(str(reached)), "", ""
    target = parsed_ip(destination)
    if destination and target is None:
        return None, "", "what %s resolves to on the node" % destination
    if not destination or (target.is_unspecified and family <= target.version):
        return _itself(destination, family, host)
    if target.version != family:
        return None, "dial udp%d: address %s: no suitable address found" % (family, target), ""
    return (_own(target, host), "", "") if host.holder(target)[1] else _routed(target, host)


def _itself(destination, family, host):
    """Nowhere is the node itself, as long as its loopback is up."""
    loopback = ipaddress.ip_address("127.0.0.1" if family == 4 else "::1")
    if host.holder(loopback)[1]:
        return loopback, "", ""
    where = _with_port(ipaddress.ip_address("0.0.0.0" if family == 4 else "::")) if destination else ":80"
    return _no_way(family, where, host, "network is unreachable")


def _routed(target, host):
    route = _best(target, host)
    if route is None or route.get("type"):
        return _no_way(target.version, _with_port(target), host, _refusal(route))
    return _source(target, route, host)


def _no_way(family, where, host, refusal):
    """For IPv6 the kernel looks for an address to send from before it minds that there is no way."""
    if family == 6 and not any(link.up and any(one.usable for one in link.of(6)) for link in host.links):
        if host.others:
            return None, "", "whether any link has an IPv6 address"
        refusal = "cannot assign requested address"
    return None, "dial udp%d %s: connect: %s" % (family, where, refusal), ""


def _own(target, host):
    """An address of the node's own is reached from itself, a secondary one from its primary."""
    link, held = host.holder(target)
    if held and held.secondary and target.version == 4:
        network = ipaddress.ip_network("%s/%d" % (target, held.prefix), strict=False)
        return next((one.ip for one in link.held if one.ip in network and one.prefix == held.prefix), target)
    return target


def _best(target, host):
    """The longest prefix wins, then the lowest metric."""
    fitting = [route for route in host.routes if route["family"] == target.version and target in _to(route)]
    return min(fitting, key=lambda route: (-_to(route).prefixlen, route.get("metric", 0)), default=None)


def _to(route):
    everything = "0.0.0.0/0" if route["family"] == 4 else "::/0"
    return ipaddress.ip_network(everything if route["to"] == "default" else route["to"], strict=False)


def _source(target, route, host):
    if route.get("source"):
        return ipaddress.ip_address(route["source"]), "", ""
    names = route.get("links") or []
    link = next((one for one in host.links if [one.name] == names), None)
    if link is None:
        return None, "", "which of several ways to %s the kernel takes" % target
    widest = 253 if route.get("near") else 0
    usable = [one for one in link.of(target.version) if not one.secondary and one.scope <= widest]
    hop = ipaddress.ip_address(route["via"]) if route.get("via") else None
    if target.version == 6 and len([one for one in usable if not one.ip.is_link_local]) != 1:
        return None, "", "which of several IPv6 addresses the kernel sends from"
    near = [one for one in usable if hop and hop in ipaddress.ip_network("%s/%d" % (one.ip, one.prefix), strict=False)]
    if near or usable:
        return [one for one in near or usable if target.version == 4 or not one.ip.is_link_local][0].ip, "", ""
    return None, "", "from which link's address packets to %s leave, since %s has none" % (target, link.name)


def _refusal(route):
    kind = (route or {}).get("type")
    return {"blackhole": "invalid argument", "prohibit": "permission denied", "unreachable": "no route to host"}.get(kind, "network is unreachable")


def _with_port(target):
    return "[%s]:80" % target if target.version == 6 else "%s:80" % target
