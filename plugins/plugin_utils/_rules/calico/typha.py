# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Typha: does it serve all nodes?"""

from __future__ import annotations

from ... import _cluster
from ..._policy import threshold
from .._rule import by_hand, fail, of_cluster, passed, skip, warn
from ._sessions import SETTLING

PER_TYPHA = threshold("nodes_per_typha", 200, "Nodes that one Typha can serve.")


@of_cluster(
    "calico.typha",
    "Typha does not serve all nodes",
    needs=("cluster.calico", "cluster.pods", "cluster.nodes"),
    uses="cluster",
    remedy=by_hand("kubectl -n %(namespace)s get pods -l k8s-app=calico-typha -o wide; one that is stuck: kubectl -n %(namespace)s delete pod %(pod)s"),
)
def typha(calico, pods, nodes, cluster, policy):
    """Felix on every node gets all it knows from a Typha; without one calico-node does not become ready, and new pods stay without a network.

    A Typha on a node that is NotReady may hold connections that are dead, so that the nodes behind it learn nothing new.
    """
    deployment = calico.get("typha")
    wanted = (calico.get("env") or {}).get("FELIX_TYPHAK8SSERVICENAME")
    if not deployment or not deployment.get("desired"):
        if isinstance(wanted, str) and wanted not in ("", "none"):
            return fail("calico-node is told to use the service %s, but no Typha is to run" % wanted, _scale(), namespace=_namespace(calico), wanted=wanted)
        return skip("this installation uses no Typha")
    running = _cluster.pods(cluster, _cluster.TYPHA)
    evidence = {"namespace": deployment["namespace"], "desired": deployment["desired"], "ready": deployment.get("ready") or 0}
    lost = _on_lost_nodes(running, nodes)
    waiting = [pod for pod in running if not pod.get("ready") and not _cluster.younger(cluster, pod.get("created"), policy[SETTLING]) and pod not in lost]
    if not evidence["ready"] and (waiting or lost or not running):
        ill = (waiting or lost or [{}])[0]
        shown = "%s is in %s" % (ill["name"], _cluster.doing(ill)) if ill else "there is no pod of it"
        return fail("none of %d is ready: %s" % (evidence["desired"], shown), pod=ill.get("name"), **evidence)
    found = [
        warn("%s is on %s, which is NotReady: nodes connected to it may learn nothing new" % (pod["name"], pod["node"]), pod=pod["name"], **evidence)
        for pod in lost
    ]
    found += [warn(_lacking(pod), pod=pod["name"], **evidence) for pod in waiting]
    if len(nodes) > policy[PER_TYPHA] * max(1, evidence["ready"]):
        said = "%d nodes share %d Typhas; one can serve %d" % (len(nodes), evidence["ready"], policy[PER_TYPHA])
        found.append(warn(said, _scale(), **evidence))
    return found or passed("%d of %d are ready" % (evidence["ready"], evidence["desired"]))


def _on_lost_nodes(pods, nodes):
    ill = {node["name"] for node in nodes if _cluster.is_ready(node) is False}
    return [pod for pod in pods if pod.get("node") in ill]


def _lacking(pod):
    if not pod.get("node"):
        return "%s has no node: two of them cannot share one, so fewer nodes than replicas take it" % pod["name"]
    return "%s on %s is not ready (%s)" % (pod["name"], pod["node"], _cluster.doing(pod))


def _scale():
    return by_hand("kubectl -n %(namespace)s scale deployment calico-typha --replicas=3  # where an operator runs Calico, it does that by itself")


def _namespace(calico):
    return (calico.get("daemonset") or {}).get("namespace") or (calico.get("install") or {}).get("namespace") or "kube-system"
