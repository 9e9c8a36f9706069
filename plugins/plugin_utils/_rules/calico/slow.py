# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How quickly do the API server and its etcd answer this node, and whose fault is it if they do not?"""

from __future__ import annotations

import re
from statistics import median

from ..._calico._startup_time import PATIENCE
from ..._policy import threshold
from .._rule import across, by_hand, fail, of_cluster, passed, rule, skip, warn

SLOW = threshold("api_answer_s", 0.5, "Seconds for an answer of the API server, or of Calico's etcd, to a node from which a warning is given.")
APART = 3.0  # times the others' from which a node is slower than they

LOOK = by_hand("on %(node)s: curl -sk -o /dev/null -w '%%{time_connect} %%{time_appconnect} %%{time_starttransfer}' https://%(target)s/version")
LOOK_AT_ETCD = by_hand("where etcd runs: etcdctl endpoint status, and its disk: etcd_disk_wal_fsync_duration_seconds should stay below 10 ms")
TIMED_OUT = re.compile(r"etcdserver: (request timed out|leader changed|too many requests)")
STEPS = {"address": "its name", "connect": "the connection", "tls": "the TLS handshake", "answer": "the answer"}
HOW = {"hung": "takes longer than there was time", "refused": "is refused", "unreachable": "is rejected on the way, or nobody has that address"}


@rule(
    "cluster.datastore_slow",
    "The API server or its etcd answers slowly, or not at all",
    needs="path.api",
    uses=("path.etcd", "cluster.node", "cluster.services", "calico.logs"),
    remedy=LOOK,
)
def datastore_slow(servers, etcd, node, services, logs, policy):
    """All on a node wait for the API server: the kubelet's leases, pods that start, and calico-node, which asks it some twenty things before it is up.

    calico-node's start-up gives up where an answer takes two seconds. The time is measured from the node itself, without
    credentials: a refusal is an answer. Whether it is the server or the path to it shows by comparison with other nodes.
    """
    if not servers:
        return skip("no API server is known yet that this node could ask")
    return [*(_of_server(one, policy) for one in _servers(servers, services)), *(_of_etcd(one, policy) for one in etcd or ()), *_said_by_etcd(node, logs)]


def _servers(servers, services):
    """Without the service's address where only that one does not answer: see cluster.service_path."""
    kubernetes = (services or {}).get("kubernetes") or {}
    service = "%s:%s" % (kubernetes.get("ip"), kubernetes.get("port") or 443)
    direct = [one for one in servers if one["target"] != service]
    return direct if any(one["state"] == "answered" for one in direct) else servers


def _of_server(one, policy):
    if one["state"] != "answered" or "answer" not in one:
        return fail("%s: %s" % (one["target"], _silence(one)), **_numbers(one))
    usual, slow = one["answer"]["p50"], one["answer"]["p90"]
    if usual >= PATIENCE:
        return fail("%s takes %.1f s for an answer; calico-node's start-up waits for %g s at most" % (one["target"], usual, PATIENCE), **_numbers(one))
    failing = (one.get("ready") or {}).get("failing")
    if failing:
        remedy = LOOK_AT_ETCD if any("etcd" in part for part in failing) else None
        return fail("%s says that it is not ready: %s" % (one["target"], ", ".join(failing)), remedy, **_numbers(one), failing=failing)
    if one.get("failed"):
        return warn("%d of %d connections to %s failed: %s" % (one["failed"], one["talks"], one["target"], _silence(one)), **_numbers(one))
    if usual >= policy[SLOW] or slow >= PATIENCE:
        words = "%s takes %.0f ms for an answer, one in ten %.0f ms; %.0f ms are too much"
        return warn(words % (one["target"], 1000 * usual, 1000 * slow, 1000 * policy[SLOW]), **_numbers(one))
    return passed("%s answers within %.0f ms" % (one["target"], 1000 * slow), **_numbers(one))


def _of_etcd(one, policy):
    """It is only connected to, because it says nothing without a certificate."""
    if one["state"] != "answered" or "connect" not in one:
        return fail("Calico's etcd %s: %s" % (one["target"], _silence(one)), LOOK_AT_ETCD, **_numbers(one))
    takes = max(one[step]["p50"] for step in ("connect", "tls") if step in one)
    words = "Calico's etcd %s takes %.0f ms for one step of a connection" % (one["target"], 1000 * takes)
    return warn(words, LOOK_AT_ETCD, **_numbers(one)) if takes >= policy[SLOW] else passed(words, **_numbers(one))


def _said_by_etcd(node, logs):
    lines = [one.get("message") for one in (node or {}).get("events") or ()] + [one.get("line") for one in logs or ()]
    said = [line for line in lines if TIMED_OUT.search(line or "")]
    return [warn("etcd did not answer the API server in time: %s" % said[0], LOOK_AT_ETCD, says=said[0], count=len(said))] if said else []


def _silence(one):
    how = HOW.get(one.get("how")) or "fails (%s)" % (one.get("why") or one.get("how"))
    return "%s %s" % (STEPS.get(one.get("at"), "the connection"), how)


def _numbers(one):
    times = {step + "_ms": round(1000 * one[step]["p50"], 1) for step in ("connect", "tls", "answer") if step in one}
    failed = {name: one.get(name) for name in ("at", "how")} if one.get("failed") else {}
    return {**{name: one.get(name) for name in ("target", "from", "talks", "failed")}, **times, **failed}


# -- compared with the other nodes -------------------------------------------------------------------------------------


@across("cluster.datastore_slow")
def datastore_slow_alike(nodes, policy):
    """Slow for one node: its path. Slow for all of them: the server or its etcd."""
    speeds = {name: _speed(_servers(servers, services)) for name, (servers, _etcd, _node, services, _logs) in nodes.items() if servers}
    said = {}
    for name, speed in speeds.items():
        others = [one for other, one in speeds.items() if other != name]
        verdicts = datastore_slow(*nodes[name], policy)
        if others and any(one.status in ("fail", "warn") for one in verdicts):
            words, targets = _compared(speed, median(others), policy), [one["target"] for one in nodes[name][0]]
            said[name] = [_with_words(one, words) if one.evidence.get("target") in targets else one for one in verdicts]
    return said


def _speed(servers):
    """The slowest server's usual answer; without end where one does not answer at all."""
    return max(one["answer"]["p50"] if one["state"] == "answered" and "answer" in one else float("inf") for one in servers)


def _compared(own, others, policy):
    if others == float("inf"):
        return "the other nodes get no answer at all: it is the server, not this node's path"
    if others >= policy[SLOW]:
        return "the other nodes wait %.0f ms as well: it is the server or its etcd, not this node's path" % (1000 * others)
    if own > APART * others:
        return "the other nodes have an answer within %.0f ms: it is this node's path to it, or its own load" % (1000 * others)
    return "the other nodes wait %.0f ms" % (1000 * others)


def _with_words(verdict, words):
    if verdict.status not in ("fail", "warn"):
        return verdict
    return (fail if verdict.status == "fail" else warn)("%s; %s" % (verdict.message, words), verdict.remedy, **verdict.evidence)


# -- as the controller sees it -----------------------------------------------------------------------------------------


@of_cluster("cluster.api_slow", "The API server answers the controller slowly", severity="warning", needs="cluster.taken", remedy=LOOK_AT_ETCD)
def api_slow(taken, policy):
    """What the controller waited for while it read the cluster, of whose nodes none need be reachable; lists of everything take longer than what nodes ask for.

    The nodes' own path to the API server is judged by cluster.datastore_slow.
    """
    took = taken.get("answers") or {}
    usual, slow = took.get("median_s"), took.get("slowest_s")
    if usual is None:
        return skip("no answer of the API server was timed")
    words = "%s answered half of the questions within %.2f s, and all within %.2f s" % (taken.get("server"), usual, slow or usual)
    evidence = {"server": taken.get("server"), "median_s": usual, "slowest_s": slow}
    if usual >= PATIENCE:
        return fail("%s; calico-node's start-up waits for %g s at most" % (words, PATIENCE), **evidence)
    return warn("%s; %g s would be too much" % (words, policy[SLOW]), **evidence) if usual >= policy[SLOW] else passed(words, **evidence)
