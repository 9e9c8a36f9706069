# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A node's links as Go sees them: its texts for addresses, and which of them it calls global unicast."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._addresses import ip_of, network_of, once
from ._versions import PEERS_HAVE_NO_MASK


class Held(NamedTuple):
    ip: object
    prefix: int
    peer: bool = False
    secondary: bool = False
    scope: int = 0

    def text(self, version):
        """Newer Calico asks the kernel through another library, which leaves the mask to the peer of a point-to-point link."""
        full = self.peer and version >= PEERS_HAVE_NO_MASK
        return "%s/%d" % (self.ip, self.ip.max_prefixlen if full else self.prefix)


class Link(NamedTuple):
    name: str
    held: tuple
    virtual: bool = False
    up: bool = False
    cut: bool = False

    def of(self, family):
        return [one for one in self.held if one.ip.version == family]


class Host(NamedTuple):
    """``links`` are in the order of the kernel's dump; ``others`` are names of links without an address that the facts leave out.

    ``rules`` are those of `ip rule` beside the usual.
    """

    links: tuple
    routes: tuple = ()
    others: tuple = ()
    unread: str = ""
    rules: tuple = ()

    def backwards(self):
        """The order in which Calico goes through the links."""
        return tuple(reversed(self.links))

    def holder(self, ip):
        """(link, address) that holds this IP, the first in Calico's order."""
        return next(((link, one) for link in self.backwards() for one in link.held if one.ip == ip), (None, None))


def host(facts, problems=()):
    """The part ``links`` of a node's facts, and what the probe says that it could not read of them."""
    present = facts.get("present") or {}
    links = tuple(_link(link) for link in present.get("links") or [])
    left_out = present.get("left_out") or {}
    unread = "" if links else "the links of the node were not read"
    unread = next(("not all links of the node were read: %s" % one.get("why", "") for one in problems if one.get("fact") == "links.present"), unread)
    routes = tuple((facts.get("routes") or {}).get("main") or [])
    return Host(links, routes, tuple(left_out.get("examples") or ()), unread, tuple(facts.get("ip_rules") or ()))


def _link(link):
    held = tuple(_held(one) for one in link.get("addresses") or [])
    virtual = bool(link.get("kind")) and not link.get("nic")
    return Link(link["name"], held, virtual, bool(link.get("up")), "address_count" in link)


def _held(one):
    ip, prefix = plain(ip_of(one["ip"]), one["prefix"])
    marks = one.get("marks", ())
    return Held(ip, prefix, bool(one.get("peer")), "secondary" in marks, one.get("scope", 0))


def plain(ip, prefix):
    """Go takes an IPv4 address in IPv6's clothes for what is in them."""
    mapped = ip.version == 6 and ip.ipv4_mapped
    return (mapped, max(0, prefix - 96)) if mapped else (ip, prefix)


@once
def is_global_unicast(ip):
    """Go's idea of it: private addresses count, those of the host and of the link alone do not."""
    return not (ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or (ip.version == 4 and int(ip) == 0xFFFFFFFF))


@once
def parsed_ip(text):
    """Go refuses leading zeros and zones, which some Python accepts."""
    if re.search(r"(^|\.)0\d", text) and ":" not in text or "%" in text or not text.isascii():
        return None
    try:
        return plain(ip_of(text), 128)[0]
    except ValueError:
        return None


@once
def parsed_cidr(text):
    """(ip, prefix), or None."""
    head, slash, tail = text.partition("/")
    if not slash or not re.match(r"[0-9]+\Z", tail) or "%" in head or (":" not in head and parsed_ip(head) is None):
        return None
    try:
        ip = ip_of(head)
    except ValueError:
        return None
    prefix = int(tail)
    return plain(ip, prefix) if prefix <= ip.max_prefixlen else None


def parsed_either(text):
    """(ip, prefix) of a CIDR or of a single address, or None."""
    whole = parsed_cidr(text)
    if whole:
        return whole
    ip = parsed_ip(text)
    return (ip, ip.max_prefixlen) if ip else None


def network(text):
    """The network of a CIDR, or None."""
    found = parsed_cidr(text)
    return network_of("%s/%d" % found) if found else None
