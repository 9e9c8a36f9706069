# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a rule is, and the words with which it answers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import cached_property

RULES = {}
PLAYBOOKS = set()  # those that a remedy names
COLLECTION = "nodecare.kubernetes."
EVERYWHERE = ("repair_autodetection", "repair_probes")  # playbooks that change one setting for all nodes, and so have to see all of them
CLUSTER = "cluster"  # beside a node's facts: what the API server knows; and the name in findings about the cluster as a whole


@dataclass(frozen=True)
class Verdict:
    status: str
    message: str
    evidence: dict = field(default_factory=dict)
    remedy: dict | None = None
    sure: bool = False


def passed(message, **evidence):
    return Verdict("pass", message, evidence)


def proven(message, **evidence):
    """A pass that the needed facts prove by themselves, whatever could not be seen of the used ones."""
    return Verdict("pass", message, evidence, sure=True)


def fail(message, remedy=None, **evidence):
    return Verdict("fail", message, evidence, remedy)


def warn(message, remedy=None, **evidence):
    return Verdict("warn", message, evidence, remedy)


def skip(message, **evidence):
    return Verdict("skip", message, evidence)


def unknown(message, **evidence):
    return Verdict("unknown", message, evidence)


def by_hand(manual, disruptive=False, reboot=False):
    """A remedy in words and commands. ``%(device)s`` stands for the evidence of that name, quoted for the shell."""
    return {"playbook": None, "vars": {}, "disruptive": disruptive, "reboot": reboot, "manual": manual}


def repaired_by(name, manual=None, disruptive=False, reboot=False, **variables):
    """A remedy that a playbook of this collection carries out, with what it does on one node by hand."""
    PLAYBOOKS.add(name)
    return {**by_hand(manual, disruptive, reboot), "playbook": COLLECTION + name, "vars": variables}


@dataclass
class Rule:
    id: str
    title: str
    severity: str
    needs: tuple
    uses: tuple
    versions: dict
    remedy: dict | None
    alone: object = None  # judge one node:   f(*needs, *uses, policy) -> verdicts
    across: object = None  # judge all of them: f({node: needs}, policy) -> {node: verdicts}
    of_cluster: object = None  # judge the cluster: f(*needs, *uses, policy) -> verdicts

    @cached_property
    def area(self):
        return self.id.split(".")[0]

    @cached_property
    def see(self):
        """Its page, which a site's own rule has not."""
        return None if self.area == "site" else "docs/rules/%s.md" % self.id

    @property
    def why(self):
        return (self.alone or self.across or self.of_cluster).__doc__ or ""

    @property
    def asks_cluster(self):
        """Whether it can only be judged where the cluster was read, or says more then."""
        return any(path.split(".")[0] == CLUSTER for path in (*self.needs, *self.uses))

    @property
    def needs_cluster_only(self):
        """Whether it can be judged of a Node that was not read itself."""
        return all(path.split(".")[0] == CLUSTER for path in self.needs)

    @property
    def areas(self):
        """The areas that have to be probed for it; when and as whom a node was read comes with each of them."""
        return {path.split(".")[0] for path in (*self.needs, *self.uses, *self.versions) or (self.id,)} - {"taken", "problems", CLUSTER}


def rule(rule_id, title, severity="error", needs=(), uses=(), versions=None, remedy=None):
    """Register a function that judges one node.

    It is called with the facts at the paths in ``needs``, then those in ``uses``, then the policy. Where a needed fact is
    missing the answer is *unknown* and the function is not called; a used fact may be None. What the API server knows is
    under ``cluster``, this machine's Node under ``cluster.node``; where no cluster was read, the answer is *skip*. A *pass* is only believed
    where no problem was met while gathering any of them. ``versions`` maps a fact to a range such as ``>=1.35,<1.38``;
    outside it the answer is *skip*.
    """

    def register(function):
        RULES[rule_id] = Rule(rule_id, title, severity, _paths(needs), _paths(uses), versions or {}, remedy, alone=function)
        return function

    return register


def across(rule_id, title=None, severity="error", needs=(), uses=(), remedy=None):
    """Register a function that compares the nodes of a run; for a rule that also judges one node, it has the last word.

    It is called with {node: fact}, or {node: [fact, …]} for several needs and for what is used, of the nodes that have all
    that is needed, and answers {node: verdicts} for those that it has something to say about.
    """

    def register(function):
        if rule_id in RULES:
            RULES[rule_id].across = function
        else:
            RULES[rule_id] = Rule(rule_id, title, severity, _paths(needs), _paths(uses), {}, remedy, across=function)
        return function

    return register


def of_cluster(rule_id, title, severity="error", needs=(), uses=(), remedy=None):
    """Register a function that judges the cluster as a whole, once; it is called like that of ``rule``."""

    def register(function):
        RULES[rule_id] = Rule(rule_id, title, severity, _paths(needs), _paths(uses), {}, remedy, of_cluster=function)
        return function

    return register


def finding(made_by, node, verdict, policy):
    """A verdict with all that a reader needs to act on it."""
    severity = policy.severity(made_by.id, made_by.severity)
    if verdict.status == "warn" and severity == "error":
        severity = "warning"
    remedy = verdict.remedy or made_by.remedy if verdict.status in ("fail", "warn") else None
    if remedy and remedy["manual"]:
        remedy = {**remedy, "manual": remedy["manual"] % Quoted(verdict.evidence, node=node)}
    return {
        "id": made_by.id,
        "node": node,
        "status": verdict.status,
        "severity": severity,
        "title": made_by.title,
        "message": verdict.message,
        "evidence": verdict.evidence,
        "remedy": remedy,
        "see": made_by.see,
    }


class Quoted(dict):
    """Evidence comes from the node: nothing of it may act in the shell of whoever pastes a command."""

    def __init__(self, evidence, **more):
        super().__init__({**evidence, **more})

    def __getitem__(self, name):
        return shlex.quote(str(self.get(name, "<%s>" % name)))


def _paths(paths):
    return (paths,) if isinstance(paths, str) else tuple(paths)
