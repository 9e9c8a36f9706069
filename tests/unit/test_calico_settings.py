"""Calico's settings changed in an API server in memory: what is refused, who owns them, how the nodes follow, and how it is all taken back."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.action.calico_autodetection import ActionModule as Autodetection
from ansible_collections.nodecare.kubernetes.plugins.action.calico_autodetection import _families
from ansible_collections.nodecare.kubernetes.plugins.action.calico_probes import ActionModule as Probes
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _lease
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import NoAnswerError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._holder import Run as Who
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules.calico._here import look_into
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._tuning import _action, _written
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._tuning._owners import OwnerError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._tuning._rollout import StuckError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._tuning._written import RefusedError
from test_calico_autodetect import facts_of

NODES = ("w1", "w2", "w3")
OWN = {"w1": "10.0.0.11", "w2": "10.0.0.12", "w3": "10.0.0.13"}
WRONG = "192.168.56.13/24"
PATH = "/apis/apps/v1/namespaces/kube-system/daemonsets/calico-node"
INSTALLATION = "/apis/operator.tigera.io/v1/installations/default"
HELM = "/apis/helm.cattle.io/v1/namespaces/kube-system/helmchartconfigs/rke2-calico"
US = "us"
LEASED = {"holderIdentity": US, "leaseDurationSeconds": 0, "renewTime": "2026-11-18T20:00:00.000000Z"}  # so short that it is renewed at each look
INTERNAL = {"firstFound": None, "interface": None, "skipInterface": None, "canReach": None, "cidrs": None, "kubernetes": "NodeInternalIP"}


def merged(old, new):
    """A merge patch; where a strategic one is sent, lists of named things are merged by name."""
    if isinstance(old, list) and isinstance(new, list) and all("name" in one for one in [*old, *new]):
        found = {one["name"]: one for one in old}
        for one in new:
            found[one["name"]] = merged(found.get(one["name"], {}), one)
        return [one for one in found.values() if one.pop("$patch", "") != "delete"]
    if not isinstance(new, dict):
        return new
    old = old if isinstance(old, dict) else {}
    kept = {**old, **{key: merged(old.get(key), value) for key, value in new.items() if not key.startswith("$set")}}
    return {key: value for key, value in kept.items() if value is not None}


class Server:
    """One DaemonSet with a pod on each node, replaced one after the other as its controller does; and what the operator and RKE2 make of theirs."""

    def __init__(self, strategy="RollingUpdate", env=(), registers=None):
        probe = {
            "exec": {"command": ["calico-node", "-felix-live"]},
            "failureThreshold": 6,
            "initialDelaySeconds": 10,
            "periodSeconds": 10,
            "timeoutSeconds": 1,
        }
        container = {"name": "calico-node", "env": [{"name": "IP", "value": "autodetect"}, *env], "livenessProbe": probe}
        metadata = {"namespace": "kube-system", "name": "calico-node", "uid": "d", "resourceVersion": "1", "generation": 1}
        spec = {"selector": {"matchLabels": {"k8s-app": "calico-node"}}, "updateStrategy": {"type": strategy}}
        self.things = {PATH: {"metadata": metadata, "spec": {**spec, "template": {"spec": {"containers": [container]}}}, "status": {}}}
        self.registers = registers or {"first-found": {**OWN, "w3": WRONG.partition("/")[0]}, "kubernetes-internal-ip": OWN}
        self.registered, self.pods, self.count, self.deleted, self.wrote = {}, {}, 0, [], []
        self.sick = set()  # (node, method): there calico-node ends again and again
        self.refuses = {}  # (path, dry run): what is answered to a write
        self.renewed = 0
        self.fails = {}  # path, or (path, dry run): what is answered to the next times that somebody asks or writes, from the last on; None is no failure
        for node in NODES:
            self._new_pod(node)

    # -- as a door ----

    def get(self, path, _query, _seconds):
        self._may_fail(path)
        if path == PATH:
            self._controller()
        if path.endswith("/pods"):
            return {"items": [copy.deepcopy(one) for one in self.pods.values()]}
        if path.endswith("/events"):
            return {"items": []}
        if path.startswith("/api/v1/nodes/"):
            return {"metadata": {"annotations": {"projectcalico.org/IPv4Address": self.registered[path.rpartition("/")[2]] + "/24"}}}
        if path not in self.things:
            raise NoAnswerError("not found", status=404)
        return copy.deepcopy(self.things[path])

    def patch(self, path, body, _seconds, dry_run, kind):
        assert kind == ("strategic-merge-patch" if path == PATH else "merge-patch")
        self._may(path, dry_run)
        thing = self.things[path]
        if body["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
            raise NoAnswerError("the object has been modified", status=409)
        made = merged(copy.deepcopy(thing), copy.deepcopy(body))
        return self._put(path, made, dry_run)

    @property
    def now(self):
        return 1795030943.0

    def replace(self, path, body, _seconds, dry_run):
        self.renewed += 1
        self.things[path] = body
        return body

    def create(self, _path, body, _seconds, dry_run):
        self._may(HELM, dry_run)
        return self._put(HELM, {**copy.deepcopy(body), "metadata": {**body["metadata"], "uid": "h"}}, dry_run)

    def delete(self, path, _seconds, body, dry_run):
        if path == HELM:
            if not dry_run:
                del self.things[path]
            return
        node = next(node for node, pod in self.pods.items() if path.endswith("/" + pod["metadata"]["name"]))
        self._may_fail(node)
        assert body["preconditions"]["uid"] == self.pods[node]["metadata"]["uid"]
        self.deleted.append(node)
        self._new_pod(node)

    def _may_fail(self, what):
        failure = self.fails[what].pop() if self.fails.get(what) else None
        if failure:
            raise failure

    def _may(self, path, dry_run):
        self._may_fail((path, dry_run))
        if (path, dry_run) in self.refuses:
            raise self.refuses[(path, dry_run)]

    def _put(self, path, made, dry_run):
        if not dry_run:
            self.wrote.append(path)
            made["metadata"]["resourceVersion"] = str(int(made["metadata"].get("resourceVersion") or 0) + 1)
            self.things[path] = made
        return copy.deepcopy(made)

    # -- as a cluster ----

    @property
    def daemonset(self):
        return self.things[PATH]

    @property
    def container(self):
        return self.daemonset["spec"]["template"]["spec"]["containers"][0]

    @property
    def method(self):
        return {one["name"]: one.get("value") for one in self.container["env"]}.get("IP_AUTODETECTION_METHOD") or "first-found"

    def _controller(self):
        """One step of each of them."""
        self._operator()
        old = [node for node, pod in self.pods.items() if pod["spec"]["containers"] != [self.container]]
        down = [node for node, pod in self.pods.items() if pod["status"]["conditions"][0]["status"] != "True"]
        if self.daemonset["spec"]["updateStrategy"]["type"] == "RollingUpdate" and old and set(down) <= set(old):
            self._new_pod((sorted(set(down) & set(old)) or old)[0])
        self.daemonset["status"] = {"observedGeneration": 9, "desiredNumberScheduled": len(NODES)}

    def _operator(self):
        words = ((self.things.get(INSTALLATION) or {}).get("spec") or {}).get("calicoNetwork") or {}
        if HELM in self.things:
            words = yaml.safe_load(self.things[HELM]["spec"]["valuesContent"])["installation"]["calicoNetwork"]
        elif INSTALLATION not in self.things:
            return
        method = "kubernetes-internal-ip" if (words.get("nodeAddressAutodetectionV4") or {}).get("kubernetes") else "first-found"
        env = [one for one in self.container["env"] if one["name"] != "IP_AUTODETECTION_METHOD"]
        self.container["env"] = [*env, {"name": "IP_AUTODETECTION_METHOD", "value": method}]

    def _new_pod(self, node):
        self.count += 1
        sick = (node, self.method) in self.sick
        self.registered[node] = self.registers.get(self.method, {}).get(node) or self.registered.get(node)
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if sick else {"running": {}}
        self.pods[node] = {
            "metadata": {"namespace": "kube-system", "name": "p%d" % self.count, "uid": "u%d" % self.count, "ownerReferences": [{"uid": "d"}]},
            "spec": {"nodeName": node, "containers": [copy.deepcopy(self.container)]},
            "status": {
                "conditions": [{"type": "Ready", "status": "False" if sick else "True"}],
                "containerStatuses": [{"name": "calico-node", "state": state, "restartCount": 3 * sick}],
            },
        }


# -- what the play knows ---------------------------------------------------------------------------------------------------


def facts(node, answer=0.1):
    links = ["lo 127.0.0.1/8", "eth0 %s/24" % OWN[node], *(["eth1 " + WRONG] if node == "w3" else [])]
    steps = {name: {"p50": seconds, "p90": seconds} for name, seconds in (("connect", 0.01), ("tls", 0.02), ("answer", answer))}
    path = {"api": [{"target": "10.0.0.1:6443", "state": "answered", **steps}], "etcd": []}
    return {"schema": "nodecare.node/1", "taken": {"hostname": node}, "problems": [], "links": facts_of(links, ["default dev eth0 via 10.0.0.1"]), "path": path}


def cluster(server, kind="manifest", ready=("w1", "w2"), silent=(), **calico):
    entries = []
    for node in NODES:
        status = "Unknown" if node in silent else "True"
        held = {"ipv4": server.registered[node] + "/24"}
        entries.append({"name": node, "internal_ips": [OWN[node]], "conditions": {"Ready": {"status": status}}, "calico": held})
    pods = [{"namespace": "kube-system", "name": node, "component": "calico-node", "node": node, "ready": node in ready} for node in NODES]
    env = {one["name"]: one["value"] for one in server.container["env"]}
    probe = {"how": "exec", "what": "calico-node -felix-live", "delay_s": 10, "period_s": 10, "timeout_s": 1, "failures": 3}
    workload = {"namespace": "kube-system", "name": "calico-node"}
    known = {"install": {"kind": kind}, "version": "3.31.0", "datastore": "kubernetes", "backend": "bird", "env": env, "daemonset": workload, "pools": []}
    known = {**known, "probes": {"liveness": probe}, "installation": {"spec": {}} if kind == "operator" else None, **calico}
    return {"schema": "nodecare.cluster/1", "problems": [], "nodes": entries, "pods": pods, "calico": known}


class Run:
    """An action without Ansible around it."""

    def __init__(self, action, server, check=False):
        self.told, self.server = [], server
        self.action = action.__new__(action)
        self.action._display = SimpleNamespace(display=self.told.append)
        self.action._task = SimpleNamespace(check_mode=check)
        self.action.check, self.action.first, self.action.who = check, (), Who(US, "me@here, process 1")
        self.action.answer = {"changed": False, "undo": "", "notes": [], "nodes": {}}
        self.defaults = {name: option.get("default") for name, option in action.arguments.items()}

    def go(self, known=None, read=NODES, answer=0.1, **options):
        options = {**self.defaults, "within": 0.3, "every": 0.001, **options}
        document = known or cluster(self.server)
        play = {node: SimpleNamespace(get=lambda name, node=node: self._result(name, node, read, document, answer)) for node in NODES}
        task_vars = {"hostvars": SimpleNamespace(raw_get=play.get), "ansible_play_hosts_all": list(NODES)}
        self.action._go(self.server, _action._known(options, task_vars), options)
        return self.action.answer

    def _result(self, name, node, read, document, answer):
        if name == "nodecare_check":
            return {"facts": facts(node, answer)} if node in read else {"unreachable": True}
        return {"cluster": document}


def test_the_table_the_roll_out_and_the_way_back():
    server = Server()
    before = copy.deepcopy(server.daemonset["spec"])
    predicted = Run(Autodetection, server, check=True).go()
    assert predicted["changed"] and server.daemonset["spec"] == before and server.wrote == []
    done = Run(Autodetection, server).go()
    assert (done["changed"], done["methods"], done["diff"]) == (True, {"IPv4": "kubernetes-internal-ip"}, predicted["diff"])
    assert [(row["node"], row["registered"], row["now"], row["then"], row["right"]) for row in done["table"]][2] == (("w3", WRONG, WRONG, "10.0.0.13/24", True))
    assert set(done["nodes"]) == set(NODES) and server.registered == OWN
    again = Run(Autodetection, server).go()
    assert not again["changed"] and server.wrote == [PATH]

    back = Run(Autodetection, server).go(state="as_before")
    assert back["changed"] and server.daemonset["spec"] == before and server.registered["w3"] == WRONG.partition("/")[0]
    assert not Run(Autodetection, server).go(state="as_before")["changed"]
    assert server.daemonset["metadata"]["annotations"] == {}


def test_what_was_there_before_the_first_change_is_what_comes_back():
    server = Server(registers={"kubernetes-internal-ip": OWN, "cidr=10.0.0.0/24": OWN, "first-found": {**OWN, "w3": "192.168.56.13"}})
    before = copy.deepcopy(server.daemonset["spec"])
    Run(Autodetection, server).go(method="cidr=10.0.0.0/24")
    Run(Autodetection, server).go(method="kubernetes-internal-ip")
    assert server.method == "kubernetes-internal-ip"
    Run(Autodetection, server).go(state="as_before")
    assert server.daemonset["spec"] == before


V6 = {"IP": "none", "IP6": "autodetect"}


@pytest.mark.parametrize(
    ("env", "given", "families"),
    [
        ({"IP": "autodetect"}, {}, [4]),
        ({}, {}, [4]),
        ({"IP": "autodetect", "IP6": "autodetect"}, {}, [4, 6]),
        ({"IP": "autodetect"}, {6: "first-found"}, [4, 6]),
        (V6, {}, [6]),
        (V6, {4: "first-found"}, [4, 6]),
        ({"IP": "none", "IP6": "none"}, {6: "first-found"}, [6]),
    ],
    ids=str,
)
def test_a_family_that_calico_is_to_leave_alone_stays_so(env, given, families):
    assert _families({"w1": told(env)}, {4: "", 6: "", **given}) == families


def test_nothing_is_switched_on_where_calico_looks_for_no_address():
    with pytest.raises(RefusedError, match="say which method is to be set"):
        _families({"w1": told({"IP": "none"})}, {4: "", 6: ""})


def told(env):
    """A node that Calico has registered nothing for, in a cluster whose calico-node has this environment."""
    calico = {"install": {"kind": "manifest"}, "version": "3.31.0", "backend": "bird", "env": env}
    node = {"name": "w1", "internal_ips": ["fd00::11"], "conditions": {}, "calico": {}}
    return look_into({**facts("w1"), "cluster": {"calico": calico, "nodes": [node], "node": node}}, policy({}))


def test_a_source_gives_way_to_a_value_and_comes_back():
    source = {"name": "IP_AUTODETECTION_METHOD", "valueFrom": {"configMapKeyRef": {"name": "calico-config", "key": "method"}}}
    server = Server()
    known = cluster(server)
    server.container["env"].append(source)
    for node in NODES:
        server._new_pod(node)
    before = copy.deepcopy(server.daemonset["spec"])
    done = Run(Autodetection, server).go(known)
    assert server.container["env"][1] == {"name": "IP_AUTODETECTION_METHOD", "value": "kubernetes-internal-ip"}
    assert any("came from the ConfigMap calico-config" in note for note in done["notes"])
    Run(Autodetection, server).go(known, state="as_before")
    assert server.daemonset["spec"] == before


def test_somebody_has_changed_it_since():
    server = Server()
    Run(Autodetection, server).go()
    server.container["env"][1]["value"] = "cidr=10.0.0.0/8"
    with pytest.raises(RefusedError, match="was changed since"):
        Run(Autodetection, server).go(state="as_before")


def test_the_first_node_that_gets_worse_brings_the_old_setting_back():
    server = Server()
    before = copy.deepcopy(server.daemonset["spec"])
    server.sick.add(("w2", "kubernetes-internal-ip"))
    with pytest.raises(RefusedError, match=r"w2 got worse with it: .*ends again and again.* The old setting is back, and calico-node runs with it again"):
        Run(Autodetection, server).go()
    assert server.daemonset["spec"] == before and all(pod["spec"]["containers"] == [server.container] for pod in server.pods.values())


def test_another_address_than_foreseen_is_worse():
    server = Server(registers={"first-found": {**OWN, "w3": "192.168.56.13"}, "kubernetes-internal-ip": {**OWN, "w1": "172.18.0.1"}})
    before = copy.deepcopy(server.daemonset["spec"])
    with pytest.raises(RefusedError, match=r"Calico has registered 172.18.0.1/24, and 10.0.0.11/24 was foreseen"):
        Run(Autodetection, server).go()
    assert server.daemonset["spec"] == before


def test_on_delete_the_ill_one_is_replaced_first_and_one_at_a_time():
    server = Server("OnDelete")
    done = Run(Autodetection, server).go()
    assert server.deleted == ["w3", "w1", "w2"] and list(done["nodes"]) == server.deleted
    server = Server("OnDelete")
    server.sick.add(("w3", "kubernetes-internal-ip"))
    with pytest.raises(RefusedError, match="w3 got worse"):
        Run(Autodetection, server).go()
    assert server.deleted == ["w3", "w3"], "one was tried, and that one taken back"


BUSY, AWAY = NoAnswerError("too many requests", status=429), NoAnswerError("no answer within 20 s", "hung")


@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
@pytest.mark.parametrize("error", [BUSY, AWAY, NoAnswerError("it broke", status=503)], ids=lambda error: error.why)
def test_what_is_not_answered_for_a_moment_is_asked_again(strategy, error):
    server = Server(strategy)
    server.fails = {"/api/v1/nodes/" + node: [error] for node in NODES} | {node: [error] for node in NODES}
    done = Run(Autodetection, server).go()
    assert set(done["nodes"]) == set(NODES) and server.registered == OWN and not any(server.fails[path] for path in server.fails if strategy == "OnDelete")


@pytest.mark.parametrize(("strategy", "tried"), [("RollingUpdate", []), ("OnDelete", ["w3", "w3"])])
def test_no_node_follows_one_that_nobody_could_look_at(strategy, tried):
    """It is looked at as soon as the API server answers, and what is worse with it is put back all the same."""
    server = Server(strategy, registers={"first-found": {**OWN, "w3": "192.168.56.13"}, "kubernetes-internal-ip": {**OWN, "w3": "172.18.0.1"}})
    before = copy.deepcopy(server.daemonset["spec"])
    server.fails = {"/api/v1/nodes/w3": [BUSY, AWAY]}
    with pytest.raises(RefusedError, match=r"w3 got worse with it: .*172.18.0.1/24, and 10.0.0.13/24 was foreseen. The old setting is back"):
        Run(Autodetection, server).go()
    assert server.daemonset["spec"] == before and server.deleted == tried


def test_a_node_that_is_gone_by_now_does_not_end_the_watch():
    server = Server()
    server.fails = {"/api/v1/nodes/w1": [NoAnswerError("not found", status=404)]}
    run = Run(Autodetection, server)
    assert set(run.go()["nodes"]) == set(NODES) and "w1: the cluster has no such Node any more" in run.told


def test_a_node_that_nobody_can_look_at_is_what_is_waited_for():
    server = Server()
    server.fails = {"/api/v1/nodes/w1": [BUSY] * 10000}
    with pytest.raises(StuckError, match="the API server to say how w1 is. The setting stays as it is"):
        Run(Autodetection, server).go()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("error", [BUSY, AWAY, NoAnswerError("it broke", status=503), NoAnswerError("modified", status=409)], ids=lambda error: error.why)
def test_what_made_a_node_worse_is_put_back_however_busy_the_api_server_is(error, dry_run, monkeypatch):
    monkeypatch.setattr(_written, "PAUSE_S", 0.0)
    server = Server()
    before = copy.deepcopy(server.daemonset["spec"])
    server.sick.add(("w2", "kubernetes-internal-ip"))
    server.fails = {(PATH, dry_run): [error, error, None]}
    with pytest.raises(RefusedError, match="w2 got worse with it: .* The old setting is back"):
        Run(Autodetection, server).go()
    assert server.daemonset["spec"] == before and not server.fails[PATH, dry_run]


WEBHOOK = 'admission webhook "no.example" denied the request: not on Fridays (HTTP status 400)'
REFUSALS = [
    pytest.param({(PATH, True): NoAnswerError(WEBHOOK, status=400)}, "an admission policy of the cluster refuses .*not on Fridays.* Nothing was", id="webhook"),
    pytest.param({(PATH, True): NoAnswerError("x cannot patch", "denied", 403)}, "x cannot patch. Nothing was changed. The rights that it takes", id="rights"),
    pytest.param({(PATH, False): NoAnswerError("modified", status=409)}, "somebody else has changed DaemonSet .* Nothing was changed", id="conflict"),
    pytest.param({(PATH, True): NoAnswerError("no answer within 20 s", "hung")}, "no answer .* Nothing was changed", id="hung"),
    pytest.param({(PATH, False): NoAnswerError("no answer within 20 s", "hung")}, "Whether it was made is not known: run this again", id="hung while written"),
]


@pytest.mark.parametrize(("refuses", "words"), REFUSALS)
def test_what_the_api_server_refuses(refuses, words):
    server = Server()
    server.refuses = refuses
    with pytest.raises(RefusedError, match=words):
        Run(Autodetection, server).go()
    assert server.wrote == []


NOT_SO = [
    pytest.param({"read": ("w1", "w2")}, "w3 were not read in this play", id="one was not read"),
    pytest.param({"method": "interface=eth9"}, "w1 would get nothing: it finds no address there", id="no address"),
    pytest.param({"method": "bogus"}, "Invalid IP autodetection method: bogus", id="no method"),
    pytest.param({"method": "first-found"}, r"w3 would get 192.168.56.13/24 on eth1: that is not its own: by its InternalIP it is 10.0.0.13", id="another"),
    pytest.param({"policy": {"networks": {"calico": ["10.9.0.0/16"]}}}, "no method is right for all nodes", id="nothing fits"),
    pytest.param({"known": {"ready": NODES}}, "w3 would get another address while calico-node is ready there", id="consent"),
    pytest.param({"known": {"silent": ("w2",)}}, r"the kubelet of w2 is silent, and the DaemonSet replaces no other pod", id="a silent kubelet"),
    pytest.param({"known": {"install": {"kind": "none"}}}, "no DaemonSet", id="no Calico"),
    pytest.param({"known": {"backend": "none", "env": {"IP": "autodetect"}}}, "only enforces policies", id="no routing"),
]


@pytest.mark.parametrize(("options", "words"), NOT_SO)
def test_it_refuses_before_anything_is_changed(options, words):
    server = Server()
    options = {**options, "known": cluster(server, **options["known"])} if "known" in options else options
    with pytest.raises((RefusedError, OwnerError), match=words):
        Run(Autodetection, server).go(**options)
    assert server.wrote == []


def test_a_node_that_is_left_out_need_not_be_read():
    server = Server()
    done = Run(Autodetection, server).go(read=("w1", "w3"), leave_out=["w2"])
    assert [row["node"] for row in done["table"]] == ["w1", "w3"] and done["changed"]


def test_an_address_that_another_still_has_comes_too_early():
    server = Server()
    known = cluster(server)
    known["nodes"][1]["calico"]["ipv4"] = "10.0.0.13/24"
    with pytest.raises(RefusedError, match="it is registered for w2 until that one is started anew: kubectl annotate node w2 projectcalico.org/IPv4Address-"):
        Run(Autodetection, server).go(known, allow_disruption=True)


# -- the cluster's lock ------------------------------------------------------------------------------------------------------


def holding(server):
    server.things[_lease.PATH] = {"metadata": {"resourceVersion": "1"}, "spec": dict(LEASED)}
    return server


def taken_over_after(server, asked):
    """Another run takes the lock when this path was asked for so often."""
    get, left = server.get, [None] * asked

    def getting(path, *more):
        if path == PATH and left and left.pop() is None and not left:
            server.things[_lease.PATH]["spec"]["holderIdentity"] = "them"
        return get(path, *more)

    server.get = getting
    return server


def test_the_lock_is_renewed_as_long_as_the_nodes_take():
    server = holding(Server())
    assert set(Run(Autodetection, server).go()["nodes"]) == set(NODES) and server.renewed >= len(NODES)
    renewed = server.renewed
    assert Run(Autodetection, server).go(state="as_before")["changed"] and server.renewed >= renewed + len(NODES)
    server = Server()
    assert Run(Autodetection, server).go()["changed"] and not server.renewed, "who holds none has none to renew"


def test_who_has_lost_the_lock_does_not_go_on():
    with pytest.raises(StuckError, match=r"lost the cluster's lock to .*run them.*The setting stays as it is. To take it back: kubectl -n kube-system patch"):
        Run(Autodetection, taken_over_after(holding(Server("OnDelete")), 5)).go()
    server = operated()
    server._operator = lambda: None  # it has not taken it over yet
    with pytest.raises(RefusedError, match=r"lost the cluster's lock.*No pod was replaced, and Installation default is as it was"):
        Run(Autodetection, taken_over_after(holding(server), 4)).go(cluster(server, "operator"))


def test_a_lock_that_cannot_be_read_is_known_before_anything_is_changed():
    server = holding(Server())
    server.fails = {_lease.PATH: [AWAY]}
    with pytest.raises(NoAnswerError):
        Run(Autodetection, server).go()
    assert server.wrote == []


# -- other owners ------------------------------------------------------------------------------------------------------------


def operated():
    server = Server(env=[{"name": "IP_AUTODETECTION_METHOD", "value": "first-found"}])
    server.things[INSTALLATION] = {"metadata": {"resourceVersion": "7"}, "spec": {"calicoNetwork": {"nodeAddressAutodetectionV4": {"firstFound": True}}}}
    return server


def test_the_operator_gets_one_method_and_makes_the_daemonset():
    server = operated()
    sent = []
    patch = server.patch
    server.patch = lambda path, body, *more, **options: sent.append(body["spec"]) or patch(path, body, *more, **options)
    done = Run(Autodetection, server).go(cluster(server, "operator"))
    assert sent[0] == {"calicoNetwork": {"nodeAddressAutodetectionV4": INTERNAL}} and done["changed"]
    assert set(server.wrote) == {INSTALLATION} and server.registered == OWN
    Run(Autodetection, server).go(cluster(server, "operator"), state="as_before")
    assert server.things[INSTALLATION]["spec"] == {"calicoNetwork": {"nodeAddressAutodetectionV4": {"firstFound": True}}}
    assert server.registered["w3"] == "192.168.56.13"


def test_an_operator_that_is_away_leaves_nothing_behind():
    server = operated()
    server._operator = lambda: None
    with pytest.raises(RefusedError, match=r"does the operator run\?\. No pod was replaced, and Installation default is as it was"):
        Run(Autodetection, server).go(cluster(server, "operator"))
    assert server.things[INSTALLATION]["spec"] == {"calicoNetwork": {"nodeAddressAutodetectionV4": {"firstFound": True}}}


@pytest.mark.parametrize(
    "before", [None, "password: hunter2\ninstallation:\n  registry: r.example\n  calicoNetwork: {mtu: 1400, nodeAddressAutodetectionV4: {firstFound: true}}\n"]
)
def test_rke2_keeps_what_else_its_values_say(before):
    server = Server(env=[{"name": "IP_AUTODETECTION_METHOD", "value": "first-found"}])
    if before:
        server.things[HELM] = {"metadata": {"resourceVersion": "3", "uid": "h"}, "spec": {"valuesContent": before}}
    run = Run(Autodetection, server)
    done = run.go(cluster(server, "rke2"))
    assert "hunter2" not in json.dumps(done) + "".join(run.told) and "NodeInternalIP" in done["diff"]["after"]
    assert ("nodecare_state=as_before" if before else "delete helmchartconfig") in done["undo"]
    values = yaml.safe_load(server.things[HELM]["spec"]["valuesContent"])["installation"]
    assert values["calicoNetwork"]["nodeAddressAutodetectionV4"] == {"kubernetes": "NodeInternalIP"}
    assert not before or (values["registry"], values["calicoNetwork"]["mtu"]) == ("r.example", 1400)
    if before:
        Run(Autodetection, server).go(cluster(server, "rke2"), state="as_before")
        assert server.things[HELM]["spec"]["valuesContent"] == before


def test_kubespray_is_told_by_its_inventory():
    server = Server()
    done = Run(Autodetection, server).go(cluster(server, "kubespray"))
    assert done["inventory"] == {"calico_ip_auto_method": "kubernetes-internal-ip"} and not done["changed"] and server.wrote == []
    assert Run(Autodetection, server).go(cluster(server, "kubespray"), even_on_kubespray=True)["changed"]


# -- probes ------------------------------------------------------------------------------------------------------------------


def test_probes_get_the_time_that_is_foreseen():
    server = Server()
    before = copy.deepcopy(server.daemonset["spec"])
    done = Run(Probes, server).go(answer=1.9)
    probe = server.container["livenessProbe"]
    assert done["probes"] == {"livenessProbe": {"failureThreshold": probe["failureThreshold"], "timeoutSeconds": 10}} and probe["failureThreshold"] > 3
    assert probe["exec"] and probe["periodSeconds"] == 10 and set(done["nodes"]) == set(NODES)
    Run(Probes, server).go(state="as_before")
    assert server.daemonset["spec"] == before


def test_probes_that_are_asked_for():
    server = Server()
    done = Run(Probes, server).go(liveness={"delay": 0, "period": None, "failures": 12, "timeout": None})
    assert done["probes"] == {"livenessProbe": {"initialDelaySeconds": 0, "failureThreshold": 12}}
    assert not Run(Probes, server).go(liveness={"failures": 12})["changed"]


def test_numbers_of_ansibles_own_kind_are_shown_and_written_as_numbers():
    tags = pytest.importorskip("ansible._internal._datatag._tags", reason="this ansible-core has no such numbers")
    server = Server()
    done = Run(Probes, server).go(liveness={"failures": tags.Origin(description="a playbook").tag(12)})
    assert "failureThreshold: 12" in done["diff"]["after"] and type(server.container["livenessProbe"]["failureThreshold"]) is int


NO_PROBES = [
    pytest.param({"answer": 2.5}, "no setting of the probes helps", id="too slow for its own patience"),
    pytest.param({"read": ()}, "is not known", id="nothing was read"),
    pytest.param({"liveness": {"failures": 0}}, "liveness.failures is 0: it has to be 1 or more", id="no number"),
    pytest.param({"startup": {"failures": 5}}, "calico-node has no startupProbe", id="no such probe"),
]


@pytest.mark.parametrize(("options", "words"), NO_PROBES)
def test_probes_that_cannot_be_set(options, words):
    server = Server()
    with pytest.raises((RefusedError, OwnerError), match=words):
        Run(Probes, server).go(**options)
    assert server.wrote == []


def test_an_operator_that_knows_no_probes_drops_them():
    server = operated()
    put = server._put
    server._put = lambda path, made, dry_run: put(path, {**made, "spec": {key: made["spec"][key] for key in made["spec"] if "DaemonSet" not in key}}, dry_run)
    with pytest.raises(RefusedError, match="does not take it: .* does not know all of it"):
        Run(Probes, server).go(cluster(server, "operator"), liveness={"failures": 12})
    assert server.wrote == []


def test_a_roll_out_that_does_not_begin_says_what_it_waits_for():
    server = Server()
    server._controller = lambda: server.daemonset.update(status={"observedGeneration": 0, "desiredNumberScheduled": 3})
    with pytest.raises(StuckError, match="kube-controller-manager to see the change.* To take it back: kubectl -n kube-system patch daemonset calico-node"):
        Run(Autodetection, server).go()
    assert json.loads(server.daemonset["metadata"]["annotations"]["nodecare/before-autodetection"])["before"]["env"]["IP_AUTODETECTION_METHOD"] is None
