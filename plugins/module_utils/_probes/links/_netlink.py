# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the messages of an rtnetlink dump mean. Order is kept; a message that is cut short is left out."""

from __future__ import annotations

import socket
import struct
import sys

LINK, ADDRESS, ROUTE, RULE = 18, 22, 26, 34  # RTM_GETLINK, RTM_GETADDR, RTM_GETROUTE, RTM_GETRULE
MAIN = 254
USUAL = {(0, 255), (32766, MAIN), (32767, 253)}  # what every kernel begins with: the tables local, main and default
INVERTED = 2  # FIB_RULE_INVERT
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 6}
STATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")
MARKS = ((0x20, "deprecated"), (0x40, "tentative"), (0x08, "dadfailed"))
PROTOCOLS = {0: "unspec", 1: "redirect", 2: "kernel", 3: "boot", 4: "static", 9: "ra", 12: "bird", 16: "dhcp", 80: "calico", 186: "bgp"}
TYPES = {6: "blackhole", 7: "unreachable", 8: "prohibit"}


def links(payloads):
    """One table a link, in dump order: struct ifinfomsg {family, pad, type, index, flags, change}, then attributes."""
    for payload in payloads:
        if len(payload) < 16:
            continue
        index, flags = struct.unpack_from("=iI", payload, 4)
        said = attributes(payload, 16)
        info = attributes(said.get(18, b""))
        named = [text(value) for kind, value in walk(said.get(52, b"")) if kind == 53]
        yield {
            "index": index,
            "name": text(said.get(3, b"")),
            "kind": text(info.get(1, b"")),
            "loopback": bool(flags & 8),
            "up": bool(flags & 1),
            "carrier": bool(flags & 0x10000),
            "state": pick(STATES, number(said.get(16, b""))),
            "mtu": number(said.get(4, b"")),
            "mac": said.get(1, b"")[:6].hex(":") if len(said.get(1, b"")) == 6 else "",
            "altnames": named[:8],
            "master": number(said.get(10, b"")),
            "parent": number(said.get(5, b"")),
            "elsewhere": 37 in said,  # the parent, or a veth's other end, lies in another network namespace
        }


def addresses(payloads):
    """(link's index, address) in dump order: struct ifaddrmsg {family, prefix length, flags, scope, index}."""
    for payload in payloads:
        if len(payload) < 8:
            continue
        family, prefix, flags, scope, index = struct.unpack_from("=BBBBI", payload)
        said = attributes(payload, 8)
        ip = address(family, said.get(2) or said.get(1, b""))
        peer = address(family, said.get(1, b"")) if said.get(2) else ""
        if not ip:
            continue
        flags |= number(said.get(8, b""))
        marks = [name for bit, name in MARKS if flags & bit]
        if flags & 1:
            marks.insert(0, "temporary" if family == socket.AF_INET6 else "secondary")
        more = {"scope": scope, "marks": marks, "peer": peer if peer != ip else ""}
        yield index, {"ip": ip, "prefix": prefix, **{key: value for key, value in more.items() if value}}


def routes(payloads, table=MAIN):
    """One table's routes, or with None those of all: struct rtmsg {family, dst_len, src_len, tos, table, protocol, scope, type, flags}."""
    for payload in payloads:
        if len(payload) < 12:
            continue
        family, prefix, _source, _tos, low, protocol, scope, kind, flags = struct.unpack_from("=8BI", payload)
        if family not in FAMILIES or flags & 0x200:  # RTM_F_CLONED: what the kernel has learnt about a path is no route
            continue
        said = attributes(payload, 12)
        if table not in (None, number(said[15]) if 15 in said else low):
            continue
        target = address(family, said.get(1, b"")) or ("::" if family == socket.AF_INET6 else "0.0.0.0")
        hops = [number(hop) for hop in ([said[4]] if 4 in said else [hop[4:8] for hop in _hops(said.get(9, b""))])]
        yield {
            "to": "default" if not prefix else "%s/%d" % (target, prefix),
            "family": FAMILIES[family],
            "via": address(family, said.get(5, b"")),
            "links": hops[:8],
            "metric": number(said.get(6, b"")),
            "source": address(family, said.get(7, b"")),
            "by": PROTOCOLS.get(protocol, str(protocol)),
            "near": scope == 253,  # the destination is on the link itself
            "type": TYPES.get(kind, ""),
        }


def rules(payloads):
    """The rules that lead to other tables than usual: struct fib_rule_hdr {family, dst_len, src_len, tos, table, 2 reserved, action, flags}."""
    for payload in payloads:
        if len(payload) < 12:
            continue
        family, to, source, _tos, table, _one, _two, _action, flags = struct.unpack_from("=8BI", payload)
        said = attributes(payload, 12)
        priority, table = number(said.get(6, b"")), number(said[15]) if 15 in said else table
        if family not in FAMILIES or (priority, table) in USUAL and not (to or source or flags & INVERTED):
            continue
        only = {
            "to": "%s/%d" % (address(family, said.get(1, b"")), to) if to else "",
            "from": "%s/%d" % (address(family, said.get(2, b"")), source) if source else "",
            "mark": number(said.get(10, b"")),
            "in": text(said.get(3, b"")),
            "out": text(said.get(17, b"")),
            "vrf": bool(number(said.get(19, b""))),
            "users": 20 in said,
            "not": bool(flags & INVERTED),
        }
        yield {"priority": priority, "table": table, "family": FAMILIES[family], **{key: value for key, value in only.items() if value}}


def _hops(data):
    """The struct rtnexthop {length, flags, hops, index} of a route with several ways."""
    at = 0
    while at + 8 <= len(data):
        size = struct.unpack_from("=H", data, at)[0]
        if size < 8:
            return
        yield data[at : at + size]
        at += (size + 3) & ~3


def attributes(data, start=0):
    return dict(walk(data, start))


def walk(data, at=0):
    """(type, value) of each attribute, until the end or the first that cannot be true."""
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4 or at + size > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + size]
        at += (size + 3) & ~3


def number(value):
    return int.from_bytes(value[:4], sys.byteorder)


def text(value):
    return value.split(b"\0", 1)[0][:128].decode("utf-8", "replace")


def pick(names, index):
    return names[index] if index < len(names) else str(index)


def address(family, value):
    wanted = {socket.AF_INET: 4, socket.AF_INET6: 16}.get(family)
    return socket.inet_ntop(family, value) if wanted and len(value) == wanted else ""
