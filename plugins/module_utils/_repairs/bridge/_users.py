# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who needs a link: each of these tells of one kind of user, by name, and nothing is removed while any of them has one."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys

from ..._probes.calico._sockets import address
from ..._probes.host._ports import holders
from ..._probes.links import _netlink

PORTS = {"veth": "the end of a container's link", "tun": "a virtual machine's or a VPN's"}
TABLES = (("tcp", ("0A",)), ("tcp6", ("0A",)), ("udp", ("07",)), ("udp6", ("07",)))  # what listens, and what waits for packets
TABLE = 1 << 20
# They bind to whatever address Calico has chosen, which is what a stray bridge leads astray.
CALICOS = ("bird", "bird6", "calico-node")
QUEUES = ("", "noqueue", "noop", "pfifo_fast", "fq_codel", "mq")
VLAN_FILTERING, QUEUE = 7, 6  # IFLA_BR_VLAN_FILTERING, IFLA_QDISC
METHODS = {4: "IP_AUTODETECTION_METHOD", 6: "IP6_AUTODETECTION_METHOD"}


def users(node, facts, link):
    """One sentence for each user, the most telling first."""
    return [said for look in LOOKS for said in look(node, facts, link)]


def _ports(node, facts, link):
    for port in link.get("ports", []):
        yield "the port %s (%s)" % (port["name"], "a NIC" if port.get("nic") else PORTS.get(port.get("kind"), port.get("kind") or "a NIC"))
    unnamed = link.get("port_count", 0) - len(link.get("ports", []))
    if unnamed > 0:
        yield "%d more ports" % unnamed


def _stacked(node, facts, link):
    """Links that are built on this one, or that it is itself a port of."""
    for other in _netlink.links(node.dump(_netlink.LINK)):
        if other["parent"] == link["index"] and other["index"] != link["index"] and not other["elsewhere"]:
            yield "the link %s (%s), which is built on it" % (other["name"], other["kind"] or "no kind")
    if link.get("master"):
        yield "%s, of which it is a port" % link["master"]


def _routes(node, facts, link):
    """Routes of any table that the kernel did not make for its addresses; the default route first."""
    found = []
    for family in (socket.AF_INET, socket.AF_INET6):
        for route in _netlink.routes(node.dump(_netlink.ROUTE, family), None):
            if _netlink.FAMILIES[family] == route["family"] and link["index"] in route["links"] and route["by"] != "kernel":
                found.append((route["to"], route["via"]))
    for to, via in sorted(dict.fromkeys(found), key=lambda one: one[0] != "default")[:10]:
        yield "%s%s" % ("the default route" if to == "default" else "the route to %s" % to, " by %s" % via if via else "")


def _rules(node, facts, link):
    for one in facts["links"]["ip_rules"] or []:
        if link["name"] in (one.get("in"), one.get("out")):
            yield "the ip rule %d, which names it" % one["priority"]


def _listeners(node, facts, link):
    """Sockets that are bound to one of its addresses; Calico's own are bound to whatever it has registered."""
    held = {one["ip"] for one in link["addresses"]}
    found = {}
    for file, states in TABLES:
        for line in (node.read("/proc/net/" + file, TABLE) or "").split("\n"):
            words = line.split()
            match = re.match(r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})\Z", words[1]) if len(words) > 9 and words[3] in states else None
            if match and address(match.group(1)) in held:
                found[words[9]] = "%s %s port %d" % (file[:3], address(match.group(1)), int(match.group(2), 16))
    programs = holders(node, set(found)) if found else {}
    for inode, what in sorted(found.items(), key=lambda one: one[1]):
        program = (programs.get(inode) or {}).get("process")
        if program not in CALICOS:
            yield "%s, which listens on %s" % (program or "a program", what)


def _shaped(node, facts, link):
    """What an administrator has set on it by hand, which could not be brought back."""
    message = next((one for one in node.dump(_netlink.LINK) if one[4:8] == link["index"].to_bytes(4, sys.byteorder)), b"")
    said = _netlink.attributes(message, 16)
    queue = _netlink.text(said.get(QUEUE, b""))
    if queue not in QUEUES:
        yield "its queueing discipline %s" % queue
    data = _netlink.attributes(_netlink.attributes(said.get(18, b"")).get(2, b""))
    if link.get("kind") == "bridge" and data.get(VLAN_FILTERING) == b"\1":
        yield "VLANs, which it filters"


def _kubelet(node, facts, link):
    told = (facts["kubelet"]["installed"] or {}).get("node_ip") or ""
    if {one["ip"] for one in link["addresses"]} & set(told.split(",")):
        yield "the kubelet, whose --node-ip is %s" % told


def _calico(node, facts, link):
    """A calico-node that is told to use it, and that would find nothing else."""
    told = (facts["calico"]["processes"] or {}).get("env") or {}
    for family, variable in METHODS.items():
        held = [one["ip"] for one in link["addresses"] if ipaddress.ip_address(one["ip"]).version == family]
        address = variable.partition("_")[0]
        fixed = told.get(address, "").partition("/")[0]
        if fixed in held:
            yield "calico-node, which is told %s=%s" % (address, fixed)
        others = [one for one in facts["links"]["present"]["links"] if one["index"] != link["index"]]
        method = told.get(variable, "")
        if held and _takes(method, link, family) and not any(_takes(method, one, family) for one in others):
            yield "calico-node, which is told %s=%s and finds nothing else" % (variable, method)


def _takes(method, link, family):
    """Whether a method that names links or networks could take an address of this one."""
    kind, _sign, value = method.partition("=")
    held = [ip for ip in (ipaddress.ip_address(one["ip"]) for one in link["addresses"]) if ip.version == family]
    try:
        if kind == "interface":
            return bool(held) and any(re.search(one.strip(), link["name"]) for one in value.split(","))
        if kind == "cidr":
            return any(ip in ipaddress.ip_network(one.strip(), strict=False) for one in value.split(",") for ip in held)
    except (ValueError, re.error):
        return False
    return False


LOOKS = (_ports, _stacked, _routes, _rules, _listeners, _shaped, _kubelet, _calico)
