# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What Felix of one node is told, from ``calico`` of the cluster facts: a FelixConfiguration can be for all nodes or for one."""

from __future__ import annotations

WIREGUARD, WIREGUARD6 = "wireguardEnabled", "wireguardEnabledV6"
WORDS = {**dict.fromkeys(("true", "1", "yes", "y", "t"), True), **dict.fromkeys(("false", "0", "no", "n", "f"), False)}


class Unread(Exception):
    """What goes before the rest is not known."""


def settings(calico, node, name):
    """Each value that is told, in Felix's order: calico-node's environment, the FelixConfiguration of that node, that of all."""
    for key, value in (calico.get("env") or {}).items():
        if key.upper() == "FELIX_" + name.upper():
            if isinstance(value, dict):
                raise Unread(key)
            yield value
    told = calico.get("felix")
    if told is None:
        raise Unread("FelixConfiguration")
    for spec in ((told.get("nodes") or {}).get(node), told.get("every")):
        if spec and name in spec:
            yield spec[name]


def is_on(calico, node, name):
    """False where nobody says anything, as all that is asked for here is by default; None where it could not be read."""
    try:
        known = (WORDS.get(str(told).strip().lower()) for told in settings(calico, node, name))
        return next((one for one in known if one is not None), False)
    except Unread:
        return None


def tunnels(calico, node):
    """The kinds that a node has: those of the pools in use, and WireGuard where its Felix is told so."""
    pools = [one for one in calico.get("pools") or [] if not one.get("disabled")]
    found = [kind for kind in ("ipip", "vxlan") if any(one.get(kind) not in (None, "", "Never") for one in pools)]
    return found + (["wireguard"] if is_on(calico, node, WIREGUARD) else [])
