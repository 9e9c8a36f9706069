# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A calico-node that is stuck in upgrade-ipam: what of it is to be put right here, what first elsewhere, and what is no fault at all."""

from __future__ import annotations

import json
from collections import namedtuple

from . import _cluster
from ._rules.calico.datastore import LEFT_OVER, MIGRATION, UPGRADE

CHECKS = ("calico.init_stuck", "calico.ipam_migration", "calico.datastore_not_ready", "links.ipam_leftovers")
OURS = "nodecare/unlocked"  # the annotation on ClusterInformation
GROUPS = ("crd.projectcalico.org/v1", "projectcalico.org/v3")
CALICOS = ("calico", "Go-http-client")  # as their managers are called: Calico's client says no name of its own
HAND = "%s has locked Calico's datastore%s, and not for a migration of this node: somebody may be at work. When nobody is: even_if_locked_by_hand=true"

TAKES_TIME = ("the image of", "calico-node has been initialising")  # how the rule begins where it waits

Decision = namedtuple("Decision", "move unlock refused left_alone")  # two truths, and why not, in words


def decide(findings, cluster, policy):
    """What is to be done on this node and about the datastore, from what the rules say of both."""
    by_rule = {}
    for one in findings:
        by_rule.setdefault(one["id"], []).append(one)
    kept = [one for one in by_rule.get("links.ipam_leftovers", []) if one["evidence"].get("network") == LEFT_OVER]
    left_over = any(one["status"] in ("fail", "warn") for one in kept)
    locked = ((cluster.get("calico") or {}).get("cluster_information") or {}).get("datastore_ready") is False
    if not left_over and not locked:
        stuck = next((one for one in by_rule.get("calico.init_stuck", []) if one["status"] == "fail"), None)
        return Decision(False, False, stuck and "nothing of this is upgrade-ipam's doing: " + stuck["message"], None)
    healthy = _healthy(by_rule, cluster, policy)
    if healthy:
        return Decision(False, False, None, healthy)
    own = (cluster.get("node") or {}).get("name")
    elsewhere = [node for node, _container in migrating(cluster) if node != own]
    if not left_over and elsewhere:
        return Decision(False, False, None, "the datastore is locked while %s runs on %s: repair that" % (UPGRADE, _cluster.listed(elsewhere)))
    return Decision(left_over, locked, _first(by_rule), None)


def _healthy(by_rule, cluster, policy):
    """An image that is being pulled, a start that has only begun, a migration that is not yet overdue."""
    young = next((one for one in by_rule.get("calico.init_stuck", []) if one["status"] == "skip" and one["message"].startswith(TAKES_TIME)), None)
    if young:
        return young["message"]
    lasts = [_cluster.age(cluster, one.get("since")) for _node, one in migrating(cluster) if _node == (cluster.get("node") or {}).get("name")]
    if lasts and lasts[0] is not None and lasts[0] < policy[MIGRATION]:
        return "%s has been migrating for %s only" % (UPGRADE, _cluster.span(lasts[0]))
    return None


def _first(by_rule):
    """What has to be put right before, because the migration only suffers from it."""
    for one in by_rule.get("calico.init_stuck", []):
        if one["status"] == "fail" and one["evidence"].get("cause") not in ("ipam_migration", "unknown", "crash"):
            return "this has to be put right first: " + one["message"]
    return None


def migrating(cluster):
    """[(node, container)] of each upgrade-ipam that runs."""
    pods = _cluster.pods(cluster, _cluster.NODE)
    return [(pod["node"], one) for pod in pods for one in pod.get("init") or [] if one["name"] == UPGRADE and one.get("state") == "running"]


# -- the datastore -----------------------------------------------------------------------------------------------------------


def information(door, seconds, missing):
    """(path, the object) of Calico's ClusterInformation, by whichever of its groups this cluster has."""
    for group in GROUPS:
        path = "/apis/%s/clusterinformations/default" % group
        try:
            return path, door.get(path, {}, seconds)
        except missing as why:
            if not why.missing:
                raise
    return None, None


def locked_by_hand(found, migrated):
    """Who has set the lock, in words, unless it was a migration's: one of Calico's programs, and addresses to migrate are or were there.

    By its manager alone the API server cannot tell upgrade-ipam from calicoctl.
    """
    for one in found["metadata"].get("managedFields") or []:
        if "f:datastoreReady" in ((one.get("fieldsV1") or {}).get("f:spec") or {}):
            manager = str(one.get("manager") or "somebody")
            if migrated and manager.startswith(CALICOS):
                return None
            return HAND % ("one of Calico's programs" if manager.startswith(CALICOS) else manager, " at %s" % one["time"] if one.get("time") else "")
    return None if migrated else HAND % ("somebody who is not known", "")


def unlocked(found, at):
    """The patch that frees the datastore, and says so in the same write; it fails where somebody else has written meanwhile."""
    note = json.dumps({"at": at, "was": {"datastoreReady": False}}, sort_keys=True)
    return {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"], "annotations": {OURS: note}}, "spec": {"datastoreReady": True}}


def undo(path):
    """The command that locks it again."""
    kind = "clusterinformations.projectcalico.org" if "projectcalico.org/v3" in path else "clusterinformations.crd.projectcalico.org"
    patch = {"metadata": {"annotations": {OURS: None}}, "spec": {"datastoreReady": False}}
    return "kubectl patch %s default --type merge -p '%s'" % (kind, json.dumps(patch))
