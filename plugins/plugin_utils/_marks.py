# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The mark that a repair leaves on a Node, and the marks of others who work on one: reboot daemons, remediators, autoscalers.

All of it is data of others: whatever is written there is read without trust, and what cannot be read counts as somebody's mark.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import NamedTuple

from ._report.words import safe
from ._sweep._values import time as moment

MARKER = "nodecare/repair"  # an annotation; on the Lease it says who holds it and what for
LONGEST = 200


class Marker(NamedTuple):
    """Who repairs a Node; ``cordoned`` only where it was schedulable before. ``broken`` says why it cannot be read."""

    run: str = ""
    holder: str = ""
    repair: str = ""
    at: str = ""
    cordoned: bool = False
    broken: str = ""

    def written(self):
        return json.dumps({"holder": self.holder, "run": self.run, "repair": self.repair, "at": self.at, "cordoned": self.cordoned})

    def facts(self):
        return {**{name: safe(getattr(self, name)) for name in ("run", "holder", "repair", "at", "broken")}, "cordoned": self.cordoned}

    def said(self):
        if self.broken:
            return "a mark %s that cannot be read (%s)" % (MARKER, self.broken)
        return "%s (run %s), for %s, since %s" % tuple(map(safe, (self.holder, self.run, self.repair or "a repair", self.at)))


def marker(annotations):
    """The Marker among a Node's annotations, None where it has none."""
    said = annotations.get(MARKER)
    return None if said is None else _read(said)


def _read(said):
    try:
        found = json.loads(said)
    except (TypeError, ValueError, RecursionError):
        return Marker(broken="it is not JSON")
    if not isinstance(found, dict):
        return Marker(broken="it is no JSON object")
    wrong = [name for name, kind in KINDS.items() if not isinstance(found.get(name), kind)]
    if wrong:
        return Marker(broken="its %s is missing or of another kind" % ", ".join(wrong))
    if not found["run"].strip() or moment(found, "at") is None:
        return Marker(broken="it names no run or no time")
    return Marker(**{name: value[:LONGEST] if isinstance(value, str) else value for name, value in found.items() if name in KINDS})


KINDS = {"run": str, "holder": str, "repair": str, "at": str, "cordoned": bool}


def written(seconds):
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- others ------------------------------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """Somebody else is at work on a Node, or is about to be."""

    who: str
    what: str
    where: str

    def said(self):
        return "%s %s (%s)" % tuple(map(safe, self))


def _any(_value):
    return True


def _true(value):
    return value == "true"


def _one_of(*values):
    return lambda value: value in values


# {annotation: (who, what that means, which values mean it)}
ANNOTATIONS = {
    "weave.works/kured-reboot-in-progress": ("kured", "is rebooting it", _any),
    "flatcar-linux-update.v1.flatcar-linux.net/reboot-ok": ("the Flatcar update operator", "has allowed its reboot", _true),
    "flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress": ("the Flatcar update operator", "is rebooting it", _true),
    "machineconfiguration.openshift.io/state": ("the machine config daemon", "is changing it", _one_of("Working", "Rebooting")),
}
# {beginning of a taint's key: (who, what that means)}
TAINTS = {
    "ToBeDeletedByClusterAutoscaler": ("the cluster autoscaler", "is about to delete it"),
    "karpenter.sh/disrupt": ("Karpenter", "is replacing it"),  # disruption in its beta, disrupted since 1.0
    "medik8s.io/drain": ("medik8s", "holds it in maintenance"),
    "medik8s.io/remediation": ("medik8s", "is remediating it"),
    "node.cluster.x-k8s.io/": ("Cluster API", "is setting it up or replacing it"),
    "aws-node-termination-handler/": ("the AWS termination handler", "expects its end"),
    "cloud.google.com/impending-node-termination": ("Google Cloud", "is about to end it"),
    "node.kubernetes.io/out-of-service": ("somebody", "has taken it out of service"),
}


def foreign(node, cluster=None):
    """The Marks of others on one of the ``nodes`` of a cluster's facts, and among the ``locks`` of these facts where they are given."""
    found = [Mark("somebody", "is deleting this Node", "metadata.deletionTimestamp")] if node.get("deleting") else []
    for name, value in sorted(node["annotations"].items()):
        who, what, means = ANNOTATIONS.get(name) or (None, None, None)
        if who and means(value):
            found.append(Mark(who, what, "annotation %s=%s" % (name, str(value)[:LONGEST])))
    for taint in node["taints"]:
        found += [Mark(who, what, "taint %s" % taint["key"]) for key, (who, what) in TAINTS.items() if taint["key"].startswith(key)]
    return found + [mark for mark, name in _locked(cluster or {}) if name in (node["name"], "")]


def _locked(cluster):
    """(Mark, name of the Node, '' where it may be any) for each lock that is not over."""
    now = (cluster.get("taken") or {}).get("server_time") or (cluster.get("taken") or {}).get("at")
    for lock in cluster.get("locks") or []:
        until = lock.get("until")
        if until is None or now is None or now <= until:
            yield Mark(lock["who"], lock["what"], lock["where"]), lock["node"]
