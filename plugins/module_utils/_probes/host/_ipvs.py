# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The kernel's table of virtual services, by which kube-proxy in its mode ipvs serves the addresses of services."""

from __future__ import annotations

import ipaddress
import re

TABLE = 8 << 20
SHOWN = 50
SERVICE = re.compile(r"(TCP|UDP|SCTP)\s+(\[[0-9a-fA-F:]+\]|[0-9A-F]{8}):([0-9A-F]{4})\s")


def ipvs(node):
    """How many services there are, those to which no server belongs, and how many servers those on port 443 have; None without IPVS."""
    text = node.read("/proc/net/ip_vs", TABLE)
    if text is None:
        return None
    found = list(services(text))
    empty = [one["service"] for one in found if not one["servers"]]
    https = {one["service"]: one["servers"] for one in found if one["service"].endswith(":443")}
    return {"count": len(found), "empty_count": len(empty), "empty": empty[:SHOWN], "https": dict(list(https.items())[:SHOWN])}


def services(text):
    """Each virtual service as ``tcp 10.96.0.1:443`` with the number of its servers."""
    current = None
    for line in text.splitlines():
        match = SERVICE.match(line)
        if match or not line.startswith("  ->"):
            if current:
                yield current
            current = {"service": "%s %s" % (match.group(1).lower(), _place(*match.groups()[1:])), "servers": 0} if match else None
        elif current:
            current["servers"] += 1
    if current:
        yield current


def _place(address, port):
    if address.startswith("["):
        return "[%s]:%d" % (ipaddress.ip_address(address[1:-1]), int(port, 16))
    return "%s:%d" % (ipaddress.ip_address(int(address, 16)), int(port, 16))
