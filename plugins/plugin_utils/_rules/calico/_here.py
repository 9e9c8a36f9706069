# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One node as the rules about its address see it: how Calico is set there, what it would take, what it should take."""

from __future__ import annotations

from functools import cached_property, lru_cache

from ... import _cluster
from ..._calico._commands import set_method
from ..._calico._foreseen import foreseen
from ..._calico._host import host
from ..._calico._recommend import Machine, recommend
from ..._calico._settings import host_ip_variable, settings
from ..._calico._wanted import of_kubelet, wanted
from ..._links import other_network
from ..._same import Same
from ..._sweep._values import at
from .._rule import by_hand, repaired_by

NEEDS = ("links.present",)
USES = (
    *("links.routes", "links.ip_rules", "links.cni", "kubelet.installed", "host.name"),
    *("calico.processes", "problems", "cluster.calico", "cluster.nodes", "cluster.node"),
)
CHANGEABLE = ("manifest", "operator", "rke2", "k3s")  # installations whose settings are changed in the cluster itself
MOST = 12  # candidates shown in a finding
STORED = {4: "ipv4", 6: "ipv6"}
UNKNOWN_VERSIONS = ("3.24.6", "")  # the last release that minds bridges, and the newest


def look_at(facts, policy):
    """``facts`` are those at NEEDS and USES, in their order. Several rules look at the same node, and its answers serve all of them."""
    return _here(Same((*facts, policy)))


def look_into(view, policy):
    """The same from all facts of a node, joined with the cluster."""
    return look_at([at(view, *path.split(".")) for path in (*NEEDS, *USES)], policy)


@lru_cache(maxsize=2048)
def _here(same):
    return Here(same[:-1], same[-1])


class Here:
    """What is known of one node and, worked out once, what follows from it."""

    def __init__(self, facts, policy):
        self.present, routes, ip_rules, cni, kubelet, own, processes, self.problems, self.calico, self.nodes, self.node = facts
        self.policy, self.cni = policy, cni
        self.told = {}
        self.links = {"present": self.present, "routes": routes, "ip_rules": ip_rules}
        self.kubelet_ip = (kubelet or {}).get("node_ip")
        self.own_names = (own or {}).get("own")
        self.running = (processes or {}).get("env")

    @cached_property
    def host(self):
        return host(self.links, self.problems or ())

    @cached_property
    def internal(self):
        """The InternalIPs of its Node, or those that it will have; None where that cannot be known."""
        if self.node:
            return [str(ip) for ip in _cluster.internal(self.node)]
        coming = [of_kubelet(self.host, family, self.kubelet_ip, self.own_names).ip for family in (4, 6)]
        return [str(ip) for ip in coming if ip] or None

    @cached_property
    def _settings(self):
        return settings(self.policy, self.calico, self.nodes, self.node, other_network(self.cni), lambda: self.internal or (), self.running)

    @property
    def silence(self):
        """Why nothing can be said about Calico here, or None."""
        return self._settings[1]

    @property
    def families(self):
        """The settings of each family in which Calico looks for an address or keeps one."""
        return [one for one in (self._settings[0] or {}).values() if self._has_one(one)]

    @property
    def left_without(self):
        """IPv4's setting where Calico is told to look for no address in any family, though it needs one."""
        first = self.setting(4)
        return [first] if first and first.routes and not self.families and not self.stored_elsewhere else []

    def _has_one(self, setting):
        return setting.said not in ("", "none") or setting.unknown or self.stored(setting.family) or (setting.family == 4 and setting.said == "")

    def setting(self, family):
        return (self._settings[0] or {}).get(family)

    def stored(self, family):
        """What Calico keeps for this Node now."""
        return str(((self.node or {}).get("calico") or {}).get(STORED[family]) or "")

    @cached_property
    def stored_elsewhere(self):
        """Whether Calico keeps its nodes where nobody has looked: in etcd, or in a cluster that was not read."""
        return (self.calico or {}).get("datastore") == "etcd" or (self.calico is None and bool(self.running))

    def wanted(self, family):
        return self._wanted[family]

    @cached_property
    def _wanted(self):
        more = (self.policy.networks.get("nodes"), self.policy.networks.get("calico"), self.kubelet_ip, self.own_names)
        return {family: wanted(self.host, family, self.node, self.nodes, *more) for family in (4, 6)}

    def foreseen(self, family, others=None):
        """What calico-node would do at its next start; ``unknown`` where the version decides and is not known."""
        asked = (family, tuple(sorted((others or {}).items())))
        if asked not in self.told:
            self.told[asked] = self._settled(family, others)
        return self.told[asked]

    def _settled(self, family, others):
        return self.would(self.setting(family), others)

    def would(self, setting, others=None):
        """The same with another setting."""
        versions = [setting.version] if setting.version else UNKNOWN_VERSIONS
        said = [self._foreseen(setting, version, others or {}) for version in versions]
        if len({one["address"] for one in said}) > 1:
            what = " or ".join(one["address"] or "nothing" for one in said)
            return {**said[0], "unknown": "Calico's version is not known (calico_version), and by it %s is taken" % what}
        return said[-1]

    def _foreseen(self, setting, version, others):
        return foreseen(
            self.links,
            self.problems or (),
            method=setting.method,
            version=version,
            family=setting.family,
            internal=self.internal,
            stored=self.stored(setting.family),
            said=setting.said,
            others=others if setting.compares else {},
            stored_links=((self.node or {}).get("calico") or {}).get("interfaces") or (),
            reached=None,
            poll_interval=setting.poll,
        )

    def machine(self, family, name):
        return Machine(name, self.host, self.wanted(family), self.internal)


class Adviser:
    """Which method would be right for all of these nodes; asked only where one of them is wrong."""

    def __init__(self, heres, policy):
        """``heres`` are the nodes by their names."""
        self.heres, self.policy, self.known = heres, policy, {}
        self.names = {one: name for name, one in heres.items()}

    def advice(self, setting):
        family = setting.family
        if family not in self.known:
            networks = self.policy.networks.get("calico") or self.policy.networks.get("nodes") or ()
            machines = [one.machine(family, name) for name, one in self.heres.items() if one.present]
            calico = next(iter(self.names)).calico
            self.known[family] = recommend(machines, setting.numbers, family, networks, (), host_ip_variable(calico))
        return self.known[family]

    def evidence(self, here, setting):
        """The method that is right for all, with the proof for this node."""
        found = self.advice(setting)
        return {
            "recommended": found.method or None,
            "steady": found.steady,
            "refused": found.refused(),
            "proof": {row.method: row.answers[self.names[here]].address or None for row in found.rows if self.names.get(here) in row.answers},
            "nodes": len(self.heres),
            **({"why_not": found.why} if found.why else {}),
        }

    def remedy(self, here, setting):
        found = self.advice(setting)
        if not found.method:
            text = "%s: put that right, or name the nodes' network (nodecare_networks: nodes), and run this again: it then names the method" % found.why
            return by_hand(text.replace("%", "%%"))
        return method_remedy(set_method(found.method, setting.family, here.calico).replace("%", "%%"), here)


def method_remedy(command, here):
    """The repair finds the right method by itself; without a cluster, and where kubespray would take it back, a person has to."""
    kind = ((here.calico or {}).get("install") or {}).get("kind")
    if here.node and kind in CHANGEABLE:
        return repaired_by("repair_autodetection", command, disruptive=True)
    return by_hand(command, disruptive=bool(here.node))


def taken(setting, said):
    """What the next start does, as the beginning of a sentence."""
    where = " on %s" % said["link"] if said["link"] else ", which no link holds"
    return "%s %s %s%s" % (setting.words, "keeps" if said["source"] == "stored" else "takes", said["address"], where)


def candidates(said):
    """The links and addresses in the order in which Calico goes through them, with what it makes of each."""
    shown = ["%s %s: %s%s" % (one["link"] or "-", one["address"] or "-", "taken, " if one["taken"] else "", one["why"]) for one in said["candidates"]]
    taken = [text for text, one in zip(shown, said["candidates"]) if one["taken"]]
    return shown[:MOST] if not taken or taken[0] in shown[:MOST] else [*shown[: MOST - 1], taken[0]]
