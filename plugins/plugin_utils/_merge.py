# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What several runs have saved, judged as if one run had read all nodes.

Rules that compare nodes have only seen the nodes of their own run, so their findings are not taken over: all facts are judged anew.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from . import _cluster, _judge
from ._policy import policy
from ._report import BUNDLE
from ._rules import RULES
from ._rules._rule import CLUSTER

FILE = "facts.json"
SAME = {"checks": ["*"], "exclude": []}  # what all runs must have been told alike; and what a bundle means that does not say
MISSING = "none of the runs that were put together has read it; see whether the run that was to do so came to its end"


class MergeError(ValueError):
    """Why these runs cannot be put together, and what to do."""


class Merged(NamedTuple):
    nodes: dict
    findings: list
    policy: dict
    cluster: dict | None
    beside: dict  # what a bundle has beside facts, policy and cluster


def beside(results, findings, nodes, given, checks, exclude):
    """What a bundle needs so that it can be put together with others: each node's own policy, what is known of nodes without facts, and the choice of rules."""
    own = [(name, result["policy"]) for name, result in results if result.get("policy") and result["policy"] != given]
    return {
        "policies": dict(own),
        "lost": [one for one in findings if one["node"] in nodes and not nodes[one["node"]]],
        "checks": list(checks),
        "exclude": list(exclude),
    }


def read(paths):
    """[(file, bundle)] of these files, and of those below these directories."""
    files = [file for path in paths for file in _below(path)]
    if not files:
        raise MergeError("no %s is in or below %s. Run preflight with nodecare_save_facts=true and a nodecare_report_dir there" % (FILE, ", ".join(paths)))
    return [(file, _bundle(file)) for file in files]


def merged(bundles, expected=()):
    """The runs as one. ``bundles`` are pairs of a name for people and a bundle; ``expected`` are nodes that one of them has to know, in their order."""
    expected = list(expected)
    told = {key: _alike(key, bundles) for key in SAME}
    nodes = _facts(bundles)
    lost = list({one["node"]: one for _name, bundle in bundles for one in bundle.get("lost") or [] if one["node"] not in nodes}.values())
    given = _first(expected, bundles).get("policy") or {}
    checked = policy(given, known_rules=list(RULES))
    chosen = _judge.select(told["checks"], told["exclude"], checked)
    policies = {name: own for _name, bundle in bundles for name, own in _policies(bundle).items() if own != given}
    by = {name: policy(policies[name], known_rules=list(RULES)) if name in policies else checked for name in nodes}
    missing = sorted(set(expected) - set(nodes) - {one["node"] for one in lost})
    lost += [_judge.judge_lost(name, "node.unreadable", MISSING, checked) for name in missing]
    cluster = max((bundle["cluster"] for _name, bundle in bundles if bundle.get("cluster")), key=lambda one: _cluster.now(one) or 0, default=None)
    findings = [one for name, facts in nodes.items() for one in _judge.judge_node(name, facts, by[name], chosen)] + lost
    findings = _judge.judge_together(findings, nodes, by, chosen, checked, cluster)
    rest = {"policies": policies, "lost": lost, "checks": told["checks"], "exclude": told["exclude"]}
    return Merged({**nodes, **dict.fromkeys(one["node"] for one in lost)}, findings, given, cluster, rest)


def _below(path):
    if os.path.isfile(path):
        return [path]
    return sorted(os.path.join(place, FILE) for place, _directories, files in os.walk(path) if FILE in files)


def _bundle(file):
    try:
        with open(file, encoding="utf-8") as opened:
            return json.load(opened)
    except OSError as error:
        raise MergeError("%s cannot be read: %s" % (file, error.strerror)) from None
    except ValueError:
        raise MergeError("%s is no JSON: its run did not come to its end. Start that one again" % file) from None


def _facts(bundles):
    nodes, origin = {}, {}
    for name, bundle in bundles:
        if not isinstance(bundle, dict) or bundle.get("schema") != BUNDLE or not isinstance(bundle.get("nodes"), dict):
            raise MergeError("%s are no facts that a run has saved (schema %s)" % (name, BUNDLE))
        if CLUSTER in bundle["nodes"]:
            raise MergeError(
                "a node of %s is called %r, as findings about the whole cluster are: give its host another name and read it again" % (name, CLUSTER)
            )
        twice = sorted(set(nodes) & set(bundle["nodes"]))
        if twice:
            raise MergeError("%s is in %s and in %s: leave out the older one" % (twice[0], origin[twice[0]], name))
        nodes.update(bundle["nodes"])
        origin.update(dict.fromkeys(bundle["nodes"], name))
    return nodes


def _first(expected, bundles):
    """The run that read the first of all hosts: by that one's policy a run that had read them all would have compared the nodes."""
    for name in expected:
        for _name, bundle in bundles:
            if name in bundle["nodes"] or any(one["node"] == name for one in bundle.get("lost") or []):
                return bundle
    return bundles[0][1] if bundles else {}


def _policies(bundle):
    """{node: its own policy}, that of its run where it has none."""
    own = bundle.get("policies") or {}
    return {name: own.get(name, bundle.get("policy") or {}) for name in bundle["nodes"]}


def _alike(key, bundles):
    """What all runs were told; what was looked for in one and not in another is not put into one report."""
    values = [(name, bundle.get(key, SAME[key]) if isinstance(bundle, dict) else SAME[key]) for name, bundle in bundles]
    other = next((name for name, value in values if value != values[0][1]), None)
    if other:
        raise MergeError("%s and %s were judged by different %s: run them with the same settings, or judge each by itself" % (values[0][0], other, key))
    return values[0][1] if values else SAME[key]
