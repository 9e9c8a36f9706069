# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a node has to prove, what proves that it is well again, and in which words that is waited for."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import NamedTuple

from . import _cluster

MOST = 4  # peers that are named
HEALTHY_WAIT = "its init containers are at work, which is no fault by itself"


class Expected(NamedTuple):
    """What a node has to prove beside being Ready, as far as can be told: ``untold`` is the fact that is missing for the rest."""

    calico_node: bool = False
    bgp: bool = False
    untold: str = ""


def expected(cluster, name):
    """By the facts of a cluster, of which what could not be read is None; what is not asked for is not missing either."""
    if cluster.get("pods") is None:
        return Expected(untold="pods")
    nodes = {pod["node"] for pod in cluster["pods"] if pod["component"] == _cluster.NODE}
    return _of_calico(cluster.get("calico") or {}, name, nodes) if name in nodes else Expected()


def _of_calico(calico, name, nodes):
    if calico.get("backend") is None:
        return Expected(True, untold="calico.backend")
    if calico["backend"] != "bird":
        return Expected(True)
    if calico.get("datastore") == "etcd":
        return Expected(True, bool(nodes - {name}))  # Calico's own settings are out of reach there in every run
    return Expected(True, untold="calico.bgp") if calico.get("bgp") is None else Expected(True, _has_peers(calico["bgp"], name, nodes))


def _has_peers(bgp, name, nodes):
    """Whether the node must have a BGP session; of peers that are chosen by labels only those for all nodes are counted on."""
    named = any(one["node"] == name or (not one["node"] and one["node_selector"] in ("", "all()")) for one in bgp["peers"])
    return named or bool(bgp["mesh"] and nodes - {name})


class Said(NamedTuple):
    """One of them is empty."""

    missing: str = ""
    proven: str = ""


def ready(node):
    said = _cluster.condition(node, "Ready")
    if said.get("status") == "True":
        return Said(proven="Ready")
    why = ": ".join(part for part in (said.get("reason"), said.get("message")) if part)
    return Said("Ready (%s)" % (why or "the kubelet has not said anything yet"))


def heartbeat(node, renewed):
    """The later one of the Lease and of the condition; both have the node's own clock."""
    times = [one for one in (renewed, _cluster.condition(node, "Ready").get("heartbeat")) if one is not None]
    return max(times, default=0.0)


def alive(beat, first, since):
    """A node's clock may be wrong, so that a heartbeat counts that has come since the first look, whatever time it bears."""
    newest = max(first, since or first)
    if beat > newest:
        return Said(proven="a heartbeat of %s" % _written(beat))
    return Said("a heartbeat after %s" % (_written(newest) if newest else "the first one"))


def booted(boot_id, before):
    if not before:
        return Said()
    return Said(proven="booted anew") if boot_id and boot_id != before else Said("its kubelet to say that it has booted anew")


def calico(pods):
    """``pods`` are those of the node, None where none is asked for."""
    if pods is None:
        return Said()
    pod = _cluster.pod_of({"pods": pods})
    if pod is None:
        return Said("a calico-node pod on it")
    if pod["ready"]:
        return Said(proven="%s is ready" % pod["name"])
    return Said("%s to be ready (%s)" % (pod["name"], _doing(pod)))


def _doing(pod):
    """What keeps a pod; a wait in its init containers that nothing has ended badly is named as such."""
    doing = _cluster.doing(pod)
    stopped = [one for one in (pod.get("init") or []) + (pod.get("containers") or []) if one.get("state") in ("waiting", "terminated") and one.get("message")]
    words = "it is in %s%s" % (doing, ": %s" % stopped[0]["message"] if stopped else "")
    number = doing.removeprefix("Init:").partition("/")[0]
    return "%s; %s" % (words, HEALTHY_WAIT) if doing.startswith("Init:") and number.isdigit() else words


def session(bird):
    """Of what the node says of its BIRD; None where it could not be read."""
    sockets = (bird or {}).get("sockets") or []
    peers = [one for socket in sockets for one in socket.get("protocols") or []]
    up = [one for one in peers if one["state"] == "Established"]
    if up:
        return Said(proven="%d of %d BGP sessions are established" % (len(up), len(peers)))
    if peers:
        named = ", ".join("%s is in %s" % (one["peer"], " ".join(part for part in (one["state"] or "no state", one["info"]) if part)) for one in peers[:MOST])
        return Said("a BGP session (%s)" % named)
    silent = [one for one in sockets if one["state"] != "answered"]
    if silent:
        return Said("its BIRD to answer (%s: %s)" % (silent[0]["path"], silent[0]["state"]))
    return Said("its BIRD to have a BGP session" if sockets else "a BIRD on it that could be asked")


def _written(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%H:%M:%S UTC")
