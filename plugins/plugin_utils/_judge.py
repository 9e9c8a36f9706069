# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Facts in, findings out: the only place where rules are called."""

from __future__ import annotations

import re
from functools import lru_cache

from ._policy import matches
from ._rules import RULES
from ._rules._rule import CLUSTER, Verdict, finding, skip, unknown
from ._rules.node import lost
from ._with_cluster import is_machine, joined

ORDER = ("fail", "warn", "unknown", "pass", "skip")  # worst first
OUTSIDE = ("node.unreachable", "node.unreadable")


class SelectionError(ValueError):
    """A check that no rule answers to."""


def select(checks=("*",), exclude=(), policy=None):
    """The ids of the rules that the user asks for, in the catalogue's order, site rules last."""
    known = list(RULES) + [site.rule.id for site in (policy.site_rules if policy else ())]
    for pattern in (*checks, *exclude):
        if pattern != "site" and not any(matches(rule_id, pattern) for rule_id in known):
            raise SelectionError(
                "%r matches no rule. Areas: %s. Rules: %s" % (pattern, ", ".join(sorted({one.area for one in RULES.values()})), ", ".join(sorted(known)))
            )
    return [i for i in known if any(matches(i, pattern) for pattern in checks) and not any(matches(i, pattern) for pattern in exclude)]


def areas(ids, policy=None):
    """The areas that have to be probed so that these rules can be judged."""
    needed = {area for rule_id in ids if rule_id in RULES for area in RULES[rule_id].areas}
    named = {path.split(".")[0] for site in (policy.site_rules if policy else ()) if site.rule.id in ids for path in site.paths}
    return sorted(needed | named)


def judge_node(name, facts, policy, ids):
    """Every finding about one node by itself."""
    findings = []
    for rule_id in ids:
        rule = RULES.get(rule_id)
        if rule and rule.alone and rule_id not in OUTSIDE:
            findings.extend(_findings(rule, name, facts, policy))
    return findings + [finding(site.rule, name, _by_site(site, facts, policy), policy) for site in policy.site_rules if site.rule.id in ids]


def judge_lost(name, rule_id, why, policy):
    """The finding about a node that gave no facts."""
    return finding(RULES[rule_id], name, lost(rule_id, why), policy)


def judge_with_cluster(nodes, policies, cluster, ids, policy):
    """Findings of the rules that ask the cluster, about it and about each of its nodes.

    Of a Node that no machine of the run stands for, only what is wrong is told.
    """
    asking = [RULES[rule_id] for rule_id in ids if rule_id in RULES and RULES[rule_id].asks_cluster]
    views = joined(nodes, cluster)
    findings = []
    for name, facts in views.items():
        able = [rule for rule in asking if rule.alone and (is_machine(facts) or rule.needs_cluster_only)]
        findings += [one for rule in able for one in _findings(rule, name, facts, policies.get(name, policy))]
    across = judge_across(views, {name: policies.get(name, policy) for name in views}, [rule.id for rule in asking], policy)
    told = [one for one in merge(findings, across) if is_machine(views[one["node"]]) or one["status"] in ("fail", "warn")]
    alone = {CLUSTER: cluster, "problems": cluster.get("problems") or []}
    return told + [one for rule in asking if rule.of_cluster for one in _findings(rule, CLUSTER, alone, policy)]


def judge_across(nodes, policies, ids, policy):
    """Findings that need several nodes' facts. Those of a rule that was already judged alone replace the earlier ones."""
    findings = []
    for rule_id in ids:
        rule = RULES.get(rule_id)
        if rule and rule.across:
            for name, verdicts in _across(rule, nodes, policies, policy).items():
                findings.extend(finding(rule, name, verdict, policies[name]) for verdict in verdicts)
    return findings


def judge(nodes, policies, ids, policy, cluster=None):
    """Every finding about a set of nodes: ``nodes`` maps a name to its facts, ``policies`` to its policy."""
    without = left_without(cluster, nodes, ids)
    findings = [one for name, facts in nodes.items() for one in judge_node(name, facts, policies[name], without)]
    return judge_together(findings, nodes, policies, ids, policy, cluster)


def judge_together(findings, nodes, policies, ids, policy, cluster=None):
    """What was found on each node by itself, with what only several nodes or the cluster can tell."""
    findings = merge(findings, judge_across(nodes, policies, left_without(cluster, nodes, ids), policy))
    return merge(findings, judge_with_cluster(nodes, policies, cluster, ids, policy)) if cluster else findings


def left_without(cluster, nodes, ids):
    """The rules to judge without the cluster. Where it was read, those that ask it have the last word on every machine: they are judged once, with it."""
    if not cluster or not all(map(is_machine, nodes.values())):
        return ids
    return [rule_id for rule_id in ids if rule_id not in RULES or not RULES[rule_id].asks_cluster]


def merge(findings, newer):
    """Findings of the same rule and node give way to newer ones."""
    replaced = {(one["id"], one["node"]) for one in newer}
    return [one for one in findings if (one["id"], one["node"]) not in replaced] + newer


def summary(findings):
    counts = dict.fromkeys(ORDER, 0)
    for one in findings:
        counts[one["status"]] += 1
    return {**counts, "worst": next((status for status in ORDER if counts[status]), "pass")}


def _findings(rule, name, facts, policy):
    return [finding(rule, name, verdict, policy) for verdict in _alone(rule, facts, policy)]


def _alone(rule, facts, policy):
    if policy.disables(rule.id):
        return [skip("disabled by policy")]
    outside = _outside(rule, facts)
    if outside:
        return [outside]
    needed = [_at(facts, path) for path in rule.needs]
    missing = [path for path, value in zip(rule.needs, needed) if value is None]
    if missing:
        return [_not_judged(facts, missing)]
    verdicts = _call(rule, rule.alone or rule.of_cluster, *needed, *(_at(facts, path) for path in rule.uses), policy)
    if all(verdict.status == "pass" for verdict in verdicts):
        proven = verdicts and all(verdict.sure for verdict in verdicts)
        hidden = _because(facts, rule.needs if proven else (*rule.needs, *rule.uses))
        if hidden:
            return [unknown(hidden)]
    return verdicts or [Verdict("pass", "nothing found")]


def _not_judged(facts, missing):
    """Why a rule has no verdict where it lacks these facts."""
    cluster = facts.get(CLUSTER)
    if cluster is None and any(path.split(".")[0] == CLUSTER for path in missing):
        return skip("no cluster was read")
    if cluster and cluster.get("nodes") is not None and cluster.get("node", ...) is None and any(_touches(path, CLUSTER + ".node") for path in missing):
        return skip("this machine is no node of the cluster")
    return unknown(_because(facts, missing) or "%s was not read" % " and ".join(missing))


def _by_site(site, facts, policy):
    if policy.disables(site.rule.id):
        return skip("disabled by policy")
    verdict = site.verdict(facts)
    hidden = _because(facts, site.paths) if verdict.status == "pass" else None
    return unknown(hidden) if hidden else verdict


def _across(rule, nodes, policies, policy):
    """{node: verdicts} for every node, so that silence about one is never read as a pass without its facts."""
    answers, able = {}, {}
    for name, facts in nodes.items():
        needed = [_at(facts, path) for path in rule.needs]
        if policies[name].disables(rule.id):
            answers[name] = [skip("disabled by policy")]
        elif any(value is None for value in needed):
            answers[name] = [_not_judged(facts, [path for path, value in zip(rule.needs, needed) if value is None])]
        else:
            known = needed + [_at(facts, path) for path in rule.uses]
            able[name] = known[0] if len(known) == 1 else known
    said = _call(rule, rule.across, able, policy) if able else {}
    if isinstance(said, list):  # the rule broke
        said = dict.fromkeys(able, said)
    for name in able:
        verdicts = _list(said.get(name))
        if verdicts or not rule.alone:
            answers[name] = verdicts or [Verdict("pass", "nothing found")]
    if rule.alone:  # its own finding stands where comparing adds nothing
        return {name: answers[name] for name in able if name in answers}
    return answers


def _call(rule, function, *arguments):
    try:
        said = function(*arguments)
        return said if isinstance(said, dict) else _list(said)
    except Exception as error:  # pylint: disable=broad-except
        return [unknown("the rule %s broke: %s: %s. Please report this with the node's facts" % (rule.id, type(error).__name__, error))]


def _list(said):
    if said is None:
        return []
    return [said] if isinstance(said, Verdict) else list(said)


def _outside(rule, facts):
    """A skip where a version is outside the rule's range, and unknown where it could not be read."""
    for path, wanted in rule.versions.items():
        version = _at(facts, path)
        if version is None:
            because = _because(facts, [path])
            return unknown(because) if because else skip("%s is not installed" % path.split(".")[0])
        if not within(version, wanted):
            return skip("only for %s %s, this is %s" % (path.split(".")[0], wanted, version))
    return None


def within(version, wanted):
    """Whether a version is inside a range such as ``>=1.35,<1.38``; only the parts that the bound names are compared."""
    for bound in wanted.split(","):
        sign, number = re.match(r"\s*(>=|<=|<|>|==)\s*v?([0-9.]+)", bound).groups()
        limit = [int(part) for part in number.split(".")]
        have = [int(part) for part in re.findall(r"\d+", str(version))[: len(limit)]]
        if not {">=": have >= limit, "<=": have <= limit, "<": have < limit, ">": have > limit, "==": have == limit}[sign]:
            return False
    return True


def _at(facts, path):
    try:
        for step in path.split("."):
            facts = facts[step]
    except (KeyError, TypeError):  # there is no such thing, or nothing can be in it
        return None
    return facts


def _because(facts, paths):
    """In one sentence, the problems met while these facts were gathered."""
    met = [one for one in facts.get("problems") or [] if any(_touches(one["fact"], path) for path in paths)]
    if not met:
        return None
    reasons = "; ".join("%(what)s: %(why)s" % one for one in met[:3]) + ("; and %d more" % (len(met) - 3) if len(met) > 3 else "")
    unprivileged = any(one["kind"] == "denied" for one in met) and _at(facts, "taken.euid") != 0
    return "cannot tell: %s%s" % (reasons, " (read without root; run with become)" if unprivileged else "")


@lru_cache(1 << 12)
def _touches(fact, path):
    return (fact + ".").startswith(path + ".") or (path + ".").startswith(fact + ".")
