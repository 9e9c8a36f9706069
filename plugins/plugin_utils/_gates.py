# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What is asked before a repair touches a node of a cluster: whether the others can do without it, and whether nobody else is at work.

Each gate answers pass, stop, or that it cannot tell, which stops a repair that disrupts, and one that gives back a node.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from . import _cluster, _cordon, _drain, _marks, _proof, _room
from ._api._why import DENIED

PASS, STOP, UNKNOWN = "pass", "stop", "unknown"
CONTROL_PLANE = ("control-plane", "master", "controlplane", "etcd")
LOCAL = ("localhost", "localhost.localdomain")


class Repair(NamedTuple):
    """What a repair is to its node, and by whom and beside which others it is done."""

    disruptive: bool = False  # pods or daemons of the node may be away for a while
    drains: bool = False
    run: str = ""
    with_it: tuple = ()  # the Nodes that are repaired at the same time
    min_ready: int = 1


class Said(NamedTuple):
    verdict: str
    why: str
    advice: str = ""


class Scene:
    """The cluster as it is when this Node, and those that are repaired with it, are away."""

    def __init__(self, cluster, node, repair, policy, pods=None):
        """``pods`` are {Node: those on it} as the API server has them, without a Node where they were not read."""
        self.cluster, self.node, self.repair, self.policy, self.pods = cluster, node, repair, policy, pods or {}
        self.away = {node["name"], *repair.with_it}
        self.others = [one for one in cluster["nodes"] if one["name"] not in self.away]
        self.is_control_plane = is_control_plane(node)
        self.peers = [one for one in self.others if is_control_plane(one) is self.is_control_plane]
        self.able = [one for one in self.peers if _cluster.is_ready(one) and not one["unschedulable"]]

    def own_addresses(self):
        """By which those that are away are reached."""
        return {address for one in self.cluster["nodes"] if one["name"] in self.away for address in _addresses(one)}

    def problem(self, fact):
        """With which a fact was lost."""
        return next((one for one in self.cluster.get("problems") or [] if one["fact"] in ("cluster." + fact, "cluster")), None)

    def unread(self, fact):
        """Why a fact is not among those of the cluster."""
        problem = self.problem(fact)
        return "%s could not be read: %s" % (problem["what"], problem["why"]) if problem else "the cluster's %s were not read" % fact


def is_control_plane(node):
    return any(role in CONTROL_PLANE for role in node.get("roles") or [])


def judged(scene):
    """[{gate, verdict, why, advice}]"""
    return [{"gate": name, **gate(scene)._asdict()} for name, gate in GATES.items()]


def stopping(gates, disruptive, skipped=()):
    """Those of the gates that stop a repair; who names one takes it upon himself."""
    closed = (STOP, UNKNOWN) if disruptive else (STOP,)
    return [one for one in gates if one["verdict"] in closed and one["gate"] not in skipped]


# -- what the control plane can do without ---------------------------------------------------------------------------------


def etcd(scene):
    """Stacked etcd runs as static pods, which no budget and no drain protects."""
    if not scene.repair.disruptive:
        return _leaves()
    members, name = _members(scene.cluster), scene.node["name"]
    if name not in (members or {}):
        return _no_member(scene, members)
    needed = len(members) // 2 + 1
    healthy = sorted(one for one, is_well in members.items() if is_well and one not in scene.away)
    said = "without %s %d of %d etcd members are healthy, and %d are needed" % (_names(scene.away & set(members)), len(healthy), len(members), needed)
    if len(healthy) >= needed:
        return Said(PASS, said)
    if len(members) == 1:
        return Said(STOP, "it has the only etcd member: the cluster stands still while it is away", "do it when the cluster may stand still")
    ill = sorted(set(members) - set(healthy) - scene.away)
    first = "put %s right first" % _names(ill) if ill else "take fewer nodes at a time"
    return Said(STOP, said, "%s: kubectl -n kube-system get pods -l component=etcd -o wide" % first)


def _members(cluster):
    """{the Node of an etcd member: whether that is healthy}, by pods, or by the roles that k3s gives; None where nobody says."""
    entries = {one["name"]: one for one in cluster["nodes"]}
    pods = [pod for pod in cluster.get("etcd") or [] if pod["node"]]
    if pods:
        return {pod["node"]: bool(pod["ready"] and not pod["deleting"] and _cluster.is_ready(entries.get(pod["node"], {}))) for pod in pods}
    embedded = [one for one in entries.values() if "etcd" in one["roles"]]
    if embedded:
        return {one["name"]: bool(_cluster.is_ready(one) and _cluster.condition(one, "EtcdIsVoter").get("status") != "False") for one in embedded}
    return None if cluster.get("etcd") is None else {}


def _no_member(scene, members):
    if members:
        return Said(PASS, "no etcd member runs on it")
    if members is None:
        return Said(UNKNOWN, scene.unread("etcd"), "give this account the rights of docs/nodecare-reader.yml")
    if not scene.is_control_plane:
        return Said(PASS, "it is no node of the control plane")
    return Said(
        UNKNOWN,
        "etcd runs outside of the cluster, or in a way that cannot be seen from here",
        "look whether all of its members are healthy without this machine: etcdctl endpoint health --cluster",
    )


def api_server(scene):
    """The run itself must not hang on the API server of the node that it takes away."""
    if not scene.repair.disruptive:
        return _leaves()
    endpoints = ((scene.cluster.get("services") or {}).get("kubernetes") or {}).get("endpoints")
    if endpoints is None:
        return _servers_unread(scene)
    host, own = _host((scene.cluster.get("taken") or {}).get("server") or ""), scene.own_addresses()
    others = [one for one in endpoints if _host(one) not in own]
    if len(others) == len(endpoints) and host not in own:
        return Said(PASS, "no API server runs on it")
    if not others:
        return Said(STOP, "no API server is ready but that on %s" % _names(scene.away), "do it when the cluster may be without one")
    return _asked_there(host, own, others)


def _servers_unread(scene):
    if scene.is_control_plane:
        return Said(UNKNOWN, scene.unread("services.kubernetes"), "give this account the rights of docs/nodecare-reader.yml")
    return Said(PASS, "it is no node of the control plane")


def _asked_there(host, own, others):
    use = "name another API server, or a balancer before all: %s" % _cluster.listed(others)
    if host in own:
        return Said(STOP, "this run itself asks the API server on %s" % host, use)
    if _is_local(host):
        return Said(UNKNOWN, "this run asks the API server through %s, which may lead to that on the node itself" % host, use)
    return Said(PASS, "the API server is also at %s" % _cluster.listed(others))


def _addresses(node):
    return {*(node.get("internal_ips") or []), *(node.get("external_ips") or []), node["name"], node.get("hostname")} - {None, ""}


def _host(server):
    """``10.0.0.1`` of ``10.0.0.1:6443``, ``::1`` of ``[::1]:6443``"""
    return server.rpartition(":")[0].strip("[]")


def _is_local(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOCAL


# -- what pods can do without ----------------------------------------------------------------------------------------------


def capacity(scene):
    """A node that is not Ready holds nothing up, but its pods have to go somewhere where it is drained."""
    if not scene.repair.disruptive:
        return _leaves()
    if _cluster.is_ready(scene.node) is not True and not scene.repair.drains:
        return Said(PASS, "it is not Ready, and so carries nothing that would be lost")
    kind = "of the control plane" if scene.is_control_plane else "for pods"
    said = "without %s %d of %d other nodes %s are Ready and take pods" % (_names(scene.away), len(scene.able), len(scene.peers), kind)
    if len(scene.able) < scene.repair.min_ready:
        return Said(STOP, "%s, and %d must be" % (said, scene.repair.min_ready), "put others right or uncordon them first, or set nodecare_min_ready")
    return _room_for_pods(scene, said) if scene.repair.drains else Said(PASS, said)


def _room_for_pods(scene, said):
    """Only as far as requests tell: what a pod asks of a node beside that, the scheduler alone knows."""
    own, read = scene.pods.get(scene.node["name"]), [one for one in scene.able if one["name"] in scene.pods]
    rooms = [_room.free(one["allocatable"], scene.pods[one["name"]]) for one in read]
    if own is None or None in rooms or not rooms:
        return Said(PASS, said + "; whether what its pods request fits there was not read")
    short = _room.short(_room.requested(_room.leaving(own)), rooms)
    if not short:
        return Said(PASS, said + "; what its pods request is free on %s" % _names(one["name"] for one in read))
    if len(read) < len(scene.able):
        return Said(PASS, said + "; what its pods request is not free on the %d of them that were read (%s)" % (len(read), short))
    return Said(STOP, "its pods request more than is free on %s: %s" % (_names(one["name"] for one in read), short), "make room there first")


def budgets(scene):
    if not scene.repair.drains:
        return Said(PASS, "this repair drains nothing")
    known = scene.cluster.get("budgets")
    if known is None:
        return Said(UNKNOWN, scene.unread("budgets"), "give this account the rights of docs/nodecare-reader.yml")
    closed = [one for one in known if one["allowed"] == 0 and one["expected"]]
    pods = scene.pods.get(scene.node["name"])
    if closed and pods is None:
        return Said(UNKNOWN, "these budgets allow nothing now, and which pods run on this node was not read: %s" % _titles(closed))
    blocking = [one for one in closed if any(_protects(one, pod) for pod in _room.leaving(pods))]
    if blocking:
        look = "wait until their pods are healthy, or give them one more: kubectl get pdb -A"
        return Said(STOP, "pods of this node may not be evicted now, because these budgets allow nothing: %s" % _titles(blocking), look)
    return Said(PASS, "no budget holds a pod of this node now")


def _protects(budget, thing):
    pod, selector = _drain.pod(thing), budget["selector"] if isinstance(budget["selector"], dict) else None
    return pod.namespace == budget["namespace"] and _drain.selects(selector, pod.labels)


def _titles(found):
    return _cluster.listed(["%s/%s (%s of %s healthy)" % (one["namespace"], one["name"], one["healthy"], one["expected"]) for one in found])


# -- whether it is the node's fault, and nobody else is at work ------------------------------------------------------------


def not_ready(scene):
    """Where many nodes are not Ready the cause is common, and repairs one by one make it worse."""
    ill = sorted(one["name"] for one in scene.others if _cluster.is_ready(one) is False)
    percent, limit = 100 * len(ill) / max(1, len(scene.others)), scene.policy["not_ready_percent"]
    said = "%d of %d other nodes are not Ready" % (len(ill), len(scene.others))
    if len(ill) < 2 or percent < limit:
        return Said(PASS, said)
    look = "repair no single node; look at what they share: kubectl get --raw '/readyz?verbose', the network, time, certificates, the last change"
    return Said(STOP, "%s (%s; %.0f %%, from %g %% on the cause is none of them)" % (said, _cluster.listed(ill), percent, limit), look)


def other_operators(scene):
    marks = [mark.said() for mark in _marks.foreign(scene.node, scene.cluster)]
    if marks:
        return Said(STOP, "somebody else is at work: %s" % _cluster.listed(marks), "wait until they are through")
    if scene.cluster.get("locks") is None:
        return Said(UNKNOWN, scene.unread("locks"), "give this account the rights of docs/nodecare-reader.yml")
    return Said(PASS, "nobody else has marked it")


def unfinished(scene):
    """A node that an earlier repair has left behind is finished first: two at once may be one too many."""
    found = [(one["name"], _marks.marker(one.get("annotations") or {})) for one in scene.others]
    left = {name: mark for name, mark in found if mark and (mark.broken or mark.run != scene.repair.run)}
    if not left:
        return Said(PASS, "no other node has a repair that is not finished")
    said = _cluster.listed(["%s by %s" % (name, mark.said()) for name, mark in left.items()])
    first, mark = next(iter(left.items()))
    again = "finish it first: run that repair again with --limit %s; or, if it is well: %s"
    return Said(STOP, "a repair is not finished on %s" % said, again % (first, _cordon.way_out(first, mark.cordoned)))


def proof(scene):
    """What was not read would not be asked for afterwards, and the node given back on less than it has to prove."""
    expected = _proof.expected(scene.cluster, scene.node["name"])
    if not expected.untold:
        calico = ", with calico-node ready%s" % (" and a BGP session" if expected.bgp else "") if expected.calico_node else ""
        return Said(PASS, "it has to be Ready afterwards%s" % calico)
    denied = (scene.problem(expected.untold) or {}).get("kind") == DENIED
    advice = "give this account the rights of docs/nodecare-reader.yml" if denied else "run this again, or look whether calico-node and BGP are to run on it"
    return Said(UNKNOWN, "nobody can tell what it has to prove afterwards: %s" % scene.unread(expected.untold), advice)


def _leaves():
    return Said(PASS, "this repair disrupts nothing that others need")


def _names(names):
    return _cluster.listed(sorted(names))


GATES = {
    "etcd": etcd,
    "api_server": api_server,
    "capacity": capacity,
    "budgets": budgets,
    "not_ready": not_ready,
    "other_operators": other_operators,
    "unfinished": unfinished,
    "proof": proof,
}
NODE = "node"  # the gate before all others: whether it is known which Node this machine is
