# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whether Calico is, or was, on this node."""

from __future__ import annotations

from ._processes import programs

PLACES = (
    "/var/lib/calico/nodename",
    "/var/run/calico",
    "/etc/cni/net.d/*calico*",
    "/etc/cni/net.d/*canal*",
    "/var/lib/rancher/k3s/agent/etc/cni/net.d/*calico*",
    "/var/snap/microk8s/current/args/cni-network/*calico*",
)


def signs(node):
    """["process calico-node", "/var/lib/calico/nodename", …]: none where there is no Calico, None where nobody may look for it."""
    found = list(_found(node))
    unseen = any(one["fact"] == ".".join(node.path) for one in node.problems)
    return None if unseen and not found else found[:10]


def here(node):
    """Whether there is any sign; no more is looked at than that takes."""
    return next(_found(node), None) is not None


def _found(node):
    for one in programs(node):
        if one["name"] != "bird":
            yield "process " + one["name"]
            break
    for pattern in PLACES:
        yield from node.glob(pattern)
