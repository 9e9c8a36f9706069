# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The locks by which others say on which Node they are at work, where that is not written on the Node itself."""

from __future__ import annotations

import json

from ._values import entries, mapping, number, text, time

KURED = "weave.works/kured-node-lock"  # an annotation of its DaemonSet
MEDIK8S = "medik8s-leases"  # a namespace with a Lease for each Node that is in somebody's hands
UPGRADE = "upgrade.cattle.io/node"  # a label of the system upgrade controller's Jobs
NANOSECONDS = 1e9


def kured(daemonset):
    """One lock, or several where kured may reboot more than one Node at a time."""
    said = text(daemonset, "metadata", "annotations", KURED)
    if not said:
        return []
    where = "annotation %s of DaemonSet %s/%s" % (KURED, text(daemonset, "metadata", "namespace"), text(daemonset, "metadata", "name"))
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    held = entries(found, "locks") or [found]
    return [_lock("kured", "holds its lock", where, text(one, "nodeID"), time(one, "created"), _seconds(one)) for one in held]


def _seconds(lock):
    """kured counts in nanoseconds, and 0 is for ever."""
    return (number(lock, "TTL") or 0) / NANOSECONDS or None


def medik8s(lease):
    """None where nobody holds it."""
    holder, name = text(lease, "spec", "holderIdentity"), text(lease, "metadata", "name")
    if not holder or not name.startswith("node-"):
        return None
    since = time(lease, "spec", "renewTime")
    where = "Lease %s/%s of %s" % (MEDIK8S, name, holder)
    return _lock("medik8s", "has it in its hands", where, name.removeprefix("node-"), since, number(lease, "spec", "leaseDurationSeconds"))


def upgrade(job):
    """None where it is through."""
    if not number(job, "status", "active"):
        return None
    where = "Job %s/%s" % (text(job, "metadata", "namespace"), text(job, "metadata", "name"))
    since = time(job, "status", "startTime")
    return _lock("the system upgrade controller", "is upgrading it", where, text(mapping(job, "metadata", "labels"), UPGRADE), since, None)


def _lock(who, what, where, node, since, seconds):
    """A lock that does not name its Node may be about any, and one that does not say for how long holds for ever."""
    until = since + seconds if since is not None and seconds is not None else None
    return {"who": who, "what": what, "where": where, "node": node, "since": since, "until": until}
