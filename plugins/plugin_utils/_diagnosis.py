# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. From findings to causes: what is wrong at the root, what of the rest it explains, what would disprove it, and what repairs it."""

from __future__ import annotations

from ._causes import COMES_BACK_BY, DISPROVED_BY, ELSEWHERE, EXPLAINED_BY, FELT, SAME, SEEN, STAYS
from ._report import groups
from ._report.words import natural
from ._rules._rule import CLUSTER, Quoted

BAD = ("fail", "warn")
PLACE = {"fail": 0, "warn": 1}
GRAVE = {"error": 0, "warning": 1, "info": 2}
CANDIDATES = {(effect, says): tuple(causes.split()) for effect, says, causes in EXPLAINED_BY}


def diagnose(findings, symptom=None):
    """The causes, that with the most evidence first.

    ``symptom`` is None for all that is wrong, or {"node": name} or {"pod": "namespace/name", "node": name or None}. Each answer is
    {cause: finding, explains: [findings], unexplained, disproved_by, repair: [{command, id, node, disruptive, reboot}], for_good: [findings]};
    ``unexplained`` where the cause is itself a symptom of which nothing that was read is the cause.
    """
    known = Findings(findings)
    roots = known.roots([one for one in known.bad if concerns(one, symptom)])
    later = {id(one) for root in roots for one in known.for_good(root)}
    answers = [_answer(root, known) for root in roots if id(root) not in later]
    return sorted((one for one in answers if one["explains"] or one["cause"]["status"] == "fail" or one["unexplained"]), key=_order)


def untold(findings, symptom=None):
    """Rules that could not be judged, and that would explain a symptom of which no cause was found."""
    lost = [one["cause"] for one in diagnose(findings, symptom) if one["unexplained"]]
    unknown = [one for one in findings if one["status"] == "unknown"]
    return [one for one in unknown if any(one["id"] in _candidates(effect) and _is_near(effect, one) for effect in lost)]


def place_of(pod, cluster):
    """The node of a pod ``namespace/name`` as far as the cluster's facts tell, else None."""
    namespace, _slash, name = pod.partition("/")
    found = (one for one in (cluster or {}).get("pods") or [] if (one["namespace"], one["name"]) == (namespace, name))
    return next((one.get("node") for one in found), None)


def concerns(finding, symptom):
    """Whether a finding is about what the user asks for: it is on that node, or of the whole cluster, or names it."""
    if not symptom:
        return True
    evidence = finding["evidence"]
    if symptom.get("pod") and evidence.get("pod") and evidence["pod"] == symptom["pod"].rpartition("/")[2]:
        return True
    node = symptom.get("node")
    named = [evidence.get("kubernetes_node"), *_list(evidence.get("lacked_by")), *_list(evidence.get("nodes"))]
    return bool(node) and (finding["node"] == node or node in named or _of_all(finding))


def _of_all(finding):
    """Whether it is of the whole cluster, and so of each node; where it names nodes, it is of these."""
    return finding["node"] == CLUSTER and not _list(finding["evidence"].get("nodes"))


def _list(value):
    return value if isinstance(value, list) else []


# -- what explains what ------------------------------------------------------------------------------------------------


class Findings:
    """What is wrong, and how it hangs together. A finding is known by its identity: two may say the same."""

    def __init__(self, findings):
        self.bad = [one for one in findings if one["status"] in BAD]
        self.placed = {}
        for one in self.bad:
            self.placed.setdefault((one["id"], one["node"]), []).append(one)
            self.placed.setdefault(one["id"], []).append(one)
        self.causes = {id(one): [cause for cause in self._near(one, _candidates(one)) if cause is not one and _same(one, cause)] for one in self.bad}
        self.effects = {}
        for one in self.bad:
            for cause in self.causes[id(one)]:
                self.effects.setdefault(id(cause), []).append(one)

    def _near(self, effect, rule_ids):
        """Findings of these rules on the same node and of the whole cluster, or elsewhere where such an effect comes from there."""
        for rule_id in rule_ids:
            if effect["id"] in ELSEWHERE:
                yield from (one for one in self.placed.get(rule_id, ()) if _is_near(effect, one))
            else:
                for node in dict.fromkeys((effect["node"], CLUSTER)):
                    yield from self.placed.get((rule_id, node), ())

    def for_good(self, root):
        """What brings a root back later."""
        return list(self._near(root, COMES_BACK_BY.get(root["id"], ())))

    def roots(self, start):
        """Behind these findings, those that nothing explains; and one of each ring of findings that explain each other, so that none is lost."""
        reached = _all(start, self.causes)
        found = [one for one in self.bad if id(one) in reached and not self.causes[id(one)]]
        told = set(_all(found, self.effects))
        for one in self.bad:
            if id(one) in reached and id(one) not in told:
                found.append(one)
                told |= set(_all([one], self.effects))
        return found

    def explained_by(self, root):
        """All that a root explains, the nearest first."""
        return list(_all([root], self.effects).values())[1:]


def _all(start, further):
    """{identity: finding} of these findings and of all that ``further`` leads to, the nearest first."""
    found = {id(one): one for one in start}
    edge = list(start)
    while edge:
        edge = [one for before in edge for one in further.get(id(before), ()) if id(one) not in found]
        found.update((id(one), one) for one in edge)
    return found


def _candidates(effect):
    """The rules that may explain a finding; its own evidence narrows them down."""
    says = _says(effect)
    if "." in says:
        return (says,)
    return CANDIDATES.get((effect["id"], says), CANDIDATES.get((effect["id"], ""), ()))


def _says(effect):
    evidence = effect["evidence"]
    return str(evidence.get("because") or evidence.get("cause") or evidence.get("signature") or "")


def _is_near(effect, cause):
    if effect["node"] == cause["node"] or cause["node"] == CLUSTER:
        return True
    named = _list(effect["evidence"].get("nodes"))
    return effect["id"] in ELSEWHERE and (not named or cause["node"] in named)


def _same(effect, cause):
    keys = SAME.get((effect["id"], cause["id"]))
    return keys is None or effect["evidence"].get(keys[0]) == cause["evidence"].get(keys[1])


# -- what an answer says -----------------------------------------------------------------------------------------------


def _answer(root, known):
    effects = known.explained_by(root)
    steps = [root, *(one for one in reversed(effects) if one["id"] in STAYS)]
    return {
        "cause": root,
        "explains": effects,
        "unexplained": root["id"] in SEEN and bool(_candidates(root)) and "." not in _says(root),
        "disproved_by": _disproof(root),
        "repair": _repairs(steps),
        "for_good": known.for_good(root),
    }


def _repairs(steps):
    """Each command once: a cause and what it leaves behind may be put right by the same."""
    repairs = {}
    for one in steps:
        if one["remedy"]:
            repair = _repair(one)
            repairs.setdefault(repair["command"], repair)
    return list(repairs.values())


def _repair(finding):
    return {"command": groups.command(finding["remedy"], [finding["node"]]), "id": finding["id"], "node": finding["node"], **_cautions(finding["remedy"])}


def _cautions(remedy):
    return {name: remedy[name] for name in ("disruptive", "reboot")}


def _disproof(root):
    text = DISPROVED_BY.get(root["id"])
    return text % Quoted(root["evidence"], node=root["node"]) if text else "it is no longer found on %s, and the symptom stays" % root["node"]


def _order(answer):
    cause = answer["cause"]
    return (
        PLACE[cause["status"]],
        all(one["id"] not in FELT for one in (cause, *answer["explains"])),
        not answer["explains"],
        -len({one["node"] for one in answer["explains"]}),
        -len(answer["explains"]),
        GRAVE.get(cause["severity"], 1),
        natural(cause["node"]),
        cause["id"],
    )
