# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The answers of a sweep, put together to the facts of a cluster. Pure: answers in, document out."""

from __future__ import annotations

from . import _calico, _locks, _services
from ._kinds import DAEMONSET, KINDS
from ._values import text, version
from ._workloads import workload

SCHEMA = "nodecare.cluster/1"
FACTS = ("nodes", "pods", "events", "calico", "kube_proxy", "services", "kubeadm", "budgets", "etcd", "locks")
IN_ETCD = "Calico keeps it in etcd, not in the API server"
LATER = {"pod_events": ("events",), "config_maps": ("calico.env",)}  # {what was asked for only later: the facts behind it}


def document(answers, taken):
    """What could not be read is None, and named among the problems by the path under which a rule asks for it."""
    cluster = Cluster(answers)
    facts = {name: getattr(cluster, name)() for name in FACTS}
    nothing = _nothing(answers, taken)
    if nothing:
        facts = dict.fromkeys(facts)
    problems = [nothing] if nothing else [{"fact": "cluster.%s" % fact, **problem} for fact, problem in cluster.problems.items()]
    return {"schema": SCHEMA, "taken": {**taken, "version": cluster.version()}, "problems": problems, **facts}


def _nothing(answers, taken):
    """The one problem where nothing at all could be read, for one and the same reason. That something is absent, no server has said then."""
    reasons = {answer.problem and (answer.problem["why"], answer.problem["kind"]) for answer in answers.values() if answer.there}
    if None in reasons or len(reasons) != 1:
        return None
    ((why, kind),) = reasons
    return {"fact": "cluster", **_problem("the API server at %s" % taken.get("server"), why, kind)}


class Cluster:
    def __init__(self, answers):
        self.answers = answers
        self.problems = {}  # {fact: what, why, kind}; the first one is enough
        for name, answer in answers.items():
            for fact in KINDS[name].facts if name in KINDS else LATER[name[0]]:
                self._note(fact, answer.problem)
        self.daemonsets = self._value("daemonsets") or []

    def version(self):
        return version(self._value("version"), "gitVersion")

    def nodes(self):
        leases = dict(self._value("leases") or [])
        nodes = self._value("nodes")
        return None if nodes is None else [{**one, "lease": leases.get(one["name"])} for one in nodes]

    def pods(self):
        return self._value("pods")

    def events(self):
        """None as soon as one part is missing: from silence nobody may conclude that all is well."""
        self._note("events", self._problem("pods"))
        if "events" in self.problems:
            return None
        ours = {(pod["namespace"], pod["name"]) for pod in self.pods()}
        about_pods = [event for answer in self._later("pod_events").values() for event in answer.value]
        return self._value("node_events") + [one for one in about_pods if (one["namespace"], one["name"]) in ours]

    def calico(self):
        daemonset = _calico.find_daemonset(self.daemonsets)
        maps = {name: answer.value or {} for name, answer in self._later("config_maps").items() if not answer.problem}
        said = _calico.told(daemonset, maps)
        typha, operated = next(iter(self._value("typha") or []), None), self._value("installation")
        return {
            **self._by_daemonset(daemonset, said),
            "typha": typha and workload(typha),
            "installation": operated and _calico.installation(operated),
            **(self._in_etcd() if said.datastore == "etcd" else self._resources()),
        }

    def kube_proxy(self):
        if self._problem("kube_proxy"):
            return None
        if not self._value("kube_proxy"):
            self._note("kube_proxy", self._problem("daemonsets"))
        daemonset = next((one for one in self.daemonsets if text(one, "metadata", "name") == _services.PROXY), None)
        return _services.kube_proxy(daemonset, self._value("kube_proxy") or {})

    def services(self):
        read = "services.kubernetes" not in self.problems
        return {"networks": self._service_networks(), "kubernetes": {**self._value("service"), "endpoints": self._value("endpoints")} if read else None}

    def kubeadm(self):
        told = self._value("kubeadm")
        return _services.kubeadm(told) if told else None

    def budgets(self):
        return self._value("budgets")

    def locks(self):
        """None as soon as one part is missing: from silence nobody may conclude that nobody is at work."""
        if "locks" in self.problems:
            return None
        return [lock for one in self.daemonsets for lock in _locks.kured(one)] + (self._value("maintenance") or []) + (self._value("upgrades") or [])

    def etcd(self):
        return self._value("etcd")

    def _by_daemonset(self, daemonset, said):
        if self._problem("daemonsets"):
            return dict.fromkeys(fact.partition(".")[2] for fact in DAEMONSET)
        information = self._value("cluster_information") or {}
        facts = _calico.facts_of(daemonset, said)
        operated = self._value("installation")
        facts["version"] = "" if _calico.is_enterprise(daemonset, operated) else facts["version"] or text(information, "version")
        facts["install"] = _calico.install(daemonset, operated, said, self._value("nodes"), text(information, "type"))
        if said.backend is None:
            source = said.env["CALICO_NETWORKING_BACKEND"]["from"]
            self._note("calico.backend", self.problems.get("calico.env") or _problem("CALICO_NETWORKING_BACKEND", "it comes from %s" % source))
        return facts

    def _resources(self):
        bgp = "calico.bgp" not in self.problems
        return {
            "pools": self._or("pools", []),
            "bgp": _calico.bgp(self._value("bgp_configuration"), self._value("bgp_peers") or []) if bgp else None,
            "felix": None if self._problem("felix") else _calico.felix(self._value("felix")),
            "cluster_information": self._value("cluster_information"),
            "block_affinities": self._or("block_affinities", 0),
        }

    def _in_etcd(self):
        resources = dict.fromkeys(self._resources())
        for name in resources:
            self._note("calico." + name, _problem("Calico's " + name.replace("_", " "), IN_ETCD))
        self._note("node.calico", _problem("the addresses that Calico keeps for its nodes", IN_ETCD))
        return resources

    def _service_networks(self):
        """Since 1.33 the API server itself knows them; before, kubeadm remembers what it was told."""
        if self._problem("service_networks"):
            return None
        told = [network for one in self._value("service_networks") or [] for network in one]
        told = told or _services.kubeadm(self._value("kubeadm"))["service_networks"]
        if not told:
            self._note("services.networks", self._problem("kubeadm") or _problem("ServiceCIDR and kubeadm-config", "neither of them names a network"))
        return told or None

    def _later(self, kind):
        return {name[1]: answer for name, answer in self.answers.items() if name[0] == kind}

    def _value(self, name):
        return self.answers[name].value

    def _problem(self, name):
        return self.answers[name].problem

    def _or(self, name, absent):
        """None where it could not be read, not where there is none of it."""
        return None if self._problem(name) else self._value(name) or absent

    def _note(self, fact, problem):
        if problem:
            self.problems.setdefault(fact, problem)


def _problem(what, why, kind="error"):
    return {"what": what, "why": why, "kind": kind}
