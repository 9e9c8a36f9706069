# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which pods leave a node, which stay, and which must not be ended unasked, by the rules of kubectl drain; and what refusals mean."""

from __future__ import annotations

from typing import NamedTuple

from ._sweep._values import entries, mapping, number, text, texts, time

MIRROR = "kubernetes.io/config.mirror"
CORDONED = "node.kubernetes.io/unschedulable"
FINISHED = ("Succeeded", "Failed")
BARE, EMPTYDIR = "even_bare", "even_emptydir"  # the consent that a refusal asks for


class Pod(NamedTuple):
    namespace: str
    name: str
    uid: str
    labels: dict
    phase: str
    ready: bool
    mirror: bool
    owner: tuple  # (kind, name, uid) of its controller, empty where it has none
    emptydirs: list
    ends: float | None  # by when it is to be gone, where it was told to end
    finalizers: list
    tolerations: list

    @property
    def title(self):
        return "%s/%s" % (self.namespace, self.name)


class Budget(NamedTuple):
    namespace: str
    name: str
    selector: dict | None
    allowed: float
    expected: float
    healthy: float
    needed: float

    @property
    def title(self):
        return "%s/%s" % (self.namespace, self.name)

    @property
    def words(self):
        return "%s (allows %d disruptions: %d of %d expected pods are healthy, %d must be)" % (
            self.title,
            self.allowed,
            self.healthy,
            self.expected,
            self.needed,
        )


class Plan(NamedTuple):
    go: list  # pods
    leaving: list  # pods that were told to end before
    stay: list  # (pod, why)
    refused: list  # (pod, why, which consent would do)


def pod(thing):
    metadata, spec = mapping(thing, "metadata"), mapping(thing, "spec")
    owner = next((one for one in entries(metadata, "ownerReferences") if one.get("controller") is True), None)
    return Pod(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        labels=mapping(metadata, "labels"),
        phase=text(thing, "status", "phase"),
        ready=any((one.get("type"), one.get("status")) == ("Ready", "True") for one in entries(thing, "status", "conditions")),
        mirror=MIRROR in mapping(metadata, "annotations"),
        owner=(text(owner, "kind"), text(owner, "name"), text(owner, "uid")) if owner else (),
        emptydirs=[text(one, "name") for one in entries(spec, "volumes") if one.get("emptyDir") is not None],
        ends=time(metadata, "deletionTimestamp"),
        finalizers=texts(metadata, "finalizers"),
        tolerations=entries(spec, "tolerations"),
    )


def budget(thing):
    status, spec = mapping(thing, "status"), mapping(thing, "spec")
    numbers = (number(status, name) or 0 for name in ("disruptionsAllowed", "expectedPods", "currentHealthy", "desiredHealthy"))
    selector = spec.get("selector")
    return Budget(text(thing, "metadata", "namespace"), text(thing, "metadata", "name"), selector if isinstance(selector, dict) else None, *numbers)


def plan(pods, daemonsets, budgets, consent=()):
    """What becomes of each pod of a node; ``daemonsets`` are the uids of those that exist."""
    made = Plan([], [], [], [])
    for one in pods:
        why = _stays(one, daemonsets)
        reasons = [] if why or one.ends is not None else [(why, needs) for why, needs in _objections(one, budgets) if needs not in consent]
        if why:
            made.stay.append((one, why))
        elif one.ends is not None:
            made.leaving.append(one)
        elif reasons:
            made.refused.append((one, "; ".join(why for why, _needs in reasons), [needs for _why, needs in reasons if needs]))
        else:
            made.go.append(one)
    return made


def _stays(one, daemonsets):
    if one.mirror:
        return "a static pod, which the kubelet makes from a file"
    if one.phase in FINISHED:
        return "finished"
    if one.owner[:1] == ("DaemonSet",) and one.owner[2] in daemonsets:
        return "of the DaemonSet %s, which would make it anew" % one.owner[1]
    return None


def _objections(one, budgets):
    """(why it must not be evicted, the consent by which it may)"""
    if not one.owner:
        yield "it has no controller, and nobody would make it anew", BARE
    elif one.owner[0] == "DaemonSet":
        yield "its DaemonSet %s is gone, and nobody would make it anew" % one.owner[1], BARE
    if one.emptydirs:
        yield "what it keeps in emptyDir (%s) would be lost" % ", ".join(one.emptydirs), EMPTYDIR
    several = budgets_of(one, budgets)
    if len(several) > 1 and one.phase != "Pending":
        yield "more than one budget is about it (%s), and the API server evicts no such pod" % ", ".join(each.title for each in several), None


def budgets_of(one, budgets):
    return [each for each in budgets if each.namespace == one.namespace and selects(each.selector, one.labels)]


def selects(selector, labels):
    """As policy/v1 has it: an empty selector selects all pods of the namespace, none at all selects none."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in mapping(selector, "matchLabels").items())
    return equal and all(_meets(one, labels) for one in entries(selector, "matchExpressions"))


def _meets(expression, labels):
    key, values = text(expression, "key"), texts(expression, "values")
    return {
        "In": key in labels and labels[key] in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }.get(text(expression, "operator"), False)


def queued(pods, budgets):
    """{uid: budget} of pods that have to wait because others before them on this node use up what their budget allows now."""
    left = {each.title: each.allowed for each in budgets}
    found = {}
    for one in pods:
        for each in budgets_of(one, budgets) if one.ready else ():
            left[each.title] -= 1
            if left[each.title] < 0:
                found[one.uid] = each
    return found


def returned(pods, known, evicted):
    """(what came back, what came too late to be seen before) of pods that would have to go as well: a cordon holds up neither that
    tolerates it, nor that is meant for the node by its name; and the scheduler may have chosen the node just before the cordon."""
    owners = {one.owner for one in evicted if one.owner}
    new = [one for one in pods if one.uid not in known]
    back = [one for one in new if one.owner in owners or tolerates_cordon(one)]
    return back, [one for one in new if one not in back]


def tolerates_cordon(one):
    return any(_tolerates(each) for each in one.tolerations)


def _tolerates(toleration):
    key, operator, effect = (text(toleration, name) for name in ("key", "operator", "effect"))
    if effect not in ("", "NoSchedule"):
        return False
    return key in ("", CORDONED) if operator == "Exists" else key == CORDONED and not text(toleration, "value")


# -- what a refused eviction means -------------------------------------------------------------------------------------

GONE, AGAIN, NEVER = "gone", "again", "never"
TWO_BUDGETS = "more than one PodDisruptionBudget"


def meaning(error):
    """Whether it is worth to try again; a conflict is: the next look at the node's pods says whether this one is still there."""
    causes = {text(one, "reason") for one in entries(error.said, "details", "causes")}
    if error.status == 404:
        return GONE
    if error.status in (0, 409, 429, 503, 504) or "NamespaceTerminating" in causes:
        return AGAIN
    return AGAIN if error.status >= 500 and TWO_BUDGETS not in error.why else NEVER


def is_of_budget(error):
    return error.status == 429 and any(text(one, "reason") == "DisruptionBudget" for one in entries(error.said, "details", "causes"))
