# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What start-up, and later the address monitor at every poll, makes of the environment and of what is stored."""

from __future__ import annotations

import re
from typing import NamedTuple

from ._host import parsed_either, parsed_ip
from ._methods import TERMINATING, Asked, detect, local_cidr
from ._versions import (
    ERRORS_ARE_WRAPPED,
    LINKS_ARE_STORED,
    MASK_OF_LINK,
    MONITOR,
    NEEDS_ONE_ADDRESS,
    NONE_KEEPS,
    passes_over,
    skips_without_backend,
)

NAMES = {4: "IP", 6: "IP6"}
POLL_SECONDS = 60.0
NO_ADDRESS = "No IPv4 or IPv6 addresses configured or detected, required for Calico networking"
UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Ended(Exception):
    """calico-node ends with exit code 1 here."""


class Situation(NamedTuple):
    """``stored`` is what the datastore has for this node, {4: …, 6: …}, or None before the first start; ``others`` the same by node's name.

    With one family only, the other one's part is left out, and that there is no address at all ends nothing unless it is IPv4's.
    """

    host: object
    version: tuple
    environment: dict
    stored: object = None
    others: object = None
    internal: object = None
    stored_links: object = None
    reached: object = None
    name: str = "this node"
    families: tuple = (4, 6)

    def asked(self, family):
        return Asked(self.host, family, self.version, self.internal, self.reached)


class Outcome:
    """The addresses with which the node goes on, or how calico-node ends; what it logs as a warning or an error, in order."""

    def __init__(self, stored):
        self.addresses = dict(stored or {4: "", 6: ""})
        self.sources = dict.fromkeys(self.addresses, "stored")
        self.detections = {}
        self.log = []
        self.changed = False
        self.ends = False
        self.cleared = []
        self.conflicts = []

    def say(self, level, text):
        self.log.append((level, text))

    @property
    def unknown(self):
        return next((one.unknown for one in self.detections.values() if one.unknown), "")


def start_up(situation):
    """What Calico's own code decides, step by step, because a step that ends it keeps the later ones from happening."""
    outcome = Outcome(situation.stored)
    backend = situation.environment.get("CALICO_NETWORKING_BACKEND")
    if backend == "none" and skips_without_backend(situation.version):
        return outcome
    try:
        _configure(outcome, situation)
        if _has_none(outcome, situation, backend):
            return outcome
        if outcome.changed and situation.environment.get("DISABLE_NODE_IP_CHECK") != "true":
            _check_others(outcome, situation)
    except Ended as ended:
        if ended.args and situation.version >= ERRORS_ARE_WRAPPED:
            outcome.say("error", "Failed to configure IP addresses")
        outcome.say(*TERMINATING)
        outcome.ends = True
    return outcome


def _configure(outcome, situation):
    before = dict(outcome.addresses)
    for family in situation.families:
        _configure_family(outcome, family, situation)
    if situation.version < NEEDS_ONE_ADDRESS and _is_without_address(outcome, situation):
        outcome.say("warning", "No IP Addresses configured, and autodetection is not enabled")
        raise Ended()
    outcome.changed = outcome.addresses != before or (situation.version >= LINKS_ARE_STORED and _links_changed(situation))


def _configure_family(outcome, family, situation):
    """IPv4 is looked for where nothing is said and nothing stored, IPv6 only where that is asked for."""
    said = situation.environment.get(NAMES[family], "")
    if said == "autodetect" or (said == "" and family == 4 and not outcome.addresses[4]):
        _autodetect(outcome, family, situation)
    elif said == "none":
        if outcome.addresses[family] and situation.version >= NONE_KEEPS:
            _validate(outcome, outcome.addresses[family], situation)
    else:
        if said:
            masked = family == 4 and situation.version >= MASK_OF_LINK
            _take_environment(outcome, family, _with_mask(outcome, said, situation) if masked else said)
        _validate(outcome, outcome.addresses[family], situation)


def _autodetect(outcome, family, situation):
    method = situation.environment.get(NAMES[family] + "_AUTODETECTION_METHOD", "")
    found = detect(method, situation.asked(family))
    outcome.detections[family] = found
    outcome.log += found.log
    if found.ends:
        raise Ended()
    if found.address:
        outcome.addresses[family], outcome.sources[family] = found.address, "detected"
    elif not outcome.addresses[family]:
        article = "an IPv%d address" % family
        outcome.say(
            "warning", "Couldn't autodetect %s. If auto-detecting, choose a different autodetection method. Otherwise provide an explicit address." % article
        )
        _clear(outcome, [one for one in (4, 6) if situation.environment.get(NAMES[one]) == "autodetect"], situation)
        raise Ended("failed to autodetect %s" % article)
    else:
        outcome.say("warning", "Autodetection of IPv%d address failed, keeping existing value: %s" % (family, outcome.addresses[family]))
        _validate(outcome, outcome.addresses[family], situation)


def _with_mask(outcome, said, situation):
    """Newer Calico gives a bare address the mask of the link that holds it."""
    if "/" in said:
        return said
    ip = parsed_ip(said)
    if ip is None or ip.version != 4:
        dot = "." if situation.version < LINKS_ARE_STORED else ""
        outcome.say("warning", "Attempt to get the local CIDR: %s failed, %s is invalid%s" % (said, said, dot))
        return said
    text, link = local_cidr(said, situation.asked(4), outcome.log)
    return text if link else said


def _take_environment(outcome, family, text):
    found = parsed_either(text)
    if found is None or found[0].version != family:
        outcome.say("warning", "Environment does not contain a valid IPv%d address: %s=%s" % (family, NAMES[family], text))
        raise Ended()
    outcome.addresses[family], outcome.sources[family] = "%s/%d" % found, "environment"


def _validate(outcome, text, situation):
    """An address that no link has is used all the same."""
    if not text:
        return
    found = parsed_either(text)
    if found is None:
        outcome.say("error", "Failed to parse autodetected CIDR '%s'" % text)
        raise Ended()
    if not situation.host.holder(found[0])[1]:
        outcome.say("warning", "Unable to confirm IPv%d address %s is assigned to this host" % (found[0].version, found[0]))


def _is_without_address(outcome, situation):
    """How Calico before 3.16.3 saw it: by the environment, and before 3.16.0 whatever is stored."""
    off = 4 in situation.families and situation.environment.get("IP") == "none" and situation.environment.get("IP6", "") in ("", "none")
    return off and (situation.version < NONE_KEEPS or not any(outcome.addresses.values()))


def _has_none(outcome, situation, backend):
    if any(outcome.addresses.values()) or situation.version < NEEDS_ONE_ADDRESS or 4 not in situation.families:
        return False
    if backend != "none":
        if situation.version < ERRORS_ARE_WRAPPED:
            outcome.say("error", NO_ADDRESS)
        raise Ended(NO_ADDRESS)
    outcome.say("warning", "No IPv4 or IPv6 addresses configured or detected. Some features may not work properly.")
    return True


def _links_changed(situation):
    """Since 3.31 the other links are stored as well, and any change of them has all nodes compared."""
    families = [family for family in (4, 6) if situation.environment.get(NAMES[family], "") not in ("", "none")]
    return _stored_form(situation, families) != sorted(situation.stored_links or [], key=lambda link: link["name"])


def _stored_form(situation, families):
    if not families:
        return []
    kept = [link for link in situation.host.backwards() if not passes_over(link.name, situation.version)]
    shown = [{"name": link.name, "addresses": [str(one.ip) for one in link.held if one.ip.version in families]} for link in kept]
    shown += [{"name": name, "addresses": []} for name in situation.host.others if not passes_over(name, situation.version)]
    return sorted(shown, key=lambda link: link["name"])


def _check_others(outcome, situation):
    """Any other node with the same address ends start-up, and the address that was detected is taken back."""
    try:
        _compare(outcome, situation)
    except Ended:
        _take_back(outcome, situation)
        raise
    if outcome.conflicts:
        _take_back(outcome, situation)
        raise Ended("conflicting node detected")


def _compare(outcome, situation):
    ours = {family: _ip_of(outcome, text, family, situation.name) for family, text in outcome.addresses.items()}
    for name, held in (situation.others or {}).items():
        theirs = {family: _ip_of(outcome, held.get(family, ""), family, name) for family in (4, 6)}
        for family in (4, 6):
            if ours[family] and ours[family] == theirs[family]:
                outcome.say("warning", "Calico node '%s' is already using the IPv%d address %s." % (name, family, ours[family]))
                outcome.conflicts.append((family, name))
    before = {family: _ip_of(outcome, (situation.stored or {}).get(family, ""), family, situation.name) for family in (4, 6)}
    for family in (4, 6):
        if before[family] and ours[family] and before[family] != ours[family]:
            outcome.say("warning", "IPv%d address has changed. This could happen if there are multiple nodes with the same name." % family)


def _take_back(outcome, situation):
    taken = sorted({family for family, _name in outcome.conflicts})
    _clear(outcome, [one for one in taken if situation.environment.get(NAMES[one]) == "autodetect"], situation)


def _ip_of(outcome, text, family, name):
    if not text:
        return None
    found = parsed_either(text)
    if found is None:
        outcome.say("error", "Error parsing IPv%d CIDR '%s' for node '%s'" % (family, text, name))
        raise Ended("conflicting node detected")
    return found[0]


def _clear(outcome, families, situation):
    """What is stored is taken back before the end, so that the node is left without an address."""
    if situation.stored is not None:
        for family in families:
            outcome.addresses[family] = ""
            outcome.cleared.append(family)


def poll_seconds(text, version):
    """How often the address monitor looks again: AUTODETECT_POLL_INTERVAL as Go reads durations; None where there is no monitor."""
    if version < MONITOR:
        return None
    seconds = _duration(text or "")
    return POLL_SECONDS if seconds is None else seconds


def _duration(text):
    found = re.match(r"([-+]?)(0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)\Z", text, re.ASCII)
    if not found:
        return None
    parts = re.findall(r"(\d+\.?\d*|\.\d+)([a-z\u00b5\u03bc]+)", found.group(2))
    return (-1 if found.group(1) == "-" else 1) * sum(float(count) * UNITS[unit] for count, unit in parts)
