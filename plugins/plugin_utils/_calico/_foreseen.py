# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One family's address as calico-node would settle it at its next start, with reasons and with what could change it."""

from __future__ import annotations

from ._host import host, parsed_either
from ._methods import TERMINATING, Asked, detect
from ._stability import runner_up, threats
from ._startup import NAMES, Situation, poll_seconds, start_up
from ._versions import version as numbers


def foreseen(links, problems, method, version, family, internal, stored, said, others, stored_links, reached, poll_interval):
    here, known = host(links, problems), numbers(version)
    asked = Asked(here, family, known, internal, reached)
    found = detect(method, asked)
    wanted = said == "autodetect" or (said == "" and not stored and family == 4)
    if wanted and found.unknown:
        settled = {"address": stored, "source": "stored" if stored else "nothing", "changed": None, "log": [], "crash": None, "conflicts": []}
    else:
        settled = _settled(asked, method, said, stored, others, stored_links)
    dangers = threats(method, found, asked) if wanted else []
    return {
        **settled,
        "link": _link_of(settled["address"], here),
        "detected": found.address or "",
        "candidates": found.candidates,
        "stable": not dangers if wanted and found.address else None,
        "threats": dangers,
        "runner_up": runner_up(found, method, asked, detect) if wanted else None,
        "poll_seconds": poll_seconds(poll_interval, known) if said == "autodetect" else None,
        "unknown": found.unknown if wanted else "",
    }


def _settled(asked, method, said, stored, others, stored_links):
    family, name = asked.family, NAMES[asked.family]
    environment = {name: said, name + "_AUTODETECTION_METHOD": method}
    held = {node: {family: address} for node, address in others.items()}
    kept = {4: "", 6: "", family: stored} if stored else None
    outcome = start_up(Situation(asked.host, asked.version, environment, kept, held, asked.internal, stored_links, asked.reached, families=(family,)))
    address, source = outcome.addresses[family], outcome.sources[family]
    if outcome.ends and family not in outcome.cleared:
        address, source = stored, "stored"  # nothing is written by one that ends
    return {
        "address": address,
        "source": source if address else "nothing",
        "changed": address != stored,
        "log": [text for _level, text in outcome.log],
        "crash": _crash(outcome, family),
        "conflicts": [node for _family, node in outcome.conflicts],
    }


def _crash(outcome, family):
    if not outcome.ends:
        return None
    said = [text for level, text in outcome.log if (level, text) != TERMINATING]
    conflicts = [text for text in said if "is already using the IPv%d address" % family in text]
    return {"message": (conflicts or said or [TERMINATING[1]])[-1], "exit_code": 1, "takes_back": family in outcome.cleared}


def _link_of(address, here):
    found = parsed_either(address) if address else None
    link = here.holder(found[0])[0] if found else None
    return link.name if link else None
