# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Links: what the kernel has, whose bridges they are, who else manages them, and what earlier networks left."""

from __future__ import annotations

import errno
import socket

from . import _netlink
from ._cni import cni, ipam
from ._managers import managers
from ._owners import declared, docker, libvirt, podman

MOST_LINKS = 200
MOST_ADDRESSES = 32
MOST_PORTS = 16
MOST_ROUTES = 100
MOST_RULES = 32


def present(node):
    """Links in the kernel's dump order, each with its addresses in theirs: Calico's choice depends on both orders."""
    found = list(_netlink.links(node.dump(_netlink.LINK)))
    names = {link["index"]: link["name"] for link in found}
    held = {}
    for index, address in _netlink.addresses(node.dump(_netlink.ADDRESS)):
        held.setdefault(index, []).append(address)
    ports = {}
    for link in found:
        if link["master"]:
            ports.setdefault(link["master"], []).append(link)
    shown = [link for link in found if not _is_pods(link, held)]
    if len(shown) > MOST_LINKS:
        shown = [link for link in shown if link["index"] in held or link["kind"] == "bridge"][:MOST_LINKS]
    kept = {link["index"] for link in shown}
    left = [link for link in found if link["index"] not in kept]
    unseen = sum(1 for link in left if link["index"] in held and not _is_pods(link, held))
    if unseen:
        node.problem("links", "%d more than %d links hold an address" % (unseen, MOST_LINKS), "error")
    kinds = {}
    for link in left:
        kind = "cali" if link["name"].startswith("cali") else link["kind"] or "other"
        kinds[kind] = kinds.get(kind, 0) + 1
    return {
        "links": [_shown(node, link, names, held.get(link["index"], []), ports.get(link["index"], [])) for link in shown],
        "left_out": {"count": len(left), "kinds": kinds, "examples": [link["name"] for link in left[:3]]},
    }


def _is_pods(link, held):
    """A veth without an address of its own: a busy node has hundreds, and they differ in nothing. What Calico could choose is one, whatever its scope."""
    addresses = [one for one in held.get(link["index"], []) if not one["ip"].startswith(("fe80:", "169.254."))]
    return link["kind"] == "veth" and not addresses


def _shown(node, link, names, addresses, ports):
    """Only what is true of a link is said of it."""
    shown = {key: value for key, value in link.items() if value and key not in ("master", "parent")}
    shown.update({role: names.get(link[role], str(link[role])) for role in ("master", "parent") if link[role] and not (role == "parent" and link["elsewhere"])})
    if node.exists("/sys/class/net/%s/device" % link["name"]):
        shown["nic"] = True
    if ports:
        shown["ports"] = [_port(node, port) for port in ports[:MOST_PORTS]]
        shown["port_count"] = len(ports)
    most = 4 if link["name"].startswith("kube-ipvs") else MOST_ADDRESSES
    shown["addresses"] = addresses[:most]
    if len(addresses) > most:
        shown["address_count"] = len(addresses)
    return shown


def _port(node, port):
    nic = node.exists("/sys/class/net/%s/device" % port["name"])
    return {"name": port["name"], **({"kind": port["kind"]} if port["kind"] else {}), **({"nic": True} if nic else {})}


def routes(node):
    """The main tables, without the routes to single pods and those that the kernel keeps for itself; the rest is counted by who made it."""
    links = {link["index"]: link for link in _netlink.links(node.dump(_netlink.LINK))}
    shown, counts = [], {}
    for family in (socket.AF_INET, socket.AF_INET6):
        for route in _netlink.routes(node.dump(_netlink.ROUTE, family)):
            # Where IPv6 is switched off, the kernel answers the question for its routes with all others.
            if route["family"] != _netlink.FAMILIES[family] or route["to"].startswith(("fe80:", "ff00:")):
                continue
            first = links.get(route["links"][0], {}) if route["links"] else {}
            route["links"] = [links[index]["name"] if index in links else str(index) for index in route["links"]]
            single = first.get("kind") == "veth" and route["to"].endswith(("/32", "/128"))
            if single or route["by"] in ("bird", "calico", "bgp") or (len(shown) >= MOST_ROUTES and route["to"] != "default"):
                what = "to pods" if single else (route["type"] + " " if route["type"] else "") + "by " + route["by"]
                counts[what] = counts.get(what, 0) + 1
            else:
                shown.append({key: value for key, value in route.items() if value})
    if len(shown) >= MOST_ROUTES:
        node.problem("routes", "more than %d, the others were only counted" % MOST_ROUTES, "error")
    return {"main": shown, "left_out": counts}


def ip_rules(node):
    """What `ip rule` shows beside the usual: with such rules the main table alone does not tell which way packets take."""
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            found += [rule for rule in _netlink.rules(node.dump(_netlink.RULE, family)) if rule["family"] == _netlink.FAMILIES[family]]
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:  # a kernel without such rules
                raise
    if len(found) > MOST_RULES:
        node.problem("ip rule", "more than %d" % MOST_RULES, "error")
    return found[:MOST_RULES]


FACTS = {
    "present": present,
    "routes": routes,
    "ip_rules": ip_rules,
    "declared": declared,
    "podman": podman,
    "libvirt": libvirt,
    "managers": managers,
    "cni": cni,
    "ipam": ipam,
}
WAITING = {"docker": docker}
UNITS = (
    "NetworkManager.service",
    "systemd-networkd.service",
    "nm-cloud-setup.service",
    "nm-cloud-setup.timer",
    "docker.service",
    "docker.socket",
    "podman.socket",
    "kubelet.service",
)
