# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The answers of a sweep, put together to the facts of a cluster. Pure: answers in, document out."""

from __future__ import annotations

from . import _calico, _services
from ._kinds import KINDS
from ._values import text, version
from ._workloads import workload

SCHEMA = "nodecare.cluster/1"
IN_ETCD = "Calico keeps it in etcd, not in the API server"


def document(answers, taken):
    """What could not be read is None, and named among the problems by the path under which a rule asks for it."""
    return Cluster(answers, taken).document()


class Cluster:
    def __init__(self, answers, taken):
        self.answers, self.taken = answers, taken
        self.problems = {}  # {fact: what, why, kind}; the first one is enough
        for name, answer in answers.items():
            for fact in KINDS[name].facts if name in KINDS else _facts_behind(name):
                self._note(fact, answer.problem)
        self.daemonsets = self._value("daemonsets") or []
        self.maps = {name[1]: answer.value or {} for name, answer in answers.items() if name[0] == "config_maps" and not answer.problem}

    def document(self):
        facts = {
            "nodes": self.nodes(),
            "pods": self._value("pods"),
            "events": self.events(),
            "calico": self.calico(),
            "kube_proxy": self.kube_proxy(),
            "services": self.services(),
            "kubeadm": _services.kubeadm(self._value("kubeadm")) if self._value("kubeadm") else None,
            "budgets": self._value("budgets"),
        }
        taken = {**self.taken, "version": version(self._value("version"), "gitVersion")}
        return {"schema": SCHEMA, "taken": taken, "problems": self._all_problems(), **facts}

    def nodes(self):
        leases = dict(self._value("leases") or [])
        nodes = self._value("nodes")
        return nodes and [{**one, "lease": leases.get(one["name"])} for one in nodes]

    def events(self):
        """None as soon as one part is missing: from silence nobody may conclude that all is well."""
        self._note("events", self._problem("pods"))
        parts = [answer.value for name, answer in self.answers.items() if name == "node_events" or name[0] == "pod_events"]
        if "events" in self.problems:
            return None
        ours = {(pod["namespace"], pod["name"]) for pod in self._value("pods")}
        return [one for part in parts for one in part if one["kind"] == "Node" or (one["namespace"], one["name"]) in ours]

    def calico(self):
        daemonset, operated = _calico.find_daemonset(self.daemonsets), self._value("installation")
        information = self._value("cluster_information") or {}
        said = _calico.told(daemonset, self.maps)
        by_daemonset = dict.fromkeys(name.partition(".")[2] for name in KINDS["daemonsets"].facts)
        if not self._problem("daemonsets"):
            by_daemonset = _calico.facts_of(daemonset, said)
            by_daemonset["version"] = by_daemonset["version"] or text(information, "version")
            by_daemonset["install"] = _calico.install(daemonset, operated, said, self._value("nodes"), text(information, "type"))
            self._note_hidden(said)
        resources = {
            "pools": self._or("pools", []),
            "bgp": self._bgp(),
            "felix": self._or("felix", {}),
            "cluster_information": information or None,
            "block_affinities": self._or("block_affinities", 0),
        }
        if said.datastore == "etcd":
            resources = self._in_etcd(resources)
        typha = next(iter(self._value("typha") or []), None)
        return {
            **by_daemonset,
            "typha": typha and workload(typha),
            "installation": operated and _calico.installation(operated),
            **resources,
        }

    def kube_proxy(self):
        if self._problem("kube_proxy"):
            return None
        data = self._value("kube_proxy") or {}
        if not data:
            self._note("kube_proxy", self._problem("daemonsets"))
        return _services.kube_proxy(next((one for one in self.daemonsets if text(one, "metadata", "name") == _services.PROXY), None), data)

    def services(self):
        service, endpoints = self._value("service"), self._value("endpoints")
        both = "services.kubernetes" not in self.problems
        return {"networks": self._service_networks(), "kubernetes": {**service, "endpoints": endpoints} if both else None}

    def _service_networks(self):
        """Since 1.33 the API server itself knows them; before, kubeadm remembers what it was told."""
        if self._problem("service_networks"):
            return None
        told = [network for one in self._value("service_networks") or [] for network in one]
        told = told or _services.kubeadm(self._value("kubeadm") or {})["service_networks"]
        if not told:
            self._note("services.networks", _problem("ServiceCIDR and kubeadm-config", "neither of them names a network"))
        return told or None

    def _bgp(self):
        if "calico.bgp" in self.problems:
            return None
        return _calico.bgp(self._value("bgp_configuration") or {}, self._value("bgp_peers") or [])

    def _note_hidden(self, said):
        """A variable that comes from a ConfigMap which could not be read, and the backend, which a rule may ask for by itself."""
        for (kind, name), answer in ((name, answer) for name, answer in self.answers.items() if len(name) == 2):
            if kind == "config_maps" and answer.problem and name in said.hidden and said.backend is None:
                self._note("calico.backend", answer.problem)
        if said.backend is None:
            self._note("calico.backend", _problem("CALICO_NETWORKING_BACKEND", "it comes from %s" % said.env["CALICO_NETWORKING_BACKEND"]["from"]))

    def _in_etcd(self, resources):
        for name in resources:
            self._note("calico." + name, _problem("Calico's " + name.replace("_", " "), IN_ETCD))
        self._note("node.calico", _problem("the addresses that Calico keeps for its nodes", IN_ETCD))
        return dict.fromkeys(resources)

    def _value(self, name):
        answer = self.answers.get(name)
        return answer.value if answer else None

    def _problem(self, name):
        answer = self.answers.get(name)
        return answer.problem if answer else None

    def _or(self, name, absent):
        """None where it could not be read; what there is where there is none of it."""
        return None if self._problem(name) else self._value(name) or absent

    def _note(self, fact, problem):
        if problem:
            self.problems.setdefault(fact, problem)

    def _all_problems(self):
        """One where nothing at all could be read for one and the same reason."""
        reasons = {(answer.problem["why"], answer.problem["kind"]) if answer.problem else None for answer in self.answers.values()}
        if len(reasons) == 1 and None not in reasons:
            ((why, kind),) = reasons
            return [{"fact": "cluster", **_problem("the API server at %s" % self.taken.get("server"), why, kind)}]
        return [{"fact": "cluster.%s" % fact, **problem} for fact, problem in self.problems.items()]


def _facts_behind(name):
    return {"pod_events": ("events",), "config_maps": ("calico.env",)}[name[0]]


def _problem(what, why, kind="error"):
    return {"what": what, "why": why, "kind": kind}
