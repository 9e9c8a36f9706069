# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Why a pod of Calico's does not stay up: killed while it starts, or ended by itself again and again."""

from __future__ import annotations

import re

from ... import _cluster
from ..._outliers import standings
from ..._policy import threshold
from .._asked import causes
from .._rule import across, by_hand, fail, passed, proven, repaired_by, rule, unknown, warn
from ._words import LOGS, about, ended_early, explained, initialising, logs_of, one_line

LATELY = threshold("calico_restarted_s", 1800.0, "Seconds after a restart of a pod of Calico's within which it counts as still unstable.")
RESTARTS = threshold("calico_restarts", 3, "Restarts of a container from which on a recent one is no single accident.")
UNREADY = threshold("calico_unready_s", 300.0, "Seconds for which a running pod of Calico's may be not ready.")

CALICO = ("calico-node", "calico-typha", "calico-kube-controllers", "tigera-operator")

# -- killed while it starts --------------------------------------------------------------------------------------------

KILLED = re.compile(r"failed liveness probe|Liveness probe failed")
REFUSED = re.compile(r"/liveness\S*:? .*(connection refused|Client\.Timeout|deadline exceeded)", re.DOTALL)
DRAIN = repaired_by(
    "repair_overload",
    "kubectl drain %(node)s --ignore-daemonsets --delete-emptydir-data  # then reboot it, and: kubectl uncordon %(node)s; what made the load: see load.outlier",
    disruptive=True,
    reboot=True,
)
RELIEVE = by_hand("take away from %(node)s what makes the load, which load.outlier and load.saturated name: calico-node then stays up by itself")


@across(
    "calico.overloaded_node",
    "calico-node is killed while it starts, because its node is overloaded",
    needs="cluster.node",
    uses=("cluster", "load", "calico.logs"),
    remedy=DRAIN,
)
def overloaded_node(nodes, policy):
    """On a node with many times the others' load calico-node starts too slowly for its liveness probe, and is killed before Felix answers on 9099.

    Its log then simply ends, often after "Using node name:", and equals a healthy node's: a short log is a symptom of being
    killed. Restarting the pod does not help; taking the load away does.
    """
    killed = {name: _killed(node, cluster, policy) for name, (node, cluster, _load, _logs) in nodes.items()}
    said = {
        name: unknown("the cluster's pods or their events were not read")
        for name, (node, cluster, _load, _logs) in nodes.items()
        if _is_unread(node, cluster, policy)
    }
    if not any(killed.values()):
        return said
    loads = {name: load for name, (_node, _cluster, load, _logs) in nodes.items() if load}
    found, _left_out = standings(loads, policy)
    for name, (pod, line) in ((name, one) for name, one in killed.items() if one):
        _node, cluster, load, logs = nodes[name]
        saturated = causes(("load.saturated",), {"load": load or {}}, policy)
        why = [one.reason for one in found if one.node == name and one.stands_out] or [one.verdict.message for one in saturated]
        if why:
            drained = any(one.remedy["playbook"] == DRAIN["playbook"] for one in saturated)  # else the playbook would do nothing
            said[name] = _starved(pod, line, why, DRAIN if drained else RELIEVE, cluster, logs_of(logs, pod, _cluster.NODE))
        else:
            said[name] = unknown("its load was not read") if not load else passed("its liveness probe kills it, but the node is not overloaded")
    return said


def _killed(node, cluster, policy):
    """(its calico-node, what the kubelet said) where a liveness probe ended it lately."""
    pod = _ended_lately(node, cluster, policy)
    if not pod:
        return None
    said = [one["message"] for one in _cluster.events(node, pod) if KILLED.search(one.get("message") or "")]
    refused = [line for line in said if REFUSED.search(line)]
    return (pod, (refused or said)[0]) if said else None


def _ended_lately(node, cluster, policy):
    """Its calico-node, where that was started anew a short while ago."""
    pod = _cluster.pod_of(node)
    main = _cluster.container(pod) if pod else None
    return pod if main and _cluster.ended_lately(cluster, main, policy[LATELY]) else None


def _is_unread(node, cluster, policy):
    """Whether nobody knows if a probe has ended its calico-node."""
    return node.get("pods") is None or (node.get("events") is None and _ended_lately(node, cluster, policy) is not None)


def _starved(pod, line, why, remedy, cluster, logs):
    main = _cluster.container(pod)
    until = _cluster.age(cluster, _cluster.ended_at(main))
    times = "%s was restarted %d times%s" % (pod["name"], main.get("restarts") or 0, "" if until is None else ", the last time %s ago" % _cluster.span(until))
    words = "%s, because its liveness probe gave up on it%s (%s); %s%s" % (times, _budget(cluster), one_line(line), "; ".join(why), ended_early(logs))
    return fail(words, remedy, **about(pod, main), says=line, load=why)


def _budget(cluster):
    one = (((cluster.get("calico") or {}).get("probes")) or {}).get("liveness") or {}
    if not all(_cluster.is_number(one.get(name)) for name in ("delay_s", "period_s", "failures")):
        return ""
    return " after %g s + %g × %g s" % (one["delay_s"], one["failures"], one["period_s"])


# -- restarts ----------------------------------------------------------------------------------------------------------

BAD = ("CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")


@rule(
    "calico.crashing",
    "A pod of Calico's does not stay up",
    needs="cluster.node",
    uses=("cluster", "calico.logs"),
    remedy=by_hand("kubectl -n %(namespace)s describe pod %(pod)s; " + LOGS + " --previous --tail=30"),
)
def crashing(node, cluster, logs, policy):
    """A container that ends again and again says why in the last lines of its log and in how it ended; exit code 137 without more words is a kill.

    A restart hours ago, and a pod that has just been made anew, are nothing to act upon.
    """
    if node.get("pods") is None:
        return unknown("the cluster's pods were not read")
    pods = [pod for name in CALICO for pod in _cluster.pods(node, name)]
    found = [_unsteady(pod, node, cluster, logs_of(logs, pod, pod["component"]), policy) for pod in pods]
    return [one for one in found if one] or proven("the pods of Calico's on it stay up")


def _unsteady(pod, node, cluster, logs, policy):
    main = _cluster.container(pod)
    if main is None or initialising(pod)[1] is not None:
        return None
    last = main if main.get("state") == "terminated" else main.get("last") or {}
    lately = _cluster.ended_lately(cluster, main, policy[LATELY])
    evidence = {**about(pod, main), "exit_code": last.get("exit_code"), "signal": last.get("signal"), "reason": last.get("reason")}
    if main.get("reason") in BAD or (lately and (main.get("restarts") or 0) >= policy[RESTARTS]):
        said = "%s was restarted %d times and is in %s" % (pod["name"], main.get("restarts") or 0, _cluster.doing(pod))
        return fail("%s; %s%s" % (said, _end(last, main, node, pod), explained(logs)), **evidence)
    return _not_ready(pod, main, node, cluster, logs, evidence, policy)


def _end(last, main, node, pod):
    """How it ended, as far as that tells why."""
    killed = next((one["message"] for one in _cluster.events(node, pod) if KILLED.search(one.get("message") or "")), None)
    if last.get("reason") == "OOMKilled":
        return "it was killed for want of memory: raise its memory limit"
    if killed:
        return "its liveness probe ended it (%s)" % one_line(killed)
    if last.get("exit_code") is not None:
        return "it ended with exit code %s%s" % (last["exit_code"], " (%s)" % last["reason"] if last.get("reason") not in (None, "", "Error") else "")
    return main.get("message") or "nothing tells how it ended"


def _not_ready(pod, main, node, cluster, logs, evidence, policy):
    """One that runs for long and is not ready, for another reason than its peers."""
    if pod.get("ready") or main.get("state") != "running" or _cluster.is_ready(node) is False or _cluster.younger(cluster, main.get("since"), policy[UNREADY]):
        return None
    said = next((one["message"] for one in _cluster.events(node, pod) if one.get("reason") == "Unhealthy"), None)
    if said and "BGP not established" in said:
        return None
    since = _cluster.age(cluster, main.get("since"))
    ran = "" if since is None else " for %s" % _cluster.span(since)
    return warn("%s runs%s and is not ready: %s%s" % (pod["name"], ran, one_line(said or "nothing tells why"), explained(logs)), says=said, **evidence)
