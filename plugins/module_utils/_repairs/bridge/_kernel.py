# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A link as the kernel has it: kept as its very messages, taken away, and made again from these."""

from __future__ import annotations

import errno
import os
import socket
import struct

from ..._probes.links import _netlink
from .. import Failed

NEW_LINK, DELETE_LINK, NEW_ADDRESS, NEW_NAMES = 16, 17, 20, 108  # RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_NEWLINKPROP
NOW = 1 | 4  # NLM_F_REQUEST | NLM_F_ACK
ANEW, OR_INSTEAD = 0x400 | 0x200, 0x400 | 0x100  # NLM_F_CREATE with NLM_F_EXCL, or with NLM_F_REPLACE
FLAGS = 0x1 | 0x80 | 0x100 | 0x200 | 0x1000  # up, no ARP, promiscuous, all multicast, multicast: what an administrator sets
# IFLA_: address, name, MTU, alias, length of the queue, parent, link mode, group, numbers of queues, largest offloads, kind, other names
MAC, NAME, PARENT, KIND, NAMES, NAMED, NESTED = 1, 3, 5, 18, 52, 53, 0x8000
AT_BIRTH, LATER = (31, 32), (4, 13, 17, 20, 27, 40, 41)
# IFLA_VXLAN_: that the TTL is inherited is told as a number and taken as a flag; which bits are reserved follows from the others.
INHERITS, RESERVED = 28, 33
# IFLA_BR_: what can be set of a bridge; the rest are its own observations and clocks.
OF_A_BRIDGE = (*range(1, 10), 20, *range(22, 40), *range(41, 47), 49)
# IFA_: address, local, label, broadcast, lifetimes, metric of its route, who gave it; and of IFA_FLAGS those that are given, not found out
GIVEN, ADDRESS_FLAGS, GIVEN_FLAGS = (1, 2, 3, 4, 6, 9, 11), 8, 0x02 | 0x10 | 0x100 | 0x200 | 0x400 | 0x800
SETTINGS = ("/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv4/neigh", "/proc/sys/net/ipv6/conf", "/proc/sys/net/ipv6/neigh")


def keep(node, index):
    """All that is needed to make a link again, as JSON holds it; None where it is gone."""
    link = _message(node, index)
    if link is None:
        return None
    name = _name(link)
    addresses = [payload.hex() for payload in node.dump(_netlink.ADDRESS) if _index(payload) == index]
    return {"name": _shown(name), "index": index, "link": link.hex(), "addresses": addresses, "settings": _settings(node, name)}


def lines(kept):
    """A kept link in words, for a diff."""
    (link,) = _netlink.links([bytes.fromhex(kept["link"])])
    words = [link["kind"] or "no kind", "up" if link["up"] else "down", "mtu %d" % link["mtu"], link["mac"]]
    held = [one for _index, one in _netlink.addresses(map(bytes.fromhex, kept["addresses"]))]
    return [", ".join(filter(None, words))] + ["%(ip)s/%(prefix)d" % one for one in held]


def delete(kept):
    """Take a link away, by its number: its name may be anything."""
    try:
        _tell(DELETE_LINK, 0, _header(kept["index"]))
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise Failed("the link %s cannot be removed: %s" % (kept["name"], error.strerror)) from None


def ports(node, index):
    """The names of the links that are enslaved to one now."""
    return [link["name"] for link in _netlink.links(node.dump(_netlink.LINK)) if link["master"] == index]


def found(node, kept):
    """The link of that name as it is now, whoever made it; None where there is none."""
    name = _name(bytes.fromhex(kept["link"]))
    index = next((_index(payload) for payload in node.dump(_netlink.LINK) if _name(payload) == name), None)
    return None if index is None else keep(node, index)


def make(node, kept):
    """Make a link again, with its addresses and at its place in the kernel's order; answers what could not be as it was."""
    was = bytes.fromhex(kept["link"])
    index = None
    try:
        index = _made(node, was, kept)
        settle(node, index, was, kept)
    except OSError as error:
        if index:
            delete({**kept, "index": index})  # nothing by halves
        raise Failed("the link %s cannot be made again: %s" % (kept["name"], error.strerror)) from None
    now = keep(node, index)
    different = sorted(set(lines(kept)) - set(lines(now)))
    return ["the link %s is not quite as it was: %s" % (kept["name"], "; ".join(different))] if different else []


def settle(node, index, was, kept):
    """What a new link differs in from the one that was, in the order in which it matters: settings before it is up, addresses after."""
    said, fresh = _said(was), _said(_message(node, index))
    _tell(NEW_LINK, 0, _header(index) + _attributes((kind, said[kind]) for kind in LATER if kind in said and said[kind] != fresh.get(kind)))
    if _kind(said) == b"bridge\0":
        old, new = _data(said), _data(fresh)
        data = _attributes((kind, old[kind]) for kind in OF_A_BRIDGE if kind in old and old[kind] != new.get(kind))
        if data:
            _tell(NEW_LINK, 0, _header(index) + _attribute(KIND, _attribute(1, b"bridge\0") + _attribute(2, data)))
    names = b"".join(_attribute(NAMED, value) for kind, value in _netlink.walk(said.get(NAMES, b"")) if kind == NAMED)
    if names:
        _tell(NEW_NAMES, ANEW, _header(index) + _attribute(NESTED | NAMES, names))
    _set(node, _name(was), kept["settings"])
    _tell(NEW_LINK, 0, _header(index, struct.unpack_from("=I", was, 8)[0] & FLAGS, FLAGS))
    for payload in _in_turn(map(bytes.fromhex, kept["addresses"])):
        _tell(NEW_ADDRESS, OR_INSTEAD, _address(payload, index))


def _made(node, was, kept):
    """The number of the new link: the old one where that is free, since Calico's choice depends on the order of these."""
    said = _said(was)
    body = _attributes((kind, said[kind]) for kind in (NAME, MAC, PARENT, *AT_BIRTH) if kind in said)
    body += _attribute(KIND, _attribute(1, _kind(said)) + _attribute(2, _at_birth(said)))
    for number in (kept["index"], 0):
        try:
            _tell(NEW_LINK, ANEW, _header(number) + body)
            break
        except OSError as error:
            if not number or error.errno not in (errno.EBUSY, errno.EEXIST):
                raise
    return next(_index(payload) for payload in node.dump(_netlink.LINK) if _name(payload) == _name(was))


def _at_birth(said):
    """What the kind of a link has to be told when it is made; a bridge takes what it is told later, and tells much that nobody may."""
    if _kind(said) == b"bridge\0":
        return b""
    told = [(kind, b"" if kind == INHERITS else value) for kind, value in _data(said).items() if kind != RESERVED and (kind != INHERITS or any(value))]
    return _attributes(told)


# -- addresses and settings ----------------------------------------------------------------------------------------------


def _in_turn(payloads):
    """In which addresses have to be added so that the kernel lists them as before: of IPv6 the newest comes first."""
    payloads = list(payloads)
    return [one for one in payloads if one[0] == socket.AF_INET] + [one for one in reversed(payloads) if one[0] == socket.AF_INET6]


def _address(payload, index):
    """struct ifaddrmsg {family, prefix length, flags, scope, index}, and the attributes that were given once."""
    family, prefix, flags, scope = struct.unpack_from("=BBBB", payload)
    said = _netlink.attributes(payload, 8)
    flags = (_netlink.number(said[ADDRESS_FLAGS]) if ADDRESS_FLAGS in said else flags) & GIVEN_FLAGS
    body = [(kind, said[kind]) for kind in GIVEN if kind in said] + [(ADDRESS_FLAGS, struct.pack("=I", flags))]
    return struct.pack("=BBBBi", family, prefix, flags & 0xFF, scope, index) + _attributes(body)


def _settings(node, name):
    """{path: value} of what the kernel keeps for a link below /proc/sys."""
    found = {}
    for place in (where + "/" + os.fsdecode(name) for where in SETTINGS):
        for setting in node.list(place):
            value = node.glance(place + "/" + setting)
            if value is not None:
                found[place + "/" + setting] = value.decode("ascii", "replace").strip()
    return found


def _set(node, name, settings):
    """Those that differ; some the kernel finds out by itself and lets nobody write."""
    now = _settings(node, name)
    for path, value in settings.items():
        if path in now and now[path] != value:
            try:
                with open(node.at(path), "w", encoding="ascii") as opened:
                    opened.write(value)
            except OSError:
                continue


# -- messages ------------------------------------------------------------------------------------------------------------


def _message(node, index):
    return next((payload for payload in node.dump(_netlink.LINK) if _index(payload) == index), None)


def _tell(message, flags, payload):
    """One request to the kernel; what it objects to is raised as an OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.settimeout(10)
        link.bind((0, 0))
        link.send(struct.pack("=IHHII", 16 + len(payload), message, NOW | flags, 1, 0) + payload)
        answer = link.recv(1 << 16)
    code = -struct.unpack_from("=i", answer, 16)[0]
    if code:
        raise OSError(code, os.strerror(code))


def _header(index, flags=0, change=0):
    """struct ifinfomsg {family, pad, type, index, flags, change}"""
    return struct.pack("=BxHiII", 0, 0, index, flags, change)


def _index(payload):
    return struct.unpack_from("=i", payload, 4)[0]


def _said(payload):
    return _netlink.attributes(payload, 16)


def _kind(said):
    return _netlink.attributes(said.get(KIND, b"")).get(1, b"")


def _data(said):
    return _netlink.attributes(_netlink.attributes(said.get(KIND, b"")).get(2, b""))


def _name(payload):
    """Bytes: a name need not be text."""
    return _said(payload).get(NAME, b"").split(b"\0", 1)[0]


def _shown(name):
    return name.decode("utf-8", "replace")


def _attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(pairs):
    return b"".join(_attribute(kind, value) for kind, value in pairs)
