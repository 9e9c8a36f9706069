# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The ports by which Calico's nodes reach each other, from ``calico`` of the cluster facts: each of them may be another than the usual one."""

from __future__ import annotations

import re

from . import _cluster

BGP = 179
VXLAN, WIREGUARD, WIREGUARD6 = "vxlanPort", "wireguardListeningPort", "wireguardListeningPortV6"
USUAL = {VXLAN: 4789, WIREGUARD: 51820, WIREGUARD6: 51821}
KINDS = {VXLAN: "VXLAN", WIREGUARD: "WireGuard", WIREGUARD6: "WireGuard"}
BY_CUSTOM = {8472: "VXLAN", **{port: KINDS[name] for name, port in USUAL.items()}}


def bgp(calico, node):
    """Where that node's BIRD listens: a BGPConfiguration of its own goes before that of all nodes."""
    told = calico.get("bgp") or {}
    return (told.get("ports") or {}).get(node) or told.get("port") or BGP


def of_tunnel(calico, name):
    """As Felix takes it, from its environment before FelixConfiguration; None where one of them could not be read."""
    variable = "FELIX_" + name.upper()
    told = next((value for key, value in (calico.get("env") or {}).items() if key.upper() == variable), None)
    if isinstance(told, dict):
        return None
    if _port(told):
        return _port(told)
    felix = calico.get("felix")
    return None if felix is None else _port(felix.get(name)) or USUAL[name]


def kind_of_tunnel(calico, port):
    """What an UDP port is for."""
    own = {of_tunnel(calico, name): kind for name, kind in KINDS.items()}
    return own.get(port) or BY_CUSTOM.get(port)


def _port(told):
    if isinstance(told, str):
        told = int(told) if re.match(r"\s*[0-9]{1,5}\s*\Z", told) else None
    return int(told) if _cluster.is_number(told) and 0 < told < 1 << 16 else None
