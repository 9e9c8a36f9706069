# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a removal took, brought back: a link by the kernel as long as the node has not booted since, a network by docker."""

from __future__ import annotations

from collections import namedtuple

from . import _docker, _kernel

# Something that an entry of the journal holds and the node has not: its diff, why it cannot come back, and what brings it back.
Lost = namedtuple("Lost", "diff conflict bring")


def lost(node, said, same_boot):
    """What an entry's removal took and is not there; a bare link would not have outlived a boot."""
    links = [_link(node, kept) for kept in (said.get("links") or [] if same_boot else [])]
    return [one for one in [*links, *(_network(node, network) for network in said.get("networks") or [])] if one]


def _link(node, kept):
    now = _kernel.found(node, kept)
    if now and _kernel.lines(now) == _kernel.lines(kept):
        return None
    conflict = "there is another link named %s by now" % kept["name"] if now else None
    return Lost(_diff("link " + kept["name"], _kernel.lines(kept)), conflict, lambda: [] if _kernel.found(node, kept) else _kernel.make(node, kept))


def _network(node, network):
    known = _docker.all_networks(node)
    now = next((one for one in known or [] if one.get("Name") == network["Name"]), None)
    if now and _docker.lines(now) == _docker.lines(network):
        return None
    conflict = "docker has another network named %s by now" % network["Name"] if now else None
    if known is None:
        conflict = "docker does not answer, and only docker can make its network %s again: start it, then undo" % network["Name"]
    return Lost(_diff("docker network " + network["Name"], _docker.lines(network)), conflict, lambda: _docker.make(node, network))


def _diff(what, words):
    return {"prepared": "--- before: %s\n+++ after: %s\n%s" % (what, what, "".join("+%s\n" % word for word in words))}
