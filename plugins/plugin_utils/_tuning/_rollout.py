# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. calico-node's pods, replaced node by node until each runs with what its DaemonSet says; a node that gets worse ends that."""

from __future__ import annotations

import math
from typing import NamedTuple

from .._api import NoAnswerError
from .._calico._startup import NAMES
from .._lease import LostError
from .._patience import Patience
from .._sweep._values import at, entries, mapping, number, text
from .._sweep._workloads import CONTAINER, PROBES, node_container
from . import _pods

DETECTION = [word for name in NAMES.values() for word in (name, name + "_AUTODETECTION_METHOD")]
LEAVES_IT = "unsupported.operator.tigera.io/ignore"


class StuckError(Exception):
    """What a roll-out waits for, longer than it should."""


class WorseError(Exception):
    """A node that was well before and is not any more, with the reason."""

    def __init__(self, node, why):
        super().__init__("%s: %s" % (node, why))
        self.node, self.why = node, why


class Seen(NamedTuple):
    """One look: the pods by node, those that run with the DaemonSet's present words, and whether nothing is missing."""

    daemonset: dict
    pods: dict
    new: dict
    complete: bool

    @property
    def under_way(self):
        return [node for node, pod in self.new.items() if not _pods.is_ready(pod)]

    @property
    def old(self):
        return [node for node in self.pods if node not in self.new]


class Rollout:
    def __init__(self, action, door, keeper, path, within, every, seconds):
        self.action, self.door, self.keeper, self.path = action, door, keeper, path
        self.within, self.every, self.seconds = within, every, seconds
        self.was_ready = set()
        self.took = {}  # node: seconds until it was through
        self.replaced = []  # nodes whose pods were deleted from here

    def begin(self):
        """How things are before anything is changed; a node whose kubelet is silent would hold up all others."""
        seen = self._look()
        self.was_ready = {node for node, pod in seen.pods.items() if _pods.is_ready(pod)}
        return seen

    def until_said(self, says, owner):
        """Until the DaemonSet says what its owner was told."""
        patience = self._patience(owner.words)
        while True:
            self._keep_lock()
            daemonset = self._asked(lambda: self.door.get(self.path, {}, self.seconds))
            if daemonset and says(daemonset):
                return
            refused = self._degraded(owner)
            if refused or patience.is_over():
                why = refused or _not_taken_over(daemonset, owner, patience.seconds)
                raise StuckError(why)
            patience.wait("the DaemonSet to say what the %s says" % owner.words)

    def _degraded(self, owner):
        if owner.resource != "installations.operator.tigera.io":
            return ""
        thing = self._asked(lambda: owner.read(self.door, self.seconds)) or {}
        said = next((one for one in entries(thing, "status", "conditions") if text(one, "type") == "Degraded" and text(one, "status") == "True"), {})
        return "the operator is degraded: %s" % text(said, "message") if said else ""

    def until_through(self, compare, first=()):
        """Until all nodes are; ``compare`` is told each one that is, and ``first`` are those to begin with where nobody else replaces pods."""
        self.took = {}
        patience = self._patience("the roll-out")
        while True:
            self._keep_lock()
            seen = self._asked(self._look)
            if seen:
                if self._compared(seen, compare, patience.seconds):
                    patience = self._patience("the roll-out")
                if seen.complete and not self._unseen(seen):
                    return
                self._look_for_worse(seen)
                self._replace_next(seen, first)
            if patience.is_over():
                raise self._over(seen)
            patience.wait(self._waits_for(seen) if seen else "the API server")

    def _keep_lock(self):
        """A roll-out may take longer than the cluster's lock lasts, and two runs at once may be one too many."""
        try:
            self.keeper.keep()
        except LostError as error:
            raise StuckError(str(error)) from None
        except NoAnswerError as error:
            raise StuckError("the cluster's lock is over, and could not be renewed: %s" % error.why) from None

    def _compared(self, seen, compare, seconds):
        """Whether more nodes are through; one that nothing was said about is asked about again at the next look."""
        before = len(self.took)
        for node in self._unseen(seen):
            if self._asked(lambda node=node: compare(node) or True):
                self.took[node] = round(seconds, 1)
        return len(self.took) > before

    def _unseen(self, seen):
        """Nodes whose new pod is ready, and that were not compared yet; none of them is left out, or what got worse there would stay."""
        return [node for node, pod in seen.new.items() if _pods.is_ready(pod) and node not in self.took]

    def _look(self):
        daemonset = self.door.get(self.path, {}, self.seconds)
        pods = _pods.of_daemonset(self.door, daemonset, self.seconds)
        new = {node: pod for node, pod in pods.items() if runs_with(pod, daemonset)}
        known = (number(daemonset, "status", "observedGeneration") or 0) >= (number(daemonset, "metadata", "generation") or 0)
        wanted = number(daemonset, "status", "desiredNumberScheduled") or 0
        return Seen(daemonset, pods, new, known and len(new) >= max(wanted, len(pods)) and all(map(_pods.is_ready, new.values())))

    def _look_for_worse(self, seen):
        for node in seen.under_way:
            if node in self.was_ready and _pods.crashes(seen.new[node]):
                raise WorseError(node, "calico-node was ready and ends again and again now: %s" % self._doing(seen.new[node]))

    def _replace_next(self, seen, first):
        """With OnDelete nobody else does; one at a time, and only where the one before is known to be well."""
        missing = len(seen.pods) < (number(seen.daemonset, "status", "desiredNumberScheduled") or 0)
        if text(seen.daemonset, "spec", "updateStrategy", "type") != "OnDelete" or seen.under_way or self._unseen(seen) or missing:
            return
        waiting = sorted(seen.old, key=lambda node: (node not in first, node in self.was_ready, node))
        if waiting:
            self._asked(lambda: self._replace(waiting[0], seen.pods[waiting[0]]))

    def _replace(self, node, pod):
        try:
            _pods.delete(self.door, pod, self.seconds)
            self.replaced.append(node)
        except NoAnswerError as error:
            if error.status in (404, 409):  # gone already: the next look tells
                return
            if not error.status:  # it may be, and the next look tells
                self.replaced.append(node)
            raise NoAnswerError("the pod of calico-node on %s could not be replaced: %s" % (node, error.why), error.kind, error.status) from None

    def _over(self, seen):
        if seen is None:
            return StuckError("the API server does not answer")
        worse = next((node for node in seen.under_way if node in self.was_ready), None)
        why = self._waits_for(seen)
        return WorseError(worse, "calico-node was ready and is not after %g s: %s" % (self.within, why)) if worse else StuckError(why)

    def _waits_for(self, seen):
        if seen.under_way:
            node = seen.under_way[0]
            return "calico-node on %s: %s" % (node, self._doing(seen.new[node]))
        if (number(seen.daemonset, "status", "observedGeneration") or 0) < (number(seen.daemonset, "metadata", "generation") or 0):
            return "kube-controller-manager to see the change of the DaemonSet"
        if self._unseen(seen):
            return "the API server to say how %s is" % self._unseen(seen)[0]
        missing = (number(seen.daemonset, "status", "desiredNumberScheduled") or 0) - len(seen.pods)
        if missing > 0:
            return "a new pod of calico-node on %d of the nodes" % missing
        return "the pod of calico-node on %s to be replaced" % ", ".join(sorted(seen.old)[:3])

    def _doing(self, pod):
        return _pods.doing(self.door, pod, self.seconds)

    def _asked(self, look):
        """What a look says; nothing where the API server is away for a moment."""
        try:
            return look()
        except NoAnswerError as error:
            if error.status and error.status < 500 and error.status != 429:
                raise StuckError(error.why) from None
            return None

    def _patience(self, what):
        return Patience(self.action, what, self.within, self.every)


def runs_with(pod, daemonset):
    """Whether calico-node was started with the environment and the probes that the DaemonSet says now; others may have added to it."""
    has = next((one for one in entries(pod, "spec", "containers") if text(one, "name") == CONTAINER), {})
    wanted = node_container(daemonset)
    ours = {*DETECTION, *(text(one, "name") for one in entries(wanted, "env"))}
    env, asked = ([one for one in entries(container, "env") if text(one, "name") in ours] for container in (has, wanted))
    return env == asked and all(mapping(has, probe) == mapping(wanted, probe) for probe in PROBES.values())


def held_up(seen, silent):
    """Why a roll-out would not get through: as long as a kubelet is silent, its pod counts as one that is missing."""
    here = sorted(set(silent) & set(seen.pods))
    if not here or text(seen.daemonset, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    most = at(seen.daemonset, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable") or 1
    count = math.ceil(len(seen.pods) * int(most[:-1]) / 100) if isinstance(most, str) else most
    words = "the kubelet of %s is silent, and the DaemonSet replaces no other pod before that one (maxUnavailable %s)"
    return words % (", ".join(here), most) if len(here) >= count else ""


def _not_taken_over(daemonset, owner, seconds):
    annotations = mapping(daemonset, "metadata", "annotations")
    if LEAVES_IT in annotations:
        return "the operator leaves the DaemonSet alone, because it has the annotation %s" % LEAVES_IT
    who = {"helmchartconfig": "RKE2's helm-controller"}.get(owner.resource, "the operator")
    return "the DaemonSet does not say after %.0f s what the %s says: does %s run?" % (seconds, owner.words, who)
