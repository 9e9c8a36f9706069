# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which machine is which Node: each one's facts together with what the API server knows."""

from __future__ import annotations

from ._rules._rule import CLUSTER

OWN = {"nodes": "node", "pods": "node.pods", "events": "node.events"}  # where a node finds what is its own of these


def joined(nodes, cluster):
    """{name: facts with ``cluster``}: the machines that were read, and under their own names the Nodes that no machine stands for."""
    entries = _with_their_own(cluster)
    mine = _matched(nodes, entries)
    problems = _problems(cluster)
    views = {name: _view(facts, cluster, mine.get(name), problems) for name, facts in nodes.items()}
    read = {entry["name"] for entry in mine.values()}
    return {**{name: _view({}, cluster, entry, problems) for name, entry in entries.items() if name not in read}, **views}


def unread(why):
    """The document of a cluster that could not be read at all."""
    return {"schema": "nodecare.cluster/1", "problems": [{"fact": CLUSTER, "what": "the cluster", "why": str(why), "kind": "error"}]}


def is_machine(facts):
    """Whether a view is of a machine that was read, not of a Node that only the cluster knows."""
    return "taken" in facts


def _view(facts, cluster, entry, problems):
    return {**facts, CLUSTER: {**cluster, "node": entry}, "problems": (facts.get("problems") or []) + problems}


def _problems(cluster):
    """The sweep's problems, also under the names by which a node finds what is its own."""
    found = list(cluster.get("problems") or [])
    return found + [{**one, "fact": "%s.%s" % (CLUSTER, own)} for one in found for kind, own in OWN.items() if one["fact"] == "%s.%s" % (CLUSTER, kind)]


def _with_their_own(cluster):
    """{name: the Node's entry with the pods on it, and with the events about it and them}, so that no rule has to search for them."""
    entries = {one["name"]: {**one, "pods": _none_of(cluster, "pods"), "events": _none_of(cluster, "events")} for one in cluster.get("nodes") or []}
    place = {}
    for pod in cluster.get("pods") or []:
        place[(pod["namespace"], pod["name"])] = pod["node"]
        if pod["node"] in entries:
            entries[pod["node"]]["pods"].append(pod)
    for event in cluster.get("events") or []:
        about = event["name"] if event["kind"] == "Node" else place.get((event["namespace"], event["name"]))
        if about in entries:
            entries[about]["events"].append(event)
    return entries


def _none_of(cluster, kind):
    return None if cluster.get(kind) is None else []


def _matched(nodes, entries):
    """{machine: its Node's entry}: by the kubelet's name for it, by its host name, by an InternalIP that it holds, at last by its name in the inventory."""
    by_address = {address: entry for entry in entries.values() for address in entry.get("internal_ips") or []}
    matched, taken = {}, set()
    for find in (_by_kubelet, _by_hostname, _by_address, _by_inventory):
        for name, facts in nodes.items():
            entry = None if name in matched else find(name, facts, entries, by_address)
            if entry and entry["name"] not in taken:
                matched[name] = entry
                taken.add(entry["name"])
    return matched


def _by_kubelet(_name, facts, entries, _by_address):
    installed = (facts.get("kubelet") or {}).get("installed") or {}
    return entries.get(installed.get("node_name"))


def _by_hostname(_name, facts, entries, _by_address):
    return entries.get(str((facts.get("taken") or {}).get("hostname") or "").lower())


def _by_address(_name, facts, _entries, by_address):
    links = ((facts.get("links") or {}).get("present") or {}).get("links") or []
    held = [one.get("ip") for link in links for one in link.get("addresses") or []]
    return next((by_address[address] for address in held if address in by_address), None)


def _by_inventory(name, _facts, entries, _by_address):
    return entries.get(name)
