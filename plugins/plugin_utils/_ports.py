# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The ports of Calico's nodes, from ``calico`` of the cluster facts: each of them may be another than the usual one."""

from __future__ import annotations

import re

from . import _cluster, _felix

BGP = 179
VXLAN, WIREGUARD, WIREGUARD6 = "vxlanPort", "wireguardListeningPort", "wireguardListeningPortV6"
HEALTH = 9099
USUAL = {VXLAN: 4789, WIREGUARD: 51820, WIREGUARD6: 51821}
KINDS = {VXLAN: "VXLAN", WIREGUARD: "WireGuard", WIREGUARD6: "WireGuard"}
BY_CUSTOM = {8472: "VXLAN", **{USUAL[name]: kind for name, kind in KINDS.items()}}


def bgp(calico, node):
    """Where that node's BIRD listens: a BGPConfiguration of its own goes before that of all nodes."""
    told = calico.get("bgp") or {}
    return (told.get("ports") or {}).get(node) or told.get("port") or BGP


def health(calico):
    """Felix answers probes before it reads any FelixConfiguration, so that only the environment can give it another port, as the operator does on OpenShift."""
    return _port((calico.get("env") or {}).get("FELIX_HEALTHPORT")) or HEALTH


def of_felix(calico, name, node=None):
    """As Felix of that node takes it; None where what it is told could not be read."""
    try:
        return next(filter(None, map(_port, _felix.settings(calico, node, name))), USUAL[name])
    except _felix.Unread:
        return None


def kind_of_tunnel(calico, port, node=None):
    """What an UDP port of that node is for."""
    own = {of_felix(calico, name, node): kind for name, kind in KINDS.items()}
    return own.get(port) or BY_CUSTOM.get(port)


def _port(told):
    if isinstance(told, str):
        told = int(told) if re.match(r"\s*[0-9]{1,5}\s*\Z", told) else None
    return int(told) if _cluster.is_number(told) and 0 < told < 1 << 16 else None
