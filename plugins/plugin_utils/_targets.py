# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whom a node is to ask how well it reaches them, from what the cluster knows.

A node asks its neighbours in the ring of all names, so that a thousand nodes cost thirty-two times as many questions as one,
and so that each one that is asked asks back: what is shut in one direction only shows by that.
"""

from __future__ import annotations

import bisect

from . import _cluster, _felix, _ports

NEIGHBOURS = 16  # on each side
SERVERS = 4
TYPHAS = 8
TYPHA, KUBELET = 5473, 10250
BEFORE_JOIN = (_ports.BGP, TYPHA, KUBELET)  # ports that machines will need from each other: nobody listens yet, but a refusal shows that the way is free
IPIP = "ipip"
PORTS = {"vxlan": _ports.VXLAN, "wireguard": _ports.WIREGUARD}
CONTROL_PLANE = ("control-plane", "master")


def of_cluster(name, addresses, cluster, calico_network=False):
    """The targets of one machine, which is known by these names and addresses; the keys are those of node_check's ``targets``.

    ``calico_network`` says that Calico's addresses are meant to be others than the nodes' InternalIPs.
    """
    nodes = {one["name"]: one for one in cluster.get("nodes") or []}
    own = _own(name, addresses, nodes)
    calico = cluster.get("calico") or {}
    place = _place_of_calico if calico_network else _place
    others = ring(name if own is None else own, [one for one in nodes if one != own])
    with_typha = {pod.get("node") for pod in _cluster.pods(cluster, _cluster.TYPHA)}
    asked = others + sorted(with_typha & set(nodes) - set(others) - {own})[:TYPHAS]
    kubelets = _kubelets(nodes.get(own))
    peers = {
        other: {
            "address": place(nodes[other]),
            "ports": _bgp(other, calico) + kubelets + ([TYPHA] if other in with_typha else []),
            "tunnels": _tunnels(calico, other) if _is_up(nodes[other]) else [],
        }
        for other in asked
        if place(nodes[other])
    }
    return {"api": _servers(cluster, own), "etcd": _etcd(calico), "peers": peers, "bgp": _ports.bgp(calico, own)}


def of_play(name, places):
    """The same for machines that are no cluster yet: {name: address} of all hosts of the play."""
    others = ring(name, [one for one in places if one != name])
    return {"peers": {other: {"address": places[other], "ports": list(BEFORE_JOIN)} for other in others if _cluster.address(places[other])}}


def ring(name, others):
    """The next names on both sides; all of them where they are few."""
    ordered = sorted(others)
    if len(ordered) <= 2 * NEIGHBOURS:
        return ordered
    at = bisect.bisect_left(ordered, name)
    return sorted({ordered[(at + step) % len(ordered)] for step in range(-NEIGHBOURS, NEIGHBOURS)})


def _own(name, addresses, nodes):
    if name in nodes:
        return name
    return next((one["name"] for one in nodes.values() if set(one.get("internal_ips") or ()) & set(addresses)), None)


def _place(node):
    return next(iter(node.get("internal_ips") or ()), None)


def _place_of_calico(node):
    kept = _cluster.registered(node)
    return str(kept[min(kept)]) if kept else _place(node)


def _is_up(node):
    return _cluster.is_ready(node) is not False


def _bgp(other, calico):
    """Only where everybody talks to everybody."""
    mesh = (calico.get("bgp") or {}).get("mesh")
    return [_ports.bgp(calico, other)] if calico.get("backend") == "bird" and mesh else []


def _kubelets(node):
    """The kubelet's is for the machines on which the API server runs."""
    return [KUBELET] if node and set(node.get("roles") or ()) & set(CONTROL_PLANE) else []


def _tunnels(calico, other):
    """Those whose port is not known are left out: any other port is refused."""
    kinds = _felix.tunnels(calico, other)
    names = [PORTS[kind] for kind in kinds if kind in PORTS] + ([_ports.WIREGUARD6] if _felix.is_on(calico, other, _felix.WIREGUARD6) else [])
    ports = [_ports.of_felix(calico, name, other) for name in names]
    return ([IPIP] if IPIP in kinds else []) + [port for port in ports if port]


def _servers(cluster, own):
    """The API servers themselves, and for who has joined also the address by which pods reach them."""
    kubernetes = (cluster.get("services") or {}).get("kubernetes") or {}
    service = ["%s:%s" % (kubernetes["ip"], kubernetes.get("port") or 443)] if own and kubernetes.get("ip") else []
    return service + list(kubernetes.get("endpoints") or [])[:SERVERS]


def _etcd(calico):
    told = (calico.get("env") or {}).get("ETCD_ENDPOINTS")
    if calico.get("datastore") != "etcd" or not isinstance(told, str):
        return []
    return [one.strip() for one in told.split(",") if one.strip()][:SERVERS]
