# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Will calico-node be up before the kubelet loses its patience?"""

from __future__ import annotations

import json
from typing import NamedTuple

from ... import _felix
from ..._calico._commands import daemonset
from ..._calico._startup_time import PATIENCE, Latency, Patience, Startup, patience, setting, startup, would_do
from ..._policy import threshold
from .._rule import by_hand, fail, passed, repaired_by, rule, skip, unknown, warn

SPARE = threshold("calico_start_spare", 1.5, "So many times the time that calico-node's start-up is foreseen to take should pass before its probe kills it.")

BY_OPERATOR = by_hand(  # no patch of the Installation: it would replace what else is said of the DaemonSet's containers
    "ansible-playbook nodecare.kubernetes.repair_probes"
    "  # an operator has the field for this since 1.43; an older one lets nobody change a probe: bring an API server nearer to the node",
    disruptive=True,
)
BY_MANIFEST = by_hand(
    "kubectl -n %(namespace)s patch daemonset %(daemonset)s -p %(patch)s  # and in the manifest, or applying it again takes it back", disruptive=True
)
REPAIRED = repaired_by("repair_probes", BY_MANIFEST["manual"], disruptive=True)
SLOW_FIRST = by_hand("see cluster.datastore_slow first: no setting of the probes helps against this")


@rule(
    "calico.liveness_budget",
    "calico-node's start-up takes longer than its liveness probe allows",
    needs=("path.api", "cluster.calico", "cluster.nodes"),
    uses=("path.etcd", "cluster.node"),
)
def liveness_budget(servers, calico, nodes, etcd, node, policy):
    """Before its probe can succeed, calico-node asks the API server some twenty things one after the other, and for all nodes where its address is new.

    From a far region that takes longer than the probe allows: the container is killed again and again, and its log ends
    without an error. The time is foreseen from the latency that this node measures. Where an answer takes two seconds,
    start-up even gives up by itself, whatever the probes allow.
    """
    if calico.get("install") is None:
        return unknown("the cluster's DaemonSets were not read")
    if calico["install"].get("kind") == "none":
        return skip("Calico is not installed in this cluster")
    waits = patience(calico.get("probes"))
    if waits is None:
        return unknown("calico-node's probes were not read") if calico.get("probes") is None else skip("no probe can end calico-node")
    server = _slowest(servers, "answer")
    if server is None:
        return _nobody(servers)
    in_etcd = calico.get("datastore") == "etcd"
    store = _slowest(etcd or (), "connect") if in_etcd else None
    if in_etcd and store is None:
        return unknown("Calico keeps its data in an etcd of which no address or no answer is known here")
    return _judged(_foreseen(server, store, calico, nodes, node, waits), policy[SPARE])


def _slowest(servers, step):
    """calico-node reaches any of them by the service's address, so the slowest counts."""
    answering = [one for one in servers if one["state"] == "answered" and step in one]
    return max(answering, key=lambda one: one[step]["p50"], default=None)


def _nobody(servers):
    if not servers:
        return unknown("no API server is known that this node could ask")
    hung = next((one for one in servers if one["state"] == "hung" and one.get("at") in ("tls", "answer")), None)
    if hung is None:
        return unknown("no API server answers this node: see cluster.datastore_slow")
    words = "%s does not answer in time, and calico-node's start-up gives up after %g s" % (hung["target"], PATIENCE)
    return fail(words, SLOW_FIRST, server=hung["target"], at=hung.get("at"))


class Foreseen(NamedTuple):
    """The next start on one node: with the usual latency, with that of one answer in ten, and once its address is written."""

    usual: Startup
    bad: Startup
    again: Startup
    waits: Patience
    first: bool
    nodes: int
    server: dict
    step: dict  # how long each of its requests takes
    calico: dict

    def takes(self, start):
        return start.bird if self.waits.needs_bird else start.felix


def _foreseen(server, store, calico, nodes, node, waits):
    held = (node or {}).get("calico") or {}
    first = not (held.get("ipv4") or held.get("ipv6"))
    count = len(nodes) + (0 if node else 1)
    tunnels = len(_felix.tunnels(calico, (node or {}).get("name")))  # a new node needs an address for each kind

    def start(part, new):
        etcd = None
        if store:  # nobody asks it without a certificate: an answer is taken to last as long as it takes to connect
            etcd = _latency(store, part)._replace(answer=store["connect"][part])
        return startup(calico.get("version"), calico.get("datastore"), _latency(server, part), count, new, tunnels if new else 0, etcd)

    step = store["connect"] if store else server["answer"]
    return Foreseen(start("p50", first), start("p90", first), start("p50", False), waits, first, count, server, step, calico)


def _latency(server, part):
    return Latency(*(server[step][part] if step in server else 0.0 for step in ("connect", "tls", "answer")))


def _judged(one, spare):
    takes, slow, waits = one.takes(one.usual), one.takes(one.bad), one.waits
    advice = _advice(one, max(spare, 1.1 * slow / takes))
    evidence = {**_numbers(one), **advice}
    answer = {part: one.server["answer"][part] for part in ("p50", "p90")}
    if one.usual.ends:
        words = '%s takes %.1f s for an answer; calico-node\'s start-up waits for %g s and gives up with "%s"'
        return fail(words % (one.server["target"], answer["p50"], PATIENCE, one.usual.ends), SLOW_FIRST, **evidence, ends=one.usual.ends)
    said = "%s takes about %.0f s: %d requests one after the other, %.0f ms each, with %s; the %s probe kills it after %.0f to %.0f s" % (
        "its first start here" if one.first else "its next start",
        *(takes, one.usual.requests, 1000 * one.step["p50"], "1 node" if one.nodes == 1 else "%d nodes" % one.nodes, waits.by, waits.earliest, waits.latest),
    )
    would = "failureThreshold %(failures)d would do, or initialDelaySeconds %(delay)d" % advice
    remedy = BY_OPERATOR if _by_operator(one.calico) else REPAIRED if is_changeable(one.calico) else BY_MANIFEST
    if takes > waits.earliest:
        chance = "" if takes > waits.latest else ": chance decides"
        return fail("%s%s; %s%s" % (said, chance, would, _again(one)), remedy, **evidence)
    if one.bad.ends:
        words = 'one answer in ten of %s takes %.1f s; calico-node\'s start-up waits for %g s and gives up with "%s"'
        return warn(words % (one.server["target"], answer["p90"], PATIENCE, one.bad.ends), SLOW_FIRST, **evidence, ends=one.bad.ends)
    if max(takes * spare, slow) > waits.earliest:
        return warn("%s, which leaves little to spare; %s" % (said, would), remedy, **evidence)
    return passed(said, **evidence)


def _again(one):
    """A first start writes the node's address early on, so that the second one has less to do."""
    if not one.first:
        return ""
    takes = one.takes(one.again)
    return "; once its address is written, a start takes about %.0f s%s" % (takes, " and fits" if takes <= one.waits.earliest else "")


def _numbers(one):
    milliseconds = {step + "_ms": round(1000 * one.server[step]["p50"], 1) for step in ("connect", "tls", "answer") if step in one.server}
    return {
        "predicted_s": round(one.takes(one.usual), 1),
        "slow_s": round(one.takes(one.bad), 1),
        "killed_after_s": one.waits.earliest,
        "killed_before_s": one.waits.latest,
        "by": one.waits.by,
        "requests": one.usual.requests,
        "request_ms": round(1000 * one.step["p50"], 1),
        "nodes": one.nodes,
        "first": one.first,
        "server": one.server["target"],
        **milliseconds,
        "version": one.calico.get("version"),
        "datastore": one.calico.get("datastore"),
    }


def _advice(one, spare):
    """What of the probe would do, and the patch of the DaemonSet that says so where nobody puts it back."""
    failures, delay = would_do(one.takes(one.usual), one.waits, spare)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "calico-node", **setting(one.waits.by, failures, delay)}]}}}}
    namespace, name = daemonset(one.calico)
    advice = {"failures": failures, "delay": delay, "namespace": namespace, "daemonset": name}
    return advice if _by_operator(one.calico) else {**advice, "patch": json.dumps(patch)}


def is_changeable(calico):
    """Whether probes can be set on the DaemonSet itself, and stay."""
    return (calico.get("install") or {}).get("kind") in ("manifest", "k3s") and not _by_operator(calico)


def _by_operator(calico):
    return (calico.get("install") or {}).get("kind") == "operator" or bool(calico.get("installation"))
