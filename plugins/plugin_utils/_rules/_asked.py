# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What one rule takes from another: a symptom in the cluster is explained by what is wrong on the node."""

from __future__ import annotations

from typing import NamedTuple

from ._rule import RULES, Verdict
from .runtime import _words, settings


class Cause(NamedTuple):
    """A verdict of another rule, with the remedy that it stands for."""

    rule_id: str
    verdict: Verdict

    @property
    def remedy(self):
        return self.verdict.remedy or RULES[self.rule_id].remedy


def causes(rule_ids, facts, policy, statuses=("fail",)):
    """What those rules find wrong, in their order; a rule whose facts are not there says nothing."""
    found = [Cause(rule_id, verdict) for rule_id in rule_ids for verdict in _verdicts(RULES[rule_id], facts, policy) if verdict.status in statuses]
    return [one for one in found if not (_is_of_docker(one) and _lives_without_docker(facts))]


def _is_of_docker(cause):
    return cause.rule_id == "runtime.docker_cannot_reach_containerd" or cause.verdict.evidence.get("runtime") == "docker"


def _lives_without_docker(facts):
    """Whether the kubelet's own runtime answers: a docker beside it, though it hangs, is then no cause of anything in the cluster."""
    runtime, kubelet = facts.get("runtime") or {}, facts.get("kubelet") or {}
    answers = runtime.get("answers") or {}
    wanted = _words.pointed_at(runtime.get("endpoints"), kubelet.get("installed"), kubelet.get("config")) or runtime.get("crictl") or []
    name = settings.serving(answers, runtime.get("config") or {}, wanted)
    return name not in (None, "docker") and (answers.get(name) or {}).get("state") == "answered"


def _verdicts(rule, facts, policy):
    needed = [_at(facts, path) for path in rule.needs]
    if any(value is None for value in needed) or policy.disables(rule.id):
        return []
    said = rule.alone(*needed, *(_at(facts, path) for path in rule.uses), policy)
    return [said] if isinstance(said, Verdict) else list(said or [])


def _at(facts, path):
    for step in path.split("."):
        facts = facts.get(step) if isinstance(facts, dict) else None
    return facts
