"""node_drain on a real API server with its budgets and controllers. There are no machines: pods are objects bound to Node objects, and the kubelet,
where a test needs one, is the test itself, which deletes pods that were told to end."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import threading
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path

import pytest
from labs import ROOT, eventually

SERVER = "https://10.0.0.1:6443"
ROLES = ("docs/nodecare-reader.yml", "docs/nodecare-repairer.yml")
CONTAINERS = [{"name": "main", "image": "none"}]


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Api:
    """The lab's API server by kubectl's proxy: a question costs no process."""

    def __init__(self, lab, path):
        self.lab, self.path = lab, str(path)

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, what it said)"""
        connection = Connection(self.path)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def do(self, method, path, body=None, kind="application/json"):
        status, said = self.ask(method, path, body, kind)
        assert status < 300, said
        return said

    def patch(self, path, body):
        return self.do("PATCH", path, body, "application/merge-patch+json")


class World:
    """A namespace and a cordoned Node of its own, emptied by somebody who has no more rights than the role gives."""

    def __init__(self, api):
        self.api = api
        number = uuid.uuid4().hex[:6]
        self.space, self.node, self.other = ("drain-%s%s" % (number, more) for more in ("", ".example", ".other"))
        self.home = "/api/v1/namespaces/" + self.space
        api.do("POST", "/api/v1/namespaces", {"metadata": {"name": self.space}})
        for name in (self.node, self.other):
            api.do("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"is": name}}, "spec": {"unschedulable": True}})
        eventually("the namespace's account", lambda: api.ask("GET", self.home + "/serviceaccounts/default")[0] == 200, every=0.1)

    def pod(self, name, node=None, labels=None, finalizers=(), mirror=False, **spec):
        metadata = {"name": name, "labels": labels or {"app": "web"}, "finalizers": list(finalizers)}
        metadata["annotations"] = {"kubernetes.io/config.mirror": "1f5c"} if mirror else {}
        self.api.do("POST", self.home + "/pods", {"metadata": metadata, "spec": {"nodeName": node or self.node, "containers": CONTAINERS, **spec}})

    def budget(self, name, needed, labels):
        spec = {"minAvailable": needed, "selector": {"matchLabels": labels}}
        self.api.do("POST", "/apis/policy/v1/namespaces/%s/poddisruptionbudgets" % self.space, {"metadata": {"name": name}, "spec": spec})

    def replicas(self, count, **spec):
        """A ReplicaSet that takes on the pods that are there. What it makes anew goes nowhere, unless a node is named."""
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS, **spec}}
        spec = {"replicas": count, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        place = "/apis/apps/v1/namespaces/%s/replicasets" % self.space
        self.api.do("POST", place, {"metadata": {"name": "web"}, "spec": spec})
        eventually("its pods", lambda: self.api.do("GET", place + "/web")["status"].get("replicas") == count, every=0.1)
        eventually("their owner", lambda: all(one["metadata"].get("ownerReferences") for one in self.pods()), every=0.1)

    def say(self, name, status):
        self.api.patch("%s/pods/%s/status" % (self.home, name), {"status": status})

    def run_all(self):
        """All pods of the namespace say that they are ready."""
        for name in self.names():
            self.say(name, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})

    def allows(self, name, number):
        path = "/apis/policy/v1/namespaces/%s/poddisruptionbudgets/%s" % (self.space, name)
        eventually("the budget's numbers", lambda: self.api.do("GET", path).get("status", {}).get("disruptionsAllowed") == number, every=0.1)

    def pods(self):
        return self.api.do("GET", self.home + "/pods")["items"]

    def names(self):
        return {one["metadata"]["name"] for one in self.pods()}

    def told_to_end(self):
        return {one["metadata"]["name"] for one in self.pods() if one["metadata"].get("deletionTimestamp")}

    def cordon(self, yes):
        self.api.patch("/api/v1/nodes/" + self.node, {"spec": {"unschedulable": yes}})

    def drain(self, *words, **options):
        with self.draining(*words, **options) as run:
            return self.result(run)

    def draining(self, *words, **options):
        lab = self.api.lab
        given = {"host": SERVER, "api_key": self.api.token, "ca_cert": str(Path(lab.do("kubeconfig")).parent / "pki" / "ca.crt")}
        given.update({"node": self.node, "within": 60, "every": 1, **options})
        argv = lab.command("exec", "--", "ansible", "localhost", "-m", "nodecare.kubernetes.node_drain", "-a", json.dumps(given), *words)
        environment = lab.environment(ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK="ansible.builtin.minimal")
        return subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def result(self, run):
        said, complaint = run.communicate(timeout=600)
        assert "=> {" in said, said + complaint
        assert self.api.token not in said + complaint
        found, _end = json.JSONDecoder().raw_decode(said.partition("=> ")[2])
        assert run.returncode in (0, 2), said + complaint
        return {**found, "failed": run.returncode == 2, "said": said + complaint}

    def taken_away(self, done):
        """The pods that are no longer there by the diff of a run."""
        return {line.partition("/")[2] for line in done["said"].splitlines() if line.startswith("-%s/" % self.space)}


class Kubelet:
    """Ends the pods of a namespace that were told to end; ``then`` is called with the name of each that is gone."""

    def __init__(self, world, then=lambda name: None):
        self.world, self.then, self.over = world, then, threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.over.set()
        self.thread.join()

    def _work(self):
        while not self.over.wait(0.2):
            for one in self.world.told_to_end():
                self.world.api.ask("DELETE", "%s/pods/%s" % (self.world.home, one), {"gracePeriodSeconds": 0})
                self.then(one)


@pytest.fixture(scope="module")
def granted(api, tmp_path_factory):
    path = tmp_path_factory.mktemp("proxy") / "socket"
    for one in ROLES:
        api.kubectl("apply", "-f", ROOT / one)
    with api.start("kubectl", "proxy", "--unix-socket", path, stdout=subprocess.DEVNULL) as proxy:
        try:
            eventually("the proxy", path.exists, every=0.1)
            made = Api(api, path)
            made.token = api.kubectl("-n", "kube-system", "create", "token", "nodecare-repairer")
            yield made
        finally:
            proxy.terminate()


@pytest.fixture
def world(granted):
    made = World(granted)
    yield made
    for one in made.pods():
        path = "%s/pods/%s" % (made.home, one["metadata"]["name"])
        made.api.patch(path, {"metadata": {"finalizers": None}})
        made.api.ask("DELETE", path, {"gracePeriodSeconds": 0})
    for path in (made.home, "/api/v1/nodes/" + made.node, "/api/v1/nodes/" + made.other):
        made.api.ask("DELETE", path)


def named(pods):
    return {one["name"] for one in pods}


def test_a_node_is_emptied_of_what_may_go_and_a_second_run_changes_nothing_with_the_test_as_kubelet(world):
    for name in ("one", "two", "through"):
        world.pod(name)
    world.pod("elsewhere", world.other)
    world.pod("static", mirror=True)
    world.say("through", {"phase": "Succeeded"})
    with Kubelet(world):
        done = world.drain("--diff", even_bare=True)
        again = world.drain(even_bare=True)
    assert (done["changed"], named(done["evicted"]), named(done["staying"])) == (True, {"one", "two"}, {"static", "through"})
    assert world.taken_away(done) == {"one", "two"}
    assert world.names() == {"elsewhere", "static", "through"}
    assert (again["changed"], again["evicted"], named(again["staying"])) == (False, [], {"static", "through"})


def test_pods_of_a_daemonset_stay_until_it_is_gone(world):
    room = {"pods": "9", "cpu": "4", "memory": "8Gi"}
    world.api.patch("/api/v1/nodes/%s/status" % world.node, {"status": {"capacity": room, "allocatable": room}})
    spec = {"nodeSelector": {"is": world.node}, "tolerations": [{"operator": "Exists"}], "containers": CONTAINERS, "volumes": [{"name": "t", "emptyDir": {}}]}
    wanted = {"selector": {"matchLabels": {"app": "agent"}}, "template": {"metadata": {"labels": {"app": "agent"}}, "spec": spec}}
    place = "/apis/apps/v1/namespaces/%s/daemonsets" % world.space
    world.api.do("POST", place, {"metadata": {"name": "agent"}, "spec": wanted})
    eventually("its pod", lambda: any(one["spec"].get("nodeName") for one in world.pods()), every=0.1)
    kept = world.drain()
    assert (kept["changed"], named(kept["staying"])) == (False, world.names())
    world.api.do("DELETE", place + "/agent", {"propagationPolicy": "Orphan"})
    eventually("it to be gone", lambda: world.api.ask("GET", place + "/agent")[0] == 404, every=0.1)
    assert "nobody would make it anew" in world.drain()["msg"]


def test_a_budget_blocks_and_then_allows_with_the_test_as_kubelet(world):
    """The second pod may go only once the first has a ready substitute elsewhere."""
    world.pod("one")
    world.pod("two")
    world.pod("three", world.other)
    world.budget("web", 2, {"app": "web"})
    world.run_all()
    world.replicas(3)
    world.allows("web", 1)

    def substitute(_name):
        """Ready only after the drain was seen to wait."""
        time.sleep(3)
        world.run_all()

    with Kubelet(world, substitute):
        done = world.drain()
    assert named(done["evicted"]) == {"one", "two"} and not done["failed"]
    held = r"%s/(one|two) is held by the budget %s/web \(allows 0 disruptions: [23] of 3 expected pods are healthy, 2 must be\)" % (world.space, world.space)
    assert re.search(held, done["said"]), done["said"]


def test_two_budgets_on_a_pod_are_refused_before_anything_is_evicted(world):
    world.pod("one")
    world.pod("both", labels={"app": "web", "tier": "x"})
    world.budget("web", 0, {"app": "web"})
    world.budget("tier", 0, {"tier": "x"})
    world.run_all()
    refused = world.drain(even_bare=True)
    assert refused["failed"] and not refused["changed"]
    why = "nothing was evicted: %s/both: more than one budget is about it (%s/tier, %s/web)" % (world.space, world.space, world.space)
    assert why in refused["msg"]
    assert not world.told_to_end()


def test_what_needs_consent_is_refused_before_anything_is_evicted(world):
    world.pod("one")
    world.pod("cache", volumes=[{"name": "data", "emptyDir": {}}])
    world.run_all()
    world.replicas(2)
    refused = world.drain()
    assert "%s/cache: what it keeps in emptyDir (data) would be lost. Say even_emptydir: true" % world.space in refused["msg"]
    assert not world.told_to_end()
    assert named(world.drain("--check", even_emptydir=True)["evicted"]) == {"one", "cache"}


def test_a_deadline_that_is_over_names_the_budget_and_says_what_was_evicted_with_the_test_as_kubelet(world):
    world.pod("one")
    world.pod("held", labels={"app": "db"})
    world.budget("db", 1, {"app": "db"})
    world.run_all()
    world.allows("db", 0)
    with Kubelet(world):
        late = world.drain(even_bare=True, within=30)
    assert late["failed"] and late["changed"] and named(late["evicted"]) == {"one"}
    held = "%s/held is held by the budget %s/db (allows 0 disruptions: 1 of 1 expected pods are healthy, 1 must be)" % (world.space, world.space)
    assert held in late["msg"] and "Evicted until then: %s/one" % world.space in late["msg"], late["msg"]
    assert named(late["left"]) == world.names() == {"held"}


def test_a_pod_that_stays_terminating_is_named_without_any_kubelet(world):
    world.pod("stuck", finalizers=["example.com/backup"], terminationGracePeriodSeconds=1)
    world.pod("slow", terminationGracePeriodSeconds=300)
    late = world.drain(even_bare=True, within=20)
    assert late["failed"] and named(late["evicted"]) == {"slow", "stuck"}
    assert re.search(r"slow is still terminating, which has \d+ (s|min) left", late["msg"]), late["msg"]
    assert re.search(r"stuck is still terminating, which should have ended \d+ s ago; its finalizers: example.com/backup", late["msg"]), late["msg"]
    assert "the node's kubelet, which ends them, is not well" in late["msg"]


@pytest.mark.parametrize("where", ["elsewhere", "here, as it tolerates the cordon"])
def test_a_pod_of_the_same_name_that_is_made_anew_is_another_with_the_test_as_kubelet(world, where):
    """As a StatefulSet has it. The new pod is never evicted, though its name is that of one that had to go."""
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    again = world.other if where == "elsewhere" else world.node
    world.pod("web-0", tolerations=tolerations)
    (old,) = (one["metadata"]["uid"] for one in world.pods())
    with Kubelet(world, lambda name: world.pod(name, again, tolerations=tolerations)):
        done = world.drain(even_bare=True)
    assert [one["uid"] for one in done["evicted"]] == [old] and not done["failed"]
    assert named(done["back"]) == (set() if where == "elsewhere" else {"web-0"})
    (new,) = world.pods()
    assert new["metadata"]["uid"] != old and not world.told_to_end()


def test_pods_that_come_back_are_named_with_the_test_as_kubelet(world):
    """One by a template that names the node, which no cordon holds up."""
    world.pod("one")
    world.replicas(1, nodeName=world.node)
    with Kubelet(world):
        done = world.drain()
    assert named(done["evicted"]) == {"one"} and not done["failed"]
    (back,) = done["back"]
    assert {back["name"]} == world.names() and "in spite of its cordon" in done["said"]


def test_check_mode_says_what_would_go_and_what_blocks_and_changes_nothing(world):
    world.pod("one")
    world.pod("two")
    world.pod("held", labels={"app": "db"})
    world.budget("web", 1, {"app": "web"})
    world.budget("db", 1, {"app": "db"})
    world.run_all()
    world.allows("web", 1)
    world.allows("db", 0)
    before = world.pods()
    foreseen = world.drain("--check", "--diff", even_bare=True)
    assert world.pods() == before
    assert foreseen["changed"] and named(foreseen["evicted"]) == world.taken_away(foreseen) == {"held", "one", "two"}
    why = {one["name"]: one["why"] for one in foreseen["left"]}
    assert why["held"].startswith("held by the budget %s/db (allows 0 disruptions" % world.space)
    assert sorted(why[name].startswith("more pods here are in the budget") for name in ("one", "two")) == [False, True]


def test_without_the_right_to_evict_nothing_is_evicted(world):
    world.pod("one")
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/nodecare-repairer"
    rules = world.api.do("GET", path)["rules"]
    world.api.patch(path, {"rules": [one for one in rules if "pods/eviction" not in one["resources"]]})
    time.sleep(2)  # until the API server acts by it
    try:
        refused = world.drain(even_bare=True)
    finally:
        world.api.patch(path, {"rules": rules})
        time.sleep(2)
    assert refused["failed"] and not refused["changed"]
    assert "nothing was evicted: %s/one cannot be evicted" % world.space in refused["msg"] and "pods/eviction" in refused["msg"]
    assert not world.told_to_end()


def test_no_time_at_all_means_none_without_any_kubelet(world):
    world.pod("one")
    assert named(world.drain(even_bare=True, grace_period=0)["evicted"]) == {"one"}
    assert world.names() == set()


def test_a_node_that_takes_pods_is_not_emptied(world):
    """Neither from the beginning, nor once somebody has uncordoned it."""
    world.pod("one", terminationGracePeriodSeconds=300)
    world.cordon(False)
    refused = world.drain(even_bare=True)
    assert "cordon it first" in refused["msg"] and not refused["changed"]
    world.cordon(True)
    with world.draining(even_bare=True) as run:
        eventually("the eviction", world.told_to_end, every=0.1)
        world.cordon(False)
        stopped = world.result(run)
    assert "somebody has made the node take new pods" in stopped["msg"] and "Evicted until then: %s/one" % world.space in stopped["msg"]


def test_whoever_loses_the_lock_evicts_nothing_more_and_whoever_has_it_keeps_it(world):
    """A Lease that lasts 4 s is renewed all the while, until another run has it."""
    world.pod("one", terminationGracePeriodSeconds=300)
    place, now = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", datetime.now(timezone.utc).isoformat(timespec="microseconds")
    spec = {"holderIdentity": "ours", "leaseDurationSeconds": 4, "acquireTime": now, "renewTime": now}
    world.api.do("POST", place, {"metadata": {"name": "nodecare-repair"}, "spec": spec})
    try:
        with world.draining(even_bare=True, run="ours") as run:
            eventually("the eviction", world.told_to_end, every=0.1)
            renewed = world.api.do("GET", place + "/nodecare-repair")["spec"]["renewTime"]
            eventually("it to be renewed again", lambda: world.api.do("GET", place + "/nodecare-repair")["spec"]["renewTime"] > renewed, 30, 0.2)
            world.api.patch(place + "/nodecare-repair", {"spec": {"holderIdentity": "theirs"}})
            lost = world.result(run)
    finally:
        world.api.do("DELETE", place + "/nodecare-repair")
    assert "nothing more is evicted" in lost["msg"] and "theirs" in lost["msg"], lost["msg"]


def test_an_api_server_that_is_gone_meanwhile_is_waited_for_with_the_test_as_kubelet(world):
    world.pod("one", terminationGracePeriodSeconds=300)
    with world.draining(even_bare=True, timeout=2) as run:
        eventually("the eviction", world.told_to_end, every=0.1)
        world.api.lab.do("freeze", "kube-apiserver-1")
        time.sleep(6)
        world.api.lab.do("thaw", "kube-apiserver-1")
        with Kubelet(world):
            done = world.result(run)
    assert not done["failed"] and "nobody answers: no answer within 2 s" in done["said"], done


@pytest.mark.parametrize(("name", "why"), [("nobody.example", 'nodes "nobody.example" not found'), ("../pods", "must be the name of a Node")])
def test_a_node_that_is_none(world, name, why):
    assert why in world.drain(node=name)["msg"]
