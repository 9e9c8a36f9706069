# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What links are for: whose a bridge is, which addresses an autodetection could choose, and which names it passes over."""

from __future__ import annotations

from ..module_utils._bridges import MULTUS, POD_NETWORK, behind, current, owner_of, uplinks
from ._addresses import ip_of
from ._calico._host import is_global_unicast
from ._calico._versions import VersionError, passes_over, passes_over_since, version

UNKNOWN = (3, 24, 6)
ALWAYS = "3.2"
PERHAPS_CALICO = {"calico", "loopback"} | MULTUS  # what multus hands over to may be Calico where its file does not tell


def stray_bridges(facts):
    """Bridges of container tools that hold an address of their own and lead nowhere.

    ``facts`` is the ``links`` part of a node's facts. A bridge with a NIC, a bond, a VLAN or the like as its port, one that the
    system's configuration names, and one that the default route leaves by, are an administrator's; those of the pod network are its own.
    """
    leaving = {name for route in (facts.get("routes") or {}).get("main", []) if route["to"] == "default" for name in route.get("links", [])}
    declared = facts.get("declared") or {}
    found = []
    for link in facts["present"]["links"]:
        name, held = link["name"], choosable(link)
        ours = POD_NETWORK.match(name) or name in current(facts)
        if link.get("kind") != "bridge" or not held or uplinks(link) or name in declared or name in leaving or ours:
            continue
        owner = owner_of(name, facts)
        found.append(
            {
                "bridge": name,
                "subnet": ", ".join(held),
                "up": link.get("up", False),
                **owner,
                "ports": [port["name"] for port in link.get("ports", [])],
                "port_count": link.get("port_count", 0),
                "ignored_since": ignored_since(name),
                "reasons": [
                    "it holds %s" % ", ".join(held),
                    "none of its %d ports leads out of this node" % link["port_count"] if link.get("port_count") else "it has no port",
                    owner["because"],
                ],
            }
        )
    return found


def other_network(cni):
    """The name of the pod network of a node in a cluster whose network is not Calico, and so chooses no address in Calico's way."""
    taken = [behind(directory) for directory in cni["directories"]] if cni and cni["joined"] and not cni.get("unread") else []
    others = [confs[0]["name"] or confs[0]["file"] for confs in taken if confs and not any(PERHAPS_CALICO & set(conf["types"]) for conf in confs)]
    return others[0] if others and len(others) == len(taken) else None


def choosable(link, family=None):
    """Addresses that Calico would take for a node's, in the kernel's order: anything unicast that is not local to the link or the host."""
    found = []
    for held in link["addresses"]:
        ip = ip_of(held["ip"])
        if family in (None, ip.version) and is_global_unicast(ip):
            found.append("%s/%d" % (held["ip"], held["prefix"]))
    return found


def candidates(links, family, calico=None):
    """[(link, addresses)] in the order in which first-found tries them: the kernel's, backwards. A link that is down counts too."""
    found = [(link, choosable(link, family)) for link in reversed(links) if not ignored(link["name"], calico)]
    return [(link, addresses) for link, addresses in found if addresses]


def ignored(name, calico=None):
    """Whether Calico of that version passes a link over by its name; an unknown version is taken for the last that minds bridges."""
    try:
        return passes_over(name, version(calico) if calico else UNKNOWN)
    except VersionError:
        return passes_over(name, UNKNOWN)


def ignored_since(name):
    since = passes_over_since(name)
    return since and ".".join(map(str, since if since[2] else since[:2]))
