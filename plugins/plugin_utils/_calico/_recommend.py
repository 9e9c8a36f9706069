# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The method that gives every node the address that it should have, and keeps to it whatever else is done with the nodes."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._addresses import interface_of, ip_of, network_of
from ._host import is_global_unicast, parsed_ip
from ._methods import Asked, detect
from ._stability import dangers
from ._versions import masks_the_internal_ip

SINCE = {"kubernetes-internal-ip": (3, 22, 0), "cidr": (3, 16, 0)}
SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
DESTINATIONS = 3  # how many of the nodes' own addresses are tried for can-reach


class Machine(NamedTuple):
    """A node whose links are known. ``internal`` are its InternalIPs, now or once it has joined; None where they cannot be known."""

    name: str
    host: object
    wanted: object
    internal: object = None


class Answer(NamedTuple):
    """What a method gives one node."""

    address: str
    link: str
    right: bool
    unknown: str
    dangers: tuple


class Row(NamedTuple):
    """What a method gives all of them; ``refused`` says why it is not the one."""

    method: str
    answers: dict
    refused: str = ""
    unsteady: str = ""


class Advice(NamedTuple):
    """``rows`` are the methods in the order in which they were tried, ``left_out`` says of nodes that could not be asked why."""

    method: str
    steady: bool
    rows: tuple
    left_out: dict
    why: str = ""

    def refused(self):
        return {row.method: row.refused for row in self.rows if row.method != self.method}


def recommend(machines, version, family, networks=(), destinations=(), host_ip=""):
    """The first method that is right on every machine and steady; where none is, the first that is right.

    ``networks`` are tried as they are before the nodes' own subnets, ``destinations`` before the nodes' own addresses;
    ``host_ip`` is the variable of calico-node that holds the Node's InternalIP.
    """
    left_out = {one.name: one.wanted.why for one in machines if one.wanted.ip is None}
    able = [one for one in machines if one.wanted.ip is not None]
    why = _impossible(able)
    if why:
        return Advice("", False, (), left_out, why)
    rows = []
    for method, refused in _methods(able, version, family, networks, destinations, host_ip):
        row = Row(method, {}, refused) if refused else tried(method, able, version, family)
        rows.append(row)
        if not row.refused and not row.unsteady:
            break
    right = [row for row in rows if not row.refused]
    chosen = next((row for row in right if not row.unsteady), next(iter(right), None))
    rows = tuple(row if row is chosen else row._replace(refused=row.refused or row.unsteady) for row in rows)
    if chosen is None:
        return Advice("", False, rows, left_out, "no one method gives every node its address")
    return Advice(chosen.method, not chosen.unsteady, rows, left_out, chosen.unsteady)


def tried(method, machines, version, family):
    """What a method gives each machine, and whether that is what is wanted."""
    answers = {one.name: _answer(method, one, version, family) for one in machines}
    wrong = [(name, answer) for name, answer in answers.items() if not answer.right]
    shaky = [(name, answer.dangers[0]) for name, answer in answers.items() if answer.dangers]
    refused = _wrong(*wrong[0], len(wrong), len(answers)) if wrong else ""
    unsteady = "it is no longer right once %s (%s)" % (shaky[0][1], shaky[0][0]) if shaky else ""
    return Row(method, answers, refused, unsteady)


def _answer(method, machine, version, family):
    if "$(" in method:
        method = re.sub(r"\$\([^()]*\)", str(machine.internal[0]) if machine.internal else "", method)
    asked = Asked(machine.host, family, version, machine.internal)
    found = detect(method, asked)
    right = not found.unknown and _gives(found.address, machine.wanted)
    shaky = tuple(dangers(method, found, asked)) if right else ()
    return Answer(found.address or "", found.link, right, found.unknown, shaky)


def _gives(address, wanted):
    """Only the address that is meant counts: another of the node's may be right for now, but is not what this method is asked for."""
    return bool(address) and interface_of(address).ip == wanted.ip


def _wrong(name, answer, count, of):
    more = " (as %d of %d nodes)" % (count, of) if count > 1 else ""
    if answer.unknown:
        return "on %s it cannot be told %s%s" % (name, answer.unknown, more)
    gives = "%s on %s" % (answer.address, answer.link) if answer.address else "no address"
    return "it gives %s %s%s" % (name, gives, more)


def _impossible(machines):
    if not machines:
        return "of no node it is known which address it should have"
    holders = {}
    for one in machines:
        holders.setdefault(one.wanted.ip, []).append(one.name)
    twins = next(((ip, names) for ip, names in holders.items() if len(names) > 1), None)
    if twins:
        return "%s should all have %s: name the network that the nodes reach each other by" % (", ".join(twins[1][:5]), twins[0])
    absent = next((one for one in machines if not one.host.holder(one.wanted.ip)[1] and not one.host.unread), None)
    return "no link of %s holds %s (%s)" % (absent.name, absent.wanted.ip, absent.wanted.by) if absent else ""


def _methods(machines, version, family, networks, destinations, host_ip):
    """(method, why it cannot be had) in the order of preference."""
    yield _internal_ip(machines, version, family)
    yield from _by_networks(machines, version, family, networks)
    yield _by_links(machines)
    yield from _by_ways(machines, family, destinations, host_ip)


def _internal_ip(machines, version, family):
    method = "kubernetes-internal-ip"
    if version < SINCE[method]:
        return method, "this Calico does not know it; 3.22 and newer do"
    if masks_the_internal_ip(version):
        return method, "this Calico gives the network's address in place of the node's; 3.22.4, 3.23.2 and newer do not"
    unknown = [one.name for one in machines if not [ip for ip in one.internal or () if ip_of(ip).version == family]]
    if unknown:
        return method, "the InternalIP of %s is not known" % ", ".join(unknown[:3])
    return method, ""


def _by_networks(machines, version, family, networks):
    """What the user has named, then the subnets that the nodes' addresses are in."""
    own = {_subnet(one) for one in machines}
    named = [one for one in networks or () if one.version == family]
    choices = [tuple(named)] if named else []
    choices += [tuple(sorted(own))] if None not in own and tuple(sorted(own)) not in choices else []
    for choice in choices:
        method = "cidr=" + ",".join(map(str, choice))
        yield method, "this Calico does not know it; 3.16 and newer do" if version < SINCE["cidr"] else ""
    if not choices:
        (alone, *_others) = (one for one in machines if _subnet(one) is None)
        yield "cidr=", "%s has its address %s without a network" % (alone.name, alone.wanted.ip)


def _subnet(machine):
    """The network of the address; None where the address stands alone."""
    link, _held = machine.host.holder(machine.wanted.ip)
    inside = [one for one in link.of(machine.wanted.ip.version) if one.ip == machine.wanted.ip] if link else []
    prefix = inside[0].prefix if inside else 0
    return network_of("%s/%d" % (machine.wanted.ip, prefix)) if 0 < prefix < machine.wanted.ip.max_prefixlen else None


def _by_links(machines):
    names = sorted({machine.host.holder(machine.wanted.ip)[0].name for machine in machines if machine.host.holder(machine.wanted.ip)[0]})
    return "interface=" + ",".join(map(exactly, names)), ""


def exactly(name):
    """Go's regular expression for this name alone; the comma parts the expressions of a list."""
    return "^%s$" % SPECIAL.sub(r"\\\1", name).replace(",", r"\x2c")


def _by_ways(machines, family, destinations, host_ip):
    """A node reaches itself by any address, which is no answer for another one."""
    if host_ip and family == 4:
        yield "can-reach=$(%s)" % host_ip, "" if all(one.internal for one in machines) else "not every node has an InternalIP"
    leaving = [route for one in machines for route in one.host.routes if route["to"] == "default" and route["family"] == family]
    hops = sorted({route["via"] for route in leaving if route.get("via")})
    targets = [*destinations, *hops, *(str(one.wanted.ip) for one in machines[:DESTINATIONS] if len(machines) > 1)]
    for target in dict.fromkeys(ip for ip in map(parsed_ip, map(str, targets)) if ip and ip.version == family and is_global_unicast(ip)):
        yield "can-reach=%s" % target, ""
