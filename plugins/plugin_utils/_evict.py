# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Empties a node by the Eviction API, and waits until its pods are gone: each is known by its uid, as its name may be another's by then."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from . import _cluster, _drain
from ._api import NoAnswerError
from ._api._why import DENIED
from ._lease import Keeper, LostError
from ._sweep._values import entries, mapping, text

PAGE = 500
NODE = "/api/v1/nodes/%s"
PODS = "/api/v1/pods"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
DAEMONSETS = "/apis/apps/v1/daemonsets"
EVICTION = "/api/v1/namespaces/%s/pods/%s/eviction"
TOO_OLD = "this API server has no policy/v1, with which Kubernetes 1.22 began"


class DrainError(Exception):
    """Why the node is not emptied."""


class Look(NamedTuple):
    pods: list
    cordoned: bool
    ready: str  # what the Node's condition says: True, False, Unknown


class Draining:
    """What is done to one node; where this run holds the cluster's lock, it is kept meanwhile."""

    def __init__(self, door, run, node, patience, timeout, consent=(), grace=None):
        self.door, self.run, self.node, self.patience, self.timeout = door, run, node, patience, timeout
        self.consent, self.grace = consent, grace
        self.plan = _drain.Plan([], [], [], [])
        self.evicted = []  # what the API server has agreed to end
        self.held = {}  # {uid: why it is not ended yet: words, or the refusal}
        self.back = []  # what came onto the node meanwhile, and would have to go as well
        self.left = []  # what is still there
        self.silence = ""  # why nobody could be asked at the last look

    # -- before anything is touched ------------------------------------------------------------------------------------

    def foresee(self, dry_run):
        """The plan; raises DrainError where something speaks against it, and nothing was evicted then."""
        try:
            self.look = self._look()
            self.budgets = self._budgets()
            self.daemonsets = {text(one, "metadata", "uid") for one in self._listed(DAEMONSETS)}
            self.keeper = Keeper(self.door, self.run, self.timeout)
        except NoAnswerError as error:
            raise DrainError("nothing was evicted, because what is on the node and whose turn it is cannot be read: %s" % error.why) from None
        self.plan = _drain.plan(self.look.pods, self.daemonsets, self.budgets, self.consent)
        self.left = self.plan.go + self.plan.leaving
        if not self.look.cordoned and not dry_run:
            raise DrainError("nothing was evicted, because the node takes new pods: cordon it first, kubectl cordon %s" % self.node)
        if self.plan.refused:
            raise DrainError("nothing was evicted: " + _refusals(self.plan.refused))
        self._try_all()

    def _try_all(self):
        """Each eviction is tried without effect, so that what will never be allowed is known while all pods are still there."""
        for one in self.plan.go:
            try:
                self._evict(one, dry_run=True)
            except DrainError as error:
                raise DrainError("nothing was evicted: %s" % error) from None
            if self.silence:
                raise DrainError("nothing was evicted, because nobody answers: %s" % self.silence)
        for uid, each in _drain.queued(self.plan.go, self.budgets).items():
            self.held.setdefault(uid, "more pods here are in the budget %s than may go at once" % each.words)

    # -- at work -------------------------------------------------------------------------------------------------------

    def empty(self):
        """Until all that was to go is gone; raises DrainError where that does not come true in time."""
        wanted = list(self.plan.go)
        known = {one.uid for one in self.look.pods}
        while self.left:
            self._keep_lock()
            self._evict_all(wanted)
            self._look_again()
            here = {one.uid for one in self.look.pods}
            self.left = [one for one in wanted + self.plan.leaving if one.uid in here]
            wanted += self._late(known)
            if not self.left:
                return
            if self.patience.is_over():
                raise DrainError("not empty after %.0f s: %s" % (self.patience.seconds, self._why()))
            self.patience.wait("%d of %d pods to be gone: %s" % (len(self.left), len(wanted) + len(self.plan.leaving), self._why(3)))

    def _keep_lock(self):
        try:
            self.keeper.keep()
        except (LostError, NoAnswerError) as error:
            raise DrainError("nothing more is evicted, because this run has lost the cluster's lock: %s" % error) from None

    def _evict_all(self, wanted):
        here = {one.uid: one for one in self.look.pods}
        for one in wanted:
            if one.uid in here and here[one.uid].ends is None and one not in self.evicted:
                self._evict(one)
                if self.silence:
                    return

    def _evict(self, one, dry_run=False):
        try:
            self._create_eviction(one, dry_run)
        except NoAnswerError as error:
            meaning = _drain.meaning(error)
            if meaning == _drain.NEVER:
                raise DrainError("%s cannot be evicted: %s" % (one.title, self._said(error, one))) from None
            self.silence = "" if error.status else error.why
            if self.silence:  # no reason to take the place of one that the server gave before
                self.held.setdefault(one.uid, "to be evicted, but that was not answered: %s" % self.silence)
            elif meaning == _drain.AGAIN:
                self.held[one.uid] = error
            return
        self.silence = ""
        self.held.pop(one.uid, None)
        if not dry_run:
            self.evicted.append(one)

    def _create_eviction(self, one, dry_run):
        options = {"preconditions": {"uid": one.uid}, **({} if self.grace is None else {"gracePeriodSeconds": self.grace})}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": one.name, "namespace": one.namespace},
            "deleteOptions": {**options, **({"dryRun": ["All"]} if dry_run else {})},
        }
        self.door.create(EVICTION % (quote(one.namespace, safe=""), quote(one.name, safe="")), body, self._seconds(), dry_run)

    def _said(self, error, one):
        """With the budgets' names and numbers, which a refusal does not have."""
        budgets = ", ".join(each.words for each in _drain.budgets_of(one, self.budgets))
        if budgets and _drain.is_of_budget(error):
            return "held by the budget %s" % budgets
        return "%s (its budgets: %s)" % (error.why, budgets) if budgets else error.why

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _look(self):
        node = self.door.get(NODE % quote(self.node, safe=""), {}, self._seconds())
        pods = self._listed(PODS, fieldSelector="spec.nodeName=%s" % self.node)
        ready = next((text(one, "status") for one in entries(node, "status", "conditions") if one.get("type") == "Ready"), "")
        return Look([_drain.pod(one) for one in pods], mapping(node, "spec").get("unschedulable") is True, ready)

    def _look_again(self):
        """What was seen before where nobody answers now: an API server that restarts is waited for."""
        try:
            self.look = self._look()
            if self.held:
                self.budgets = self._budgets()
        except NoAnswerError as error:
            if error.kind == DENIED or error.missing:
                raise DrainError("it cannot be seen any more what is on the node: %s" % error.why) from None
            self.silence = error.why
            return
        self.silence = ""
        if not self.look.cordoned:
            raise DrainError("somebody has made the node take new pods while it was being emptied; nothing more is evicted")

    def _late(self, known):
        """The pods that the scheduler had chosen the node for before it was cordoned, and that were bound only now."""
        made = _drain.plan(self.look.pods, self.daemonsets, self.budgets, self.consent)
        may = made.go + [one for one, _why, _needs in made.refused]
        self.back, late = _drain.returned(may, known, self.evicted)
        refused = [one for one in made.refused if one[0] in late]
        if refused:
            raise DrainError("a pod came onto the node while it was being emptied: " + _refusals(refused))
        known.update(one.uid for one in late)
        self.left += late
        return late

    def _listed(self, path, **query):
        found, query = [], {**query, "limit": PAGE}
        while True:
            page = self.door.get(path, query, self._seconds())
            found += entries(page, "items")
            query = {**query, "continue": text(page, "metadata", "continue")}
            if not query["continue"]:
                return found

    def _budgets(self):
        try:
            return [_drain.budget(one) for one in self._listed(BUDGETS)]
        except NoAnswerError as error:
            if error.missing:
                raise DrainError("nothing was evicted: %s" % TOO_OLD) from None
            raise

    def _seconds(self):
        return max(1.0, min(self.timeout, self.patience.limit - self.patience.seconds))

    # -- words ---------------------------------------------------------------------------------------------------------

    def _why(self, most=8):
        said = ["nobody answers: %s" % self.silence] if self.silence else []
        if self.look.ready != "True":
            said.append("the node's kubelet, which ends them, is not well (Ready is %s)" % (self.look.ready or "not said"))
        said += ["%s is %s" % (one.title, self.doing(one)) for one in self.left[:most]]
        return "; ".join(said) + ("; and %d more" % (len(self.left) - most) if len(self.left) > most else "")

    def why_held(self, one):
        """By the budgets as they were seen last: the eviction before its own may be what used them up."""
        held = self.held.get(one.uid)
        return self._said(held, one) if isinstance(held, NoAnswerError) else held

    def doing(self, one):
        """What a pod that is still there waits for."""
        now = next((seen for seen in self.look.pods if seen.uid == one.uid), one)
        if now.ends is None:
            return self.why_held(one) or "to be evicted"
        over = self.door.now - now.ends
        when = "which has %s left" % _cluster.span(-over) if over < 0 else "which should have ended %s ago" % _cluster.span(over)
        return "still terminating, %s%s" % (when, "; its finalizers: %s" % ", ".join(now.finalizers) if now.finalizers else "")


def _refusals(refused):
    said = "; ".join("%s: %s" % (one.title, why) for one, why, _needs in refused[:8]) + ("; and %d more" % (len(refused) - 8) if len(refused) > 8 else "")
    asked = sorted({name for _one, _why, needs in refused for name in needs})
    return said + (". Say %s to let them go all the same" % " and ".join("%s: true" % name for name in asked) if asked else "")
