# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A setting written into the object that owns it, with what undoes it in the same write; and taken back from there."""

from __future__ import annotations

import json
import shlex
import time
from functools import partial
from typing import NamedTuple

from .._api import NoAnswerError
from .._api._insist import FINAL
from .._api._why import DENIED, HUNG
from .._sweep._values import mapping, text

MARK = "nodecare/before-%s"  # the annotation that holds what was there
RIGHTS = "The rights that it takes are in docs/nodecare-repairer.yml"
AGAIN_S, PAUSE_S = 60.0, 2.0  # for how long the API server is asked to put back what has made a node worse, and how often


class RefusedError(Exception):
    """Why nothing was written, and what to do about it; ``again`` where the same may succeed a moment later."""

    again = False


class Change(NamedTuple):
    """From what to what, in the owner's words; ``pods`` is the same in the DaemonSet's.

    ``undo`` is the command that takes it back by hand, ``mark`` what an earlier run has left in the object.
    """

    before: dict
    after: dict
    pods: dict
    undo: str = ""
    mark: str | None = None
    changed: bool = True


class Place:
    """One kind of setting in the object that owns it."""

    def __init__(self, door, owner, repair, seconds):
        self.door, self.owner, self.seconds = door, owner, seconds
        self.mark = MARK % repair
        self.playbook = "ansible-playbook nodecare.kubernetes.repair_%s -e nodecare_state=as_before" % repair

    def read(self):
        """The object; None where it is not there yet, but may be."""
        try:
            return self.owner.read(self.door, self.seconds)
        except NoAnswerError as error:
            if error.missing and hasattr(self.owner, "new"):
                return None
            raise _again(RefusedError(_unread(error, self.owner)), error) from None

    def put(self, thing, after, pods, check):
        """Write these words, after the API server was asked whether it would take them."""
        before = self.owner.kept(thing, after)
        if before == after:
            return Change(before, after, pods, self.way_back(thing), changed=False)
        kept = {"before": before, "after": after, "pods": pods}
        mark = self._mark(thing)
        if mark and self.owner.kept(thing, mark["after"]) == mark["after"]:  # what was there before all that this repair has done
            kept = {"before": _over(before, mark["before"]), "after": _over(mark["after"], after), "pods": _both_over(pods, mark["pods"])}
        self._write(thing, after, json.dumps(kept), check)
        return Change(before, after, pods, self._command(thing, kept["before"]), text(thing, "metadata", "annotations", self.mark) or None)

    def take_back(self, thing, check):
        """What the mark says was there before; nothing is done where somebody has changed it since."""
        mark = self._mark(thing)
        if not mark:
            return None
        now = self.owner.kept(thing, mark["after"])
        if now not in (mark["after"], mark["before"]):
            words = "%s was changed since: it says %s now, and the repair had set %s. Nothing was changed; what was there before it: %s"
            raise RefusedError(words % (self.owner.words, self._shown(now), self._shown(mark["after"]), self._shown(mark["before"])))
        if _none_before(mark["before"]) and hasattr(self.owner, "new"):
            self._delete(thing, check)
        else:
            self._write(thing, mark["before"], None, check)
        return Change(now, mark["before"], mark["pods"])

    def put_back(self, change):
        """What this run has written, where a node got worse by it; also where somebody else writes to the same object, or the API server is busy."""
        end = time.monotonic() + AGAIN_S
        while True:
            try:
                return self._put_back(change)
            except RefusedError as error:
                if not error.again or time.monotonic() + PAUSE_S >= end:
                    raise
            time.sleep(PAUSE_S)

    def _put_back(self, change):
        thing = self.read()
        now = self.owner.kept(thing, change.after)
        if now == change.before:  # an answer was lost
            return
        if now != change.after:
            raise RefusedError("%s was changed meanwhile by somebody else, and is left as it is" % self.owner.words)
        if _none_before(change.before) and hasattr(self.owner, "new"):
            self._delete(thing, check=False)
        else:
            self._write(thing, change.before, change.mark, check=False)

    def way_back(self, thing):
        """The command that undoes what an earlier run has written, if any."""
        mark = self._mark(thing)
        return self._command(thing, mark["before"]) if mark else ""

    def _mark(self, thing):
        try:
            found = json.loads(text(thing, "metadata", "annotations", self.mark))
        except ValueError:
            return None
        return found if isinstance(found, dict) and all(mapping(found, part) for part in ("before", "after", "pods")) else None

    def _command(self, thing, before):
        if _none_before(before) and hasattr(self.owner, "new"):
            return "kubectl -n %s delete %s %s" % (shlex.quote(self.owner.namespace), self.owner.resource, shlex.quote(self.owner.name))
        return self.owner.command({"metadata": {"annotations": {self.mark: None}}, **self.owner.patch(thing, before)}) or self.playbook

    def _write(self, thing, words, mark, check):
        metadata = {"annotations": {self.mark: mark}}
        if thing is None:
            body = self.owner.new({"metadata": metadata, **self.owner.patch(thing, words)})
            write = partial(self.door.create, self.owner.all, body, self.seconds)
        else:
            # The version makes it fail where somebody else has written in between.
            body = {"metadata": {**metadata, "resourceVersion": text(thing, "metadata", "resourceVersion")}, **self.owner.patch(thing, words)}
            write = partial(self.door.patch, self.owner.path, body, self.seconds, kind=self.owner.kind)
        self._asked(write, words, dry=True)
        if not check:
            self._asked(write, words, dry=False)

    def _asked(self, write, words, dry):
        try:
            said = write(dry_run=dry)
        except NoAnswerError as error:
            raise _refusal(error, self.owner, dry) from None
        kept = self.owner.kept(said, words)
        if dry and kept != words:
            raise RefusedError(
                "%s does not take it: of %s the API server would keep %s. Nothing was changed; the definition that this cluster has does not know all of it"
                % (self.owner.words, self._shown(words), self._shown(kept))
            )

    def _shown(self, words):
        return json.dumps(self.owner.shown(words))

    def _delete(self, thing, check):
        metadata = mapping(thing, "metadata")
        body = {"preconditions": {"uid": text(metadata, "uid"), "resourceVersion": text(metadata, "resourceVersion")}}
        for dry in (True, False)[: 1 if check else 2]:
            try:
                self.door.delete(self.owner.path, self.seconds, body, dry_run=dry)
            except NoAnswerError as error:
                raise _refusal(error, self.owner, dry) from None


def _over(below, above):
    """Words of the same parts, the latter where both say something."""
    return {part: {**below.get(part, {}), **above.get(part, {})} for part in {**below, **above}}


def _both_over(pods, mark):
    return {"before": _over(pods["before"], mapping(mark, "before")), "after": _over(mapping(mark, "after"), pods["after"])}


def _none_before(words):
    """Whether the whole object was not there."""
    return "valuesContent" in words.get("spec", {}) and words["spec"]["valuesContent"] is None


def _unread(error, owner):
    if error.missing:
        return "%s is not there. Read the cluster anew (cluster_check): it may be installed in another way by now" % owner.words
    return "%s could not be read: %s%s" % (owner.words, error.why, ". " + RIGHTS if error.kind == DENIED else "")


def _refusal(error, owner, dry):
    """In the operator's words, why a write did not come about."""
    nothing = "Nothing was changed"
    if error.status == 409:
        words = "somebody else has changed %s at the same time. %s: look at what they did, and run this again" % (owner.words, nothing)
    elif "admission webhook" in error.why or "ValidatingAdmissionPolicy" in error.why:
        words = "an admission policy of the cluster refuses this change of %s: %s. %s" % (owner.words, error.why, nothing)
    elif error.kind == DENIED:
        words = "%s. %s. %s" % (error.why, nothing, RIGHTS)
    elif error.kind == HUNG or not error.status:
        more = nothing if dry else "Whether it was made is not known: run this again, which finds that out"
        words = "no answer to the change of %s: %s. %s" % (owner.words, error.why, more)
    else:
        words = "the API server refuses this change of %s: %s. %s" % (owner.words, error.why, nothing)
    return _again(RefusedError(words), error)


def _again(refusal, error):
    refusal.again = error.status not in FINAL
    return refusal
