# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The lock of a cluster: one Lease, which one run at a time holds, and which another may take only once it is over."""

from __future__ import annotations

import json
import time
from datetime import datetime, timezone

from ._api import NoAnswerError
from ._marks import MARKER, written
from ._report.words import safe
from ._sweep._values import mapping, number, text
from ._sweep._values import time as moment

NAMESPACE, NAME = "kube-system", "nodecare-repair"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % NAMESPACE
PATH = "%s/%s" % (LEASES, NAME)
WHERE = "Lease %s/%s" % (NAMESPACE, NAME)
SKEW = 30.0  # seconds by which the clocks of a cluster's API servers may differ
BY_HAND = "kubectl -n %s delete lease %s" % (NAMESPACE, NAME)
CREATED, RENEWED, TAKEN_OVER, FREED, NOTHING = "created", "renewed", "taken_over", "freed", "nothing"


class HeldError(Exception):
    """Another run holds the lock."""

    def __init__(self, said, lease):
        super().__init__(said)
        self.lease = lease


class LostError(HeldError):
    """This run held the lock, and does no longer."""

    def __init__(self, lease, now):
        super().__init__("this run has lost the cluster's lock%s" % (" to %s" % lease.said(now) if lease else ": somebody has deleted the " + WHERE), lease)


class Lease:
    """As it was read; whatever is missing in it or broken is None or empty."""

    def __init__(self, thing):
        self.thing = thing
        self.run = text(thing, "spec", "holderIdentity")
        self.since, self.renewed = moment(thing, "spec", "acquireTime"), moment(thing, "spec", "renewTime")
        self.duration = number(thing, "spec", "leaseDurationSeconds")
        note = _note(text(thing, "metadata", "annotations", MARKER))
        self.holder, self.repair, self.taken_from = (text(note, name) for name in ("holder", "repair", "taken_from"))

    @property
    def until(self):
        return None if self.renewed is None or self.duration is None else self.renewed + self.duration

    def is_over(self, now):
        """A Lease of nobody is over, and one of somebody never where it does not say until when he wants it."""
        return not self.run or (self.until is not None and now > self.until + SKEW)

    def facts(self):
        times = {name: _written(getattr(self, name)) for name in ("since", "renewed", "until")}
        return {**{name: safe(getattr(self, name)) for name in ("run", "holder", "repair")}, "duration": self.duration, **times}

    def said(self, now):
        """Who holds it, what for, since when, until when, and what to do."""
        who = "%s (run %s)" % (safe(self.holder), safe(self.run)) if self.holder else "run %s" % safe(self.run)
        what = ", for %s" % safe(self.repair) if self.repair else ""
        since = _written(self.since) or "a time that is not known"
        end = "It does not say until when, so it is not taken over"
        if self.until is not None:
            end = "It was renewed %.0f s ago, and is taken over after %s unless it is renewed again" % (max(0, now - self.renewed), _written(self.until + SKEW))
        return "%s%s, since %s. %s. Wait for that run, or run again when it is through. Where it is certain that it is dead: %s" % (
            who,
            what,
            since,
            end,
            BY_HAND,
        )


class Lock:
    def __init__(self, door, run, dry_run=False):
        self.door, self.run, self.dry_run = door, run, dry_run

    def read(self, seconds):
        try:
            return Lease(self.door.get(PATH, {}, seconds))
        except NoAnswerError as error:
            if error.missing:
                return None
            raise

    def take(self, repair, duration, seconds):
        """(how, the Lease, what was before); HeldError where another run has it."""
        lease = self.read(seconds)
        if lease is None:
            return CREATED, self._create(repair, duration, seconds), None
        if lease.run == self.run.id:
            return RENEWED, self._write(lease, repair, duration, lease.since, seconds), lease
        if lease.is_over(self.door.now):
            return TAKEN_OVER if lease.run else CREATED, self._write(lease, repair, duration, None, seconds), lease
        if lease.taken_from == self.run.id:
            raise LostError(lease, self.door.now)
        raise HeldError("another run holds the cluster's lock: " + lease.said(self.door.now), lease)

    def renew(self, seconds):
        """Only what this run holds already; LostError where it does not."""
        lease = self.read(seconds)
        if lease is None or lease.run != self.run.id:
            raise LostError(lease, self.door.now)
        return self._write(lease, lease.repair, lease.duration, lease.since, seconds)

    def free(self, seconds):
        """(how, what was before): only this run's own Lease goes."""
        lease = self.read(seconds)
        if lease is None or lease.run != self.run.id:
            return NOTHING, lease
        only = {name: text(lease.thing, "metadata", name) for name in ("uid", "resourceVersion")}
        try:
            self.door.delete(PATH, seconds, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only}, dry_run=self.dry_run)
        except NoAnswerError as error:
            if not error.missing:
                raise
            return NOTHING, None  # another node of the same batch was quicker
        return FREED, lease

    def _create(self, repair, duration, seconds):
        new = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME, "namespace": NAMESPACE}}
        return Lease(self.door.create(LEASES, self._filled(new, repair, duration, None), seconds, dry_run=self.dry_run))

    def _write(self, lease, repair, duration, since, seconds):
        """With the resourceVersion that it was read with: whoever was quicker, wins."""
        return Lease(self.door.replace(PATH, self._filled(lease.thing, repair, duration, since, lease), seconds, dry_run=self.dry_run))

    def _filled(self, thing, repair, duration, since, lease=None):
        metadata, spec, now = mapping(thing, "metadata"), mapping(thing, "spec"), self.door.now
        note = {"holder": self.run.holder, "repair": repair, "taken_from": _taken_from(lease, self.run)}
        held = {
            "holderIdentity": self.run.id,
            "leaseDurationSeconds": duration,
            "acquireTime": _micro(now if since is None else since),
            "renewTime": _micro(now),
            "leaseTransitions": int(number(spec, "leaseTransitions") or 0) + (since is None and lease is not None),
        }
        return {
            **thing,
            "metadata": {**metadata, "annotations": {**mapping(metadata, "annotations"), MARKER: json.dumps(note)}},
            "spec": {**spec, **held},
        }


class Keeper:
    """Renews this run's Lease in the loops of those who wait long; where the run has none at their beginning there is nothing to keep."""

    def __init__(self, door, run, seconds=10.0):
        self.lock, self.seconds = Lock(door, run), seconds
        lease = self.lock.read(seconds)
        self.lease = lease if lease and lease.run == run.id else None
        self._next = 0.0

    def keep(self):
        """Often enough; an API server that does not answer is borne as long as the Lease lasts. LostError where it is another's by now."""
        if self.lease is None or time.monotonic() < self._next:
            return
        try:
            self.lease = self.lock.renew(self.seconds)
        except NoAnswerError:
            if self.lock.door.now > (self.lease.until or 0):
                raise
            return
        self._next = time.monotonic() + self.lease.duration / 4


def _taken_from(lease, run):
    """The run from which it was taken over, which may look for it in vain some day."""
    if lease is None:
        return ""
    return lease.taken_from if lease.run == run.id else lease.run


def _note(said):
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _written(seconds):
    try:
        return None if seconds is None else written(seconds)
    except (ValueError, OverflowError):  # a year that nobody means
        return None


def _micro(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
