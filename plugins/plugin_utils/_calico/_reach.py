# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. From which of its addresses a node would send to a destination: what can-reach asks the kernel by connecting a UDP socket."""

from __future__ import annotations

from .._addresses import ip_of, network_of
from ._host import is_global_unicast, parsed_ip


def reach(destination, family, host, reached=None):
    """(source address, Go's error, why it cannot be told), of which one is given.

    The node's own answer (``reached``) is the truth where it was asked. Without it the main routing table answers, unless
    the node has rules that may lead such packets to another one.
    """
    if reached is not None:
        return parsed_ip(str(reached)), "", ""
    target = parsed_ip(destination)
    if destination and target is None:
        return None, "", "what %s resolves to on the node" % destination
    if not destination or (target.is_unspecified and family <= target.version):
        target = ip_of("127.0.0.1" if family == 4 else "::1")  # nowhere is the node itself
    if target.version != family:
        return None, "dial udp%d: address %s: no suitable address found" % (family, target), ""
    if host.holder(target)[1]:
        return _own(target, host), "", ""
    return (None, "", "how a node without its loopback reaches itself") if target.is_loopback else _routed(target, host)


def default_source(host, family):
    """The address from which packets leave by the default route, or None."""
    everywhere = [route for route in host.routes if route["family"] == family and route["to"] == "default" and not route.get("type")]
    route = min(everywhere, key=lambda route: route.get("metric", 0), default=None)
    return _source(parsed_ip(route["via"]) if route.get("via") else ip_of("0.0.0.0"), route, host)[0] if route else None


def _routed(target, host):
    """Where there is no way, Go says so in the kernel's words; for IPv6 these may also be that there is no address to send from."""
    if any(rule["family"] == target.version and _may_lead(rule, target) for rule in host.rules):
        return None, "", "which way packets to %s take, since the node has rules beside its main routing table (ip rule)" % target
    route = _best(target, host)
    if route is None or route.get("type"):
        return None, "dial udp%d %s: connect: %s" % (target.version, _with_port(target), _refusal(route)), ""
    return _source(target, route, host)


def _may_lead(rule, target):
    """Whether a rule may hold for the packets of a program that has chosen neither an address nor a link nor a mark."""
    if rule.get("not"):
        return True
    elsewhere = rule.get("to") and target not in network_of(rule["to"])
    return not (elsewhere or rule.get("from") or rule.get("mark") or rule.get("out") or rule.get("vrf") or rule.get("in", "lo") != "lo")


def _own(target, host):
    """An address of the node's own is reached from itself, a secondary one from its primary."""
    link, held = host.holder(target)
    if held and held.secondary and target.version == 4:
        network = network_of("%s/%d" % (target, held.prefix))
        return next((one.ip for one in link.held if one.ip in network and one.prefix == held.prefix), target)
    return target


def _best(target, host):
    """The longest prefix wins, then the lowest metric."""
    fitting = [route for route in host.routes if route["family"] == target.version and target in _to(route)]
    return min(fitting, key=lambda route: (-_to(route).prefixlen, route.get("metric", 0)), default=None)


def _to(route):
    everything = "0.0.0.0/0" if route["family"] == 4 else "::/0"
    return network_of(everything if route["to"] == "default" else route["to"])


def _source(target, route, host):
    if route.get("source"):
        return ip_of(route["source"]), "", ""
    if target.version == 6:
        return _only_one(host)
    names = route.get("links") or []
    link = next((one for one in host.links if [one.name] == names), None)
    if link is None:
        return None, "", "which of several ways to %s the kernel takes" % target
    usable = [one.ip for one in link.of(4) if not one.secondary and one.scope <= (253 if route.get("near") else 0)]
    hop = ip_of(route["via"]) if route.get("via") else None
    near = [one.ip for one in link.of(4) if one.ip in usable and hop in network_of("%s/%d" % (one.ip, one.prefix))] if hop else []
    if near or usable:
        return (near or usable)[0], "", ""
    return None, "", "from which link's address packets to %s leave, since %s has none" % (target, link.name)


def _only_one(host):
    """Among several IPv6 addresses the kernel chooses by rules that ask for more than the facts have."""
    usable = [one.ip for link in host.links for one in link.of(6) if is_global_unicast(one.ip)]
    return (usable[0], "", "") if len(usable) == 1 else (None, "", "which of several IPv6 addresses the kernel sends from")


def _refusal(route):
    kind = (route or {}).get("type")
    return {"blackhole": "invalid argument", "prohibit": "permission denied", "unreachable": "no route to host"}.get(kind, "network is unreachable")


def _with_port(target):
    return "[%s]:80" % target if target.version == 6 else "%s:80" % target
