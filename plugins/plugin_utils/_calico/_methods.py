# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's methods of finding a node's address, each as its own code goes about it, with what it says on the way."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

from . import _re2
from ._host import is_global_unicast, network, parsed_ip
from ._reach import reach
from ._versions import NAMES_THE_METHOD_RIGHT, excluded, masks_the_internal_ip

INVALID_REGEX = "Invalid interface regex"
TERMINATING = ("warning", "Terminating")


class Asked(NamedTuple):
    """What a detection is about. ``internal`` are the InternalIPs of the Kubernetes Node, None where there is no Node."""

    host: object
    family: int
    version: tuple
    internal: object = None
    reached: object = None


class Detection:
    """What a method finds, and how it comes to it; ``unknown`` says why that cannot be told from the facts."""

    def __init__(self):
        self.address = None
        self.link = None
        self.candidates = []
        self.log = []
        self.ends = False
        self.unknown = ""

    def say(self, level, text):
        self.log.append((level, text))

    def tried(self, link, address, why, taken=False):
        self.candidates.append({"link": link, "address": address, "taken": taken, "why": why})

    def take(self, link, address, why):
        self.address, self.link = address, link
        self.tried(link, address, why, taken=True)


class Filter(NamedTuple):
    """Which links and addresses a method looks at."""

    include: tuple = ()
    exclude: tuple = ()
    inside: tuple = ()

    def verdict(self, name):
        """Why a link is passed over by its name, or None; a pattern is only named, the decision is that of all together, as in Calico."""
        return _verdict(self.include, self.exclude, name)

    def within(self, ip):
        return not self.inside or any(ip in one for one in self.inside)


@lru_cache(maxsize=1 << 14)
def _verdict(include, exclude, name):
    """Many nodes have links of the same names."""
    included, excluded_by = _any(include), _any(exclude)
    if included and not included(name):
        return "none of %s is found in its name" % ", ".join(include)
    if excluded_by and excluded_by(name):
        return "its name is excluded by %s" % next((one for one in exclude if _alone(one)(name)), "the exclusions")
    return None


def detect(method, asked):
    """What this method finds on this node."""
    for prefix, since, find in METHODS:
        if asked.version >= since and (method in ("", "first-found") if prefix is None else method.startswith(prefix)):
            found = Detection()
            find(found, method[len(prefix or method) :], asked)
            found.unknown = found.unknown or asked.host.unread
            return found
    found = Detection()
    found.say("error", "Invalid IP %s method: %s" % ("autodetection" if asked.version >= NAMES_THE_METHOD_RIGHT else "autodection", method))
    found.ends = True
    return found


def limits(method, version):
    """The Filter of a method that goes through the links, or None for another one."""
    kind, equals, said = method.partition("=")
    if method in ("", "first-found"):
        return Filter(exclude=excluded(version))
    if equals and kind == "interface":
        return Filter(include=_listed(said))
    if equals and kind == "skip-interface":
        return Filter(exclude=(*excluded(version), *_listed(said)))
    if equals and kind == "cidr":
        return Filter(inside=tuple(map(network, _listed(said))))
    return None


def _first_found(found, _said, asked):
    _go_through(found, limits("", asked.version), asked, "")


def _interface(found, said, asked):
    _go_through(found, limits("interface=" + said, asked.version), asked, " using interface regexes [%s]" % " ".join(_listed(said)))


def _skip_interface(found, said, asked):
    _go_through(found, limits("skip-interface=" + said, asked.version), asked, " while excluding [%s]" % " ".join(_listed(said)))


def _cidr(found, said, asked):
    for one in _listed(said):
        if network(one) is None:
            found.say("error", "Invalid CIDR %s for IP autodetection method: cidr=%s" % (json.dumps(one, ensure_ascii=False), said))
            return
    limit = limits("cidr=" + said, asked.version)
    _go_through(found, limit, asked, " using interface cidr [%s]" % " ".join(map(str, limit.inside)))


def _can_reach(found, said, asked):
    source, error, found.unknown = reach(said, asked.family, asked.host, asked.reached)
    if found.unknown:
        return
    if source is not None:
        link, held = asked.host.holder(source)
        if held:
            found.take(link.name, held.text(asked.version), "packets to %s leave with it" % (said or "the node itself"))
            return
        error = "autodetected IPv%d address does not match any addresses found on local interfaces: %s" % (asked.family, source)
    found.say("warning", "Unable to auto-detect IPv%d address by connecting to %s: %s" % (asked.family, said, error))


def _kubernetes_internal_ip(found, _said, asked):
    if asked.internal is None:
        found.say("error", "Cannot use method 'kubernetes-internal-ip' when not running on a Kubernetes cluster")
        return
    addresses = [one for one in map(parsed_ip, asked.internal) if one and one.version == asked.family]
    if not addresses:
        found.say("error", "Unable to parse CIDR  : invalid CIDR address: ")
        return
    wanted = addresses[0]
    for one in addresses[1:]:
        found.tried(None, str(one), "%s comes before it among the Node's InternalIPs" % wanted)
    text, link = local_cidr(str(wanted), asked, found.log)
    if link is None:
        found.tried(None, str(wanted), "the Node's InternalIP is on no link of this node")
        found.say("error", "Unable to parse CIDR %s : invalid CIDR address: %s" % (wanted, wanted))
        return
    if masks_the_internal_ip(asked.version):
        text = str(network(text))
        found.take(link.name, text, "the Node's InternalIP %s is on it, but this version masks it" % wanted)
    else:
        found.take(link.name, text, "the Node's InternalIP is on it")


METHODS = (
    (None, (3, 2, 0), _first_found),
    ("interface=", (3, 2, 0), _interface),
    ("cidr=", (3, 16, 0), _cidr),
    ("can-reach=", (3, 2, 0), _can_reach),
    ("skip-interface=", (3, 2, 0), _skip_interface),
    ("kubernetes-internal-ip", (3, 22, 0), _kubernetes_internal_ip),
)


def local_cidr(text, asked, log):
    """(an address with the mask that its link gives it, that link); the bare address where no link has it."""
    link, held = asked.host.holder(parsed_ip(text))
    if held:
        return held.text(asked.version), link
    log.append(("warning", "Unable to find matching host interface for IP %s" % text))
    return text, None


def _listed(said):
    return tuple(re.split(r"[\t\n\f\r ]*,[\t\n\f\r ]*", said))


def _go_through(found, limit, asked, how):
    """Go through the links as Calico does, and say what it says where nothing is taken."""
    try:
        verdicts = {link.name: limit.verdict(link.name) for link in asked.host.links}
        nothing_left = all(verdicts.values()) and all(limit.verdict(name) for name in asked.host.others)
    except _re2.Refused as refused:
        found.say("warning", INVALID_REGEX)
        error = str(refused)
    except _re2.Untold as untold:
        found.unknown = "what Go's regular expressions make of %s" % untold
        return
    else:
        for link in asked.host.backwards():
            _try(found, link, verdicts[link.name], limit, asked)
        error = "no valid host interfaces found" if nothing_left else "no valid IPv%d addresses found on the host interfaces" % asked.family
    if not found.address:
        found.say("warning", "Unable to auto-detect an IPv%d address%s: %s" % (asked.family, how, error))


def _try(found, link, verdict, limit, asked):
    addresses = link.of(asked.family)
    if verdict or not addresses:
        found.tried(link.name, addresses[0].text(asked.version) if addresses else None, verdict or "it has no IPv%d address" % asked.family)
    else:
        for held in addresses:
            text = held.text(asked.version)
            if not is_global_unicast(held.ip):
                found.tried(link.name, text, "it is not a global unicast address")
            elif not limit.within(held.ip):
                found.tried(link.name, text, "it is not inside %s" % ", ".join(map(str, limit.inside)))
            elif found.address:
                found.tried(link.name, text, "%s on %s comes before it" % (found.address, found.link))
            else:
                found.take(link.name, text, "it is the first that qualifies, from the end of the kernel's list")
    if link.cut and not verdict and not found.address and not found.unknown:
        found.unknown = "%s holds more addresses than the facts list" % link.name


def _any(patterns):
    """Joined first and compiled then, as Calico does, so that (eth0,eth1) is refused with the words of the whole."""
    return _cached("(" + ")|(".join(patterns) + ")") if patterns else None


def _alone(pattern):
    try:
        return _cached(pattern)
    except _re2.Refused:
        return lambda _name: False


_COMPILED = {}


def _cached(pattern):
    if pattern not in _COMPILED:
        _COMPILED[pattern] = _re2.compiled(pattern)
    return _COMPILED[pattern]
