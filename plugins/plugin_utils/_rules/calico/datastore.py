# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's datastore: is it locked, and will a migration of addresses lock it?"""

from __future__ import annotations

from ... import _cluster
from ..._policy import threshold
from .._asked import causes
from .._rule import by_hand, fail, of_cluster, passed, proven, repaired_by, rule, skip, warn

MIGRATION = threshold("calico_migration_s", 60.0, "Seconds that a migration of addresses by upgrade-ipam may take, with the datastore locked.")

REPAIR = "repair_ipam"
UPGRADE, LEFT_OVER = "upgrade-ipam", "k8s-pod-network"
PATH = "/var/lib/cni/networks/" + LEFT_OVER
AWAY = "mv %(path)s /var/lib/cni/" + LEFT_OVER + ".left-over"
IN_USE = by_hand("on %(node)s: ip route show | grep -F /32  # drain the node before %(path)s is moved away", disruptive=True)
FIRST = repaired_by(REPAIR, "put what calico.init_stuck of %(node)s names right first; only where the migration fails even then, on %(node)s: " + AWAY)
UNLOCK = 'kubectl patch clusterinformations.crd.projectcalico.org default --type merge -p \'{"spec":{"datastoreReady":true}}\''


@rule(
    "calico.ipam_migration",
    "calico-node will try to migrate addresses of an earlier network",
    needs=("cluster.calico", "links.ipam"),
    uses=("cluster", "links.cni"),
    remedy=repaired_by(REPAIR, "on %(node)s: " + AWAY),
)
def ipam_migration(calico, ipam, cluster, cni, policy):
    """Where /var/lib/cni/networks/k8s-pod-network exists, the init container upgrade-ipam locks the datastore of the whole cluster and migrates it.

    On any error it tries again every second for ever: calico-node stays at Init:0/3, and no node of the cluster can start a pod.
    Installations without that init container leave the directory alone.
    """
    left = next((one for one in ipam if one["network"] == LEFT_OVER), None)
    if left is None:
        return proven("%s is not there: nothing is to be migrated" % PATH)
    pods = _cluster.pods(cluster, _cluster.NODE)
    if not pods:
        return skip("the cluster has no calico-node pod that would tell whether it migrates")
    if not any(one["name"] == UPGRADE for pod in pods for one in pod.get("init") or []):
        return passed("%s is there, but this installation of Calico has no %s" % (PATH, UPGRADE))
    if not causes(("links.ipam_leftovers",), {"links": {"ipam": [left], "cni": cni or {"unread": True}}}, policy, ("fail", "warn")):
        return passed("%s is in use by the node's own CNI configuration" % PATH) if cni else skip("the CNI configuration was not read")
    return _migrates(left, cluster, policy)


def _migrates(left, cluster, policy):
    node = cluster.get("node")
    evidence = {"path": PATH, "entries": left["entries"], "routed": left["routed"]}
    kept = "%s keeps %s" % (PATH, "%d addresses, of which %d have a route" % (left["entries"], left["routed"]) if left["entries"] else "no address")
    remedy = IN_USE if left["routed"] else None
    running = _running(_cluster.pod_of(node)) if node else None
    if running:
        lasts = _cluster.age(cluster, running.get("since"))
        words = "%s has been migrating it%s, with the datastore of the whole cluster locked" % (
            UPGRADE,
            "" if lasts is None else " for %s" % _cluster.span(lasts),
        )
        verdict = warn if lasts is not None and lasts < policy[MIGRATION] else fail
        return verdict("%s, and %s" % (kept, words), remedy or FIRST, **evidence)
    when = "at its next start here calico-node" if node else "when this machine joins, calico-node"
    return (fail if left["entries"] else warn)("%s; %s will lock the whole cluster's datastore to migrate it" % (kept, when), remedy, **evidence)


def _running(pod):
    return next((one for one in (pod or {}).get("init") or [] if one["name"] == UPGRADE and one.get("state") == "running"), None)


@of_cluster(
    "calico.datastore_not_ready",
    "Calico's datastore is locked",
    needs="cluster.calico",
    uses="cluster",
    remedy=repaired_by(REPAIR, UNLOCK),
)
def datastore_not_ready(calico, cluster, policy):
    """While datastoreReady is false every CNI call ends with "Calico is currently not ready to process requests", on all nodes: no pod starts.

    A migration that was interrupted, or a forgotten "calicoctl datastore migrate lock", leaves it so. Where a migration still
    runs, it has to end first.
    """
    if (calico.get("install") or {}).get("kind") == "none":
        return skip("Calico is not installed in this cluster")
    information = calico.get("cluster_information")
    if information is None:
        return skip("Calico has not been set up yet: there is no ClusterInformation")
    if information.get("datastore_ready") is not False:
        return proven("datastoreReady is true")
    at_work = [(pod, one) for pod in _cluster.pods(cluster, _cluster.NODE) for one in [_running(pod)] if one]
    if not at_work:
        return fail("datastoreReady is false and no migration runs: it was interrupted, or the lock was forgotten", nodes=[])
    nodes = sorted({pod["node"] for pod, _one in at_work})
    lasts = max((_cluster.age(cluster, one.get("since")) or 0 for _pod, one in at_work), default=0)
    verdict = warn if 0 < lasts < policy[MIGRATION] else fail
    first = repaired_by(REPAIR, "put calico.init_stuck of the nodes named here right first; only when no " + UPGRADE + " runs any more: " + UNLOCK)
    return verdict("datastoreReady is false, while %s runs on %s for %s" % (UPGRADE, _cluster.listed(nodes), _cluster.span(lasts)), first, nodes=nodes)
