# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One sweep: all kinds side by side by few threads, until all have answered or the time is up."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import NamedTuple

from .._api import THREADS
from .._api._why import ERROR, HUNG, LATE, NoAnswerError
from . import _workloads
from ._calico import find_daemonset
from ._kinds import KINDS, PAGE, config_map, events
from ._values import entries, number, text

CUT_SHORT = "no complete answer within the %.0f s of a whole sweep"


class Answer(NamedTuple):
    value: object = None
    problem: dict | None = None
    there: bool = True  # False where the cluster has no such thing


class Sweep:
    """Threads that hang in an answer are left behind: what they would still find, nobody waits for."""

    def __init__(self, door, seconds):
        self.door = door
        self.end = time.monotonic() + seconds
        self.each = seconds / 2  # so that what depends on another answer still has its turn
        self.seconds = seconds
        self.answers = {}
        self.silent = False  # somebody has waited for an answer in vain
        self._changed = threading.Condition()
        self._waiting = deque(KINDS.items())
        self._asking = {}

    def run(self):
        """{name: Answer} of all kinds, and of those that were found on the way."""
        for _number in range(THREADS):
            threading.Thread(target=self._work, daemon=True).start()
        with self._changed:
            while (self._waiting or self._asking) and self._left() > 0:
                self._changed.wait(self._left())
            late = {name: self._late(kind, "it was not asked for within the %.0f s of a whole sweep") for name, kind in self._waiting}
            late.update({name: self._late(kind, CUT_SHORT) for name, kind in self._asking.items()})
            self._waiting.clear()
            return {**self.answers, **late}

    def _left(self):
        return self.end - time.monotonic()

    def _late(self, kind, why):
        return _lost(kind, why % self.seconds, LATE)

    def _work(self):
        while True:
            with self._changed:
                while not self._waiting:
                    if not self._asking or self._left() <= 0:
                        return
                    self._changed.wait(self._left())
                name, kind = self._waiting.popleft()
                self._asking[name] = kind
            try:
                answer = self._ask(kind)
            except Exception as error:  # pylint: disable=broad-except
                answer = _lost(kind, "its answer could not be read: %s: %s" % (type(error).__name__, error), ERROR)
            with self._changed:
                self.answers[name] = answer
                self.silent = self.silent or bool(answer.problem and answer.problem["kind"] == HUNG)
                del self._asking[name]
                self._waiting.extendleft(_next(name, answer))
                self._changed.notify_all()

    def _ask(self, kind):
        for path in kind.paths:
            try:
                return Answer(self._read(path, kind))
            except NoAnswerError as error:
                if not error.missing:
                    return _lost(kind, error.why, error.kind, path)
        if kind.optional:
            return Answer(None, there=False)
        return _lost(kind, "this API server has no such thing", ERROR)

    def _read(self, path, kind):
        if kind.single:
            return kind.keep(self._get(path, {}))
        if kind.count:
            return self._counted(path)
        kept, query = [], {**kind.query, "limit": PAGE}
        while True:
            page = self._get(path, query)
            kept += [one for one in map(kind.keep, entries(page, "items")) if one is not None]
            query = {**query, "continue": text(page, "metadata", "continue")}
            if not query["continue"]:
                return kept

    def _counted(self, path):
        """Most API servers say after the first one how many are left."""
        counted, query = 0, {"limit": 1}
        while True:
            page = self._get(path, query)
            left = number(page, "metadata", "remainingItemCount")
            counted += len(entries(page, "items")) + (left or 0)
            query = {"limit": PAGE, "continue": text(page, "metadata", "continue")}
            if left is not None or not query["continue"]:
                return counted

    def _get(self, path, query):
        if self.silent and self.door.server_time is None:
            raise NoAnswerError("no answer within %.0f s" % self.each, HUNG)
        left = self._left()
        if left <= 0:
            raise NoAnswerError("the %.0f s of a whole sweep are over" % self.seconds, LATE)
        try:
            return self.door.get(path, query, min(self.each, left))
        except NoAnswerError as error:
            if error.kind == HUNG and left < self.each:  # the sweep ended, and cut it short
                raise NoAnswerError(CUT_SHORT % self.seconds, LATE) from error
            raise


def _lost(kind, why, how, path=None):
    return Answer(None, {"what": "GET " + (path or kind.paths[0]), "why": why, "kind": how})


def _next(name, answer):
    """What is known to be worth asking for only now: the events of the pods, and where the environment of calico-node comes from."""
    if name == "pods" and answer.value:
        return [(("pod_events", namespace), events(namespace, "Pod")) for namespace in sorted({pod["namespace"] for pod in answer.value})]
    daemonset = find_daemonset(answer.value) if name == "daemonsets" and answer.value else None
    namespace = text(daemonset, "metadata", "namespace")
    maps = _workloads.config_maps(_workloads.node_container(daemonset))
    return [(("config_maps", one), config_map(namespace, one)) for one in maps]
