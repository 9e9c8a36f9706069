# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Findings brought together the way people read them: by rule, by what is said, by the reason why nothing can be said."""

from __future__ import annotations

import json
import shlex

from .._rules._rule import CLUSTER, COLLECTION, EVERYWHERE
from .words import safe

NEED_ROOT = "read without root; run with become"


def by_rule(findings):
    """Failures and warnings as [(rule id, its findings)], worst first, then by the number of nodes."""
    rules = {}
    for one in findings:
        if one["status"] in ("fail", "warn"):
            rules.setdefault(one["id"], []).append(one)
    place = {"fail": 0, "warn": 1, "error": 0, "warning": 1, "info": 2}
    return sorted(rules.items(), key=lambda pair: (place[pair[1][0]["status"]], place[pair[1][0]["severity"]], -len(nodes_of(pair[1])), pair[0]))


def alike(findings, *keys):
    """Findings that say the same, as [(what they say, they)], in the order in which they come."""
    groups = {}
    for one in findings:
        groups.setdefault(tuple(key(one) for key in keys), []).append(one)
    return list(groups.items())


def unknowns(findings):
    """What could not be told, as [(reason, rule ids, nodes)]: the reasons that hide most first."""
    groups = alike((one for one in findings if one["status"] == "unknown"), _reason)
    reasons = [(reason, list(dict.fromkeys(one["id"] for one in them)), nodes_of(them)) for (reason,), them in groups]
    return sorted(reasons, key=lambda one: -len(one[1]) * len(one[2]))


def _reason(one):
    return NEED_ROOT if NEED_ROOT in one["message"] else one["message"].removeprefix("cannot tell: ")


def nodes_of(findings):
    return list(dict.fromkeys(one["node"] for one in findings))


def status(one):
    """``fail``, and how much that matters where it is less than an error."""
    return one["status"] if one["severity"] == "error" or one["status"] != "fail" else "%s (%s)" % (one["status"], one["severity"])


def commands(findings):
    """What puts these findings right, as [(command, warnings, nodes)]: one for all nodes where a playbook does it."""
    groups = alike((one for one in findings if one["remedy"]), lambda one: json.dumps(_same(one["remedy"]), sort_keys=True, default=str))
    return [(command(them[0]["remedy"], nodes_of(them)), cautions(them[0]["remedy"]), nodes_of(them)) for _remedy, them in groups]


def _same(remedy):
    """What makes two remedies one: a playbook is the same whatever would have to be done by hand on each node."""
    return {**remedy, "manual": None} if remedy["playbook"] else remedy


def command(remedy, nodes):
    if not remedy["playbook"]:
        return safe(remedy["manual"] or "")
    everywhere = remedy["playbook"].removeprefix(COLLECTION) in EVERYWHERE
    limit = ",".join(node for node in nodes if node != CLUSTER and not everywhere)
    words = ["ansible-playbook", remedy["playbook"], *(["--limit", limit] if limit else [])]
    if remedy["vars"]:
        words += ["-e", json.dumps(remedy["vars"], default=str)]
    return safe(shlex.join(words))


def cautions(remedy):
    return [text for key, text in (("disruptive", "disturbs running pods"), ("reboot", "needs a reboot")) if remedy[key]]
