# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What this node listens on for Calico: BGP, Typha, health checks, and the kernel's own ends of tunnels."""

from __future__ import annotations

import re
import socket
import struct

TCP = (179, 5473, 9091, 9093, 9098, 9099)
UDP = (4789, 4799, 8472, 51820, 51821)
LISTENS = "0A"
TABLE = 1 << 18  # the kernel lists what listens before what is connected


def sockets(node):
    """{tcp: [{port, address}], udp: [{port, address}]} of the wanted ports; a tunnel's socket is the kernel's, which shows it only without an address."""
    return {
        "tcp": [one for file in ("tcp", "tcp6") for one in bound(node.table("/proc/net/" + file, TABLE), TCP, LISTENS)],
        "udp": [one for file in ("udp", "udp6") for one in bound(node.table("/proc/net/" + file, TABLE), UDP)],
    }


def bound(text, wanted, state=None):
    """[{port, address}] of the rows of a table such as /proc/net/tcp that are bound to one of these ports."""
    found = []
    for line in text.split("\n"):
        words = line.split()
        match = re.match(r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})\Z", words[1]) if len(words) > 9 else None
        if match and int(match.group(2), 16) in wanted and state in (None, words[3]):
            found.append({"port": int(match.group(2), 16), "address": address(match.group(1))})
    return found


def address(digits):
    """The kernel writes an address as numbers of four bytes in the machine's own order."""
    packed = b"".join(struct.pack("=I", int(digits[at : at + 8], 16)) for at in range(0, len(digits), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
