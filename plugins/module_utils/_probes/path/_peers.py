# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The path to other nodes: which of their ports take a connection, and how large a packet arrives there whole.

Only those in ``targets`` are asked, all at the same time. Whether a tunnel's packets arrive cannot be seen from one end: only
an objection of the other end can.
"""

from __future__ import annotations

import re

from ..calico._sockets import address as from_kernel
from ._servers import listed

MOST = 64  # nodes
PORTS = 8  # of each
BGP = 179
ESTABLISHED = "01"
SHARE = 0.8  # of the deadline
LEAST, LARGEST = 576, 65535


def peers(node):
    """{asked, left_out, size, nodes: {name: {address, tcp: {port: {state, seconds}}, objects: {port: state}, packets: {…}}}}"""
    wanted, left_out = told(node, node.targets.get("peers"))
    size = whole(node.targets.get("size"), LEAST, LARGEST)
    if not wanted:
        return {"asked": 0, "left_out": left_out, "size": size, "nodes": {}}
    used = in_use(node)
    deadline = node.deadline * SHARE
    ports = [(one["address"], port) for one in wanted.values() for port in one["tcp"] if (one["address"], port) not in used]
    silent = [(one["address"], port) for one in wanted.values() for port in one["tunnels"]]
    said = node.together(
        {
            "tcp": lambda node: node.reach(ports, deadline),
            "packets": lambda node: node.echoes([one["address"] for one in wanted.values()], size, min(deadline, 2.0)),
            "tunnels": lambda node: node.objections(silent, min(deadline, 1.0)),
        }
    )
    found = {name: _one(one, said, used) for name, one in wanted.items()}
    return {"asked": len(found), "left_out": left_out, "size": size, "nodes": found}


def _one(one, said, used):
    address = one["address"]
    tcp = {}
    for port in one["tcp"]:
        how = ("open", None) if (address, port) in used else (said["tcp"] or {}).get((address, port))
        if how:
            tcp[str(port)] = {"state": how[0], "seconds": how[1], **({"in_use": True} if (address, port) in used else {})}
    objects = {str(port): state for (where, port), state in (said["tunnels"] or {}).items() if where == address}
    return {"address": address, "tcp": tcp, "objects": objects, "packets": (said["packets"] or {}).get(address)}


def told(node, peers):
    """({name: {address, tcp, tunnels}}, how many there were too many): those that are other machines and have an address."""
    found = {}
    for name, said in peers.items() if isinstance(peers, dict) else ():
        one = said if isinstance(said, dict) else {"address": said, "ports": node.targets.get("ports")}
        address = str(one.get("address") or "")
        if node.holds(address) is False:
            ports = [whole(port, 1, 65535) for port in listed(one.get("ports"))]
            tunnels = ["ipip" if port == "ipip" else whole(port, 1, 65535) for port in listed(one.get("tunnels"))]
            found[str(name)] = {"address": address, "tcp": [port for port in ports if port][:PORTS], "tunnels": [port for port in tunnels if port][:PORTS]}
    chosen = dict(list(found.items())[:MOST])
    return chosen, len(found) - len(chosen)


def whole(value, least, most):
    """A number that is one and lies between these, else None."""
    text = str(value)
    return int(text) if re.match(r"[0-9]{1,6}$", text) and least <= int(text) <= most else None


def in_use(node):
    """{(other's address, its port)} of connections that are established: nothing needs to be tried there.

    A BGP session counts whoever made it, and is not disturbed by a connection that comes and goes beside it.
    """
    found, bgp = set(), whole(node.targets.get("bgp"), 1, 65535) or BGP
    for file in ("tcp", "tcp6"):
        for line in node.table("/proc/net/" + file).split("\n"):
            words = line.split()
            if len(words) > 3 and words[3] == ESTABLISHED:
                ends = [re.match(r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})\Z", word) for word in words[1:3]]
                if all(ends):
                    other = from_kernel(ends[1].group(1))
                    other = other[7:] if other.startswith("::ffff:") and "." in other else other
                    own, others = (int(end.group(2), 16) for end in ends)
                    found.update((other, port) for port in (others, own) if port in (others, bgp))
    return found
