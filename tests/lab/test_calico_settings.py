"""Calico's settings changed on a real API server: upstream's own manifest, the operator's real definitions, and roll-outs by the real controller.

The Nodes have no machines. What their kubelets and calico-nodes would say comes from bare_kubelets.py; what a test orders them to say is
what calico-node would find on the node whose links are in the facts.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._tuning._owners import DaemonSet
from labs import ROOT, eventually

NODES = ("w1", "w2", "w3")
ROOM = {"pods": "20", "cpu": "4", "memory": "8Gi"}
DAEMONSET = ("-n", "kube-system", "get", "daemonset", "calico-node", "-o", "json")
MANIFEST = """
from lab import network
from lab.calico import calico
from lab.control_plane import ControlPlane
from lab.space import Space
network.apply(ControlPlane(Space(%r)), calico())
"""
WRONG = "192.168.56.13/24"
QUICK = {"within": 120, "every": 0.5}
SCRIPT = ROOT / "tests" / "lab" / "bare_kubelets.py"


def own(node):
    return "10.0.0.%d" % (10 + NODES.index(node) + 1)


def links(node):
    """w3 has a second NIC, listed last, which first-found takes."""
    held = [("lo", "127.0.0.1", 8), ("eth0", own(node), 24), *([("eth1", "192.168.56.13", 24)] if node == "w3" else [])]
    return [
        {"index": at, "name": name, "up": True, "nic": name != "lo", "addresses": [{"ip": ip, "prefix": prefix}]}
        for at, (name, ip, prefix) in enumerate(held, 1)
    ]


def facts(node):
    present = {"links": links(node), "left_out": {"count": 0, "kinds": {}, "examples": []}}
    routes = {"main": [{"to": "default", "family": 4, "links": ["eth0"], "via": "10.0.0.1", "near": False, "source": ""}], "left_out": {}}
    parts = {one: {"connect": 0.001, "tls": 0.002, "answer": 4.0 if node == "never" else 0.9} for one in ("p50", "p90")}
    steps = {step: {part: parts[part][step] for part in parts} for step in ("connect", "tls", "answer")}
    server = {"target": "10.0.0.1:6443", "state": "answered", **steps}
    return {
        "schema": "nodecare.node/1",
        "taken": {"hostname": node, "euid": 0},
        "problems": [],
        "links": {"present": present, "routes": routes, "ip_rules": []},
        "path": {"api": [server], "etcd": []},
    }


class Settings:
    """The lab with its Nodes, and the actions as their user has them."""

    def __init__(self, lab, place):
        self.lab, self.place = lab, place
        self.orders = place / "orders.json"
        self.hosts = {node: facts(node) for node in NODES}

    def obey(self, **orders):
        """What the nodes are to say from now on."""
        well = {node: {"registers": {"first-found": own(node) + "/24", "kubernetes-internal-ip": own(node) + "/24"}} for node in NODES}
        well["w3"]["registers"]["first-found"] = WRONG
        draft = self.orders.with_suffix(".draft")
        draft.write_text(json.dumps({node: {**order, **orders.get(node, {})} for node, order in well.items()}))
        draft.rename(self.orders)  # at once, since it is read all the while

    def ask(self, action, *words, hosts=NODES, **options):
        """(what the action returned, all that was printed)"""
        inventory = {"all": {"hosts": {node: {"nodecare_check": {"facts": self.hosts[node]}} for node in hosts}}}
        inventory["all"]["vars"] = {"nodecare_cluster_check": {"cluster": self.cluster()}}
        (self.place / "inventory.yml").write_text(yaml.safe_dump(inventory))
        given = json.dumps({**QUICK, **options})
        return self._ansible("-i", str(self.place / "inventory.yml"), "all", "-m", "nodecare.kubernetes." + action, "-a", given, *words)

    def cluster(self):
        return self._ansible("localhost", "-m", "nodecare.kubernetes.cluster_check")[0]["cluster"]

    def _ansible(self, *words):
        environment = self.lab.environment(ANSIBLE_LOAD_CALLBACK_PLUGINS="1", ANSIBLE_STDOUT_CALLBACK="ansible.builtin.oneline")
        command = self.lab.command("exec", "--", "ansible", *words)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=400)
        lines = [line for line in done.stdout.splitlines() if "=> {" in line]
        assert len(lines) == 1, done.stdout + done.stderr
        head, _sign, said = lines[0].partition("=>")
        return {**json.loads(said), "failed": "FAILED" in head}, done.stdout

    def daemonset(self):
        return json.loads(self.lab.kubectl(*DAEMONSET))

    def template(self):
        return self.daemonset()["spec"]["template"]

    def env(self):
        (container,) = (one for one in self.template()["spec"]["containers"] if one["name"] == "calico-node")
        return {one["name"]: one.get("value") for one in container["env"]}

    def patch(self, what, body, kind="merge"):
        self.lab.kubectl(*what, "patch", *([] if what else []), "--type", kind, "-p", json.dumps(body))

    def registered(self):
        found = json.loads(self.lab.kubectl("get", "nodes", "-o", "json"))["items"]
        return {one["metadata"]["name"]: one["metadata"].get("annotations", {}).get("projectcalico.org/IPv4Address") for one in found}

    def pods(self):
        """{node: uid} of the calico-node pods."""
        found = json.loads(self.lab.kubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=calico-node", "-o", "json"))["items"]
        return {one["spec"].get("nodeName"): one["metadata"]["uid"] for one in found if not one["metadata"].get("deletionTimestamp")}

    def rolled_out(self):
        status = self.daemonset()["status"]
        return status.get("updatedNumberScheduled") == status.get("numberReady") == len(NODES) and status["observedGeneration"]


@pytest.fixture(scope="module")
def made(api, tmp_path_factory):
    """Three Nodes with Calico by upstream's manifest."""
    place = tmp_path_factory.mktemp("settings")
    settings = Settings(api, place)
    settings.obey()
    for node in NODES:
        addresses = [{"type": "InternalIP", "address": own(node)}]
        thing = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {"kubernetes.io/os": "linux"}}}
        (place / "node.json").write_text(json.dumps(thing))
        api.kubectl("apply", "-f", place / "node.json")
        status = json.dumps({"status": {"capacity": ROOM, "allocatable": ROOM, "addresses": addresses}})
        api.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", status)
    api.do("exec", "--", "python3", "-c", MANIFEST % api.name)
    with api.start("exec", "--", sys.executable, str(SCRIPT), api.do("kubeconfig"), str(settings.orders)) as kubelets:
        try:
            eventually("calico-node on all Nodes", settings.rolled_out, 300)
            yield settings
        finally:
            kubelets.terminate()
            api.do("exec", "--", "python3", "-c", "pass")
            for node in NODES:
                api.kubectl("delete", "node", node)
            api.kubectl("-n", "kube-system", "delete", "daemonset", "calico-node", "kube-proxy")


@pytest.fixture
def settings(made):
    """As upstream's manifest has it, whatever a test has done."""
    before = made.daemonset()
    made.obey()
    yield made
    made.obey()
    after = made.daemonset()
    spec = {"spec": before["spec"], "metadata": {"annotations": {"nodecare/before-autodetection": None, "nodecare/before-probes": None}}}
    if after["spec"] != before["spec"]:
        made.lab.kubectl("-n", "kube-system", "patch", "daemonset", "calico-node", "--type=merge", "-p", json.dumps(spec))
    time.sleep(0.5)
    eventually("the old setting to be back", made.rolled_out, 300)


def test_a_wrong_nic_is_healed_and_taken_back_to_the_same_spec(settings):
    before, pods = settings.template(), settings.pods()
    assert settings.registered()["w3"] == WRONG
    predicted, _said = settings.ask("calico_autodetection", "--check", "--diff", allow_disruption=True)
    assert predicted["changed"] and settings.template() == before and settings.pods() == pods
    done, said = settings.ask("calico_autodetection", "--diff", allow_disruption=True)
    assert done["changed"] and done["methods"] == {"IPv4": "kubernetes-internal-ip"}
    assert {row["node"]: (row["registered"], row["now"], row["then"]) for row in done["table"]}["w3"] == (WRONG, WRONG, own("w3") + "/24")
    assert set(done["nodes"]) == set(NODES) and not set(settings.pods().values()) & set(pods.values())
    assert settings.registered() == {node: own(node) + "/24" for node in NODES}
    assert "To take it back: kubectl" in said
    again, _said = settings.ask("calico_autodetection")
    assert not again["changed"]

    back, _said = settings.ask("calico_autodetection", state="as_before")
    assert back["changed"] and settings.template() == before and settings.registered()["w3"] == WRONG
    assert "nodecare/before-autodetection" not in settings.daemonset()["metadata"].get("annotations", {})
    assert not settings.ask("calico_autodetection", state="as_before")[0]["changed"]


def test_the_printed_command_takes_it_back(settings):
    before = settings.template()
    done, _said = settings.ask("calico_autodetection", allow_disruption=True)
    words = shlex.split(done["undo"])
    assert words[0] == "kubectl" and settings.template() != before
    settings.lab.kubectl(*words[1:])
    assert settings.template() == before and "nodecare/before-autodetection" not in settings.daemonset()["metadata"].get("annotations", {})


def test_on_delete_is_done_one_at_a_time(settings):
    settings.lab.kubectl("-n", "kube-system", "patch", "daemonset", "calico-node", "-p", '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}')
    done, said = settings.ask("calico_autodetection", allow_disruption=True)
    assert set(done["nodes"]) == set(NODES), done
    assert re.findall(r"^(\w+): calico-node runs as it was told", said, re.M)[0] == "w3", "the node that needs it most comes first"
    assert settings.registered()["w3"] == own("w3") + "/24"


def test_the_old_setting_comes_back_where_a_node_gets_worse(settings):
    before = settings.template()
    settings.obey(w1={"sick": "kubernetes-internal-ip"})
    done, _said = settings.ask("calico_autodetection", allow_disruption=True)
    assert done["failed"] and "w1 got worse with it" in done["msg"] and "The old setting is back" in done["msg"], done["msg"]
    assert settings.template() == before
    eventually("calico-node on all Nodes", settings.rolled_out)


REFUSED = [
    pytest.param({"allow_disruption": True, "hosts": ("w1", "w2")}, "w3 were not read in this play", id="a node was not read"),
    pytest.param({"method": "interface=eth9"}, "w1 would get nothing: it finds no address there", id="no address"),
    pytest.param({"method": "bogus"}, "Invalid IP autodetection method: bogus", id="no method"),
    pytest.param({"method": "first-found"}, "w3 would get 192.168.56.13/24 on eth1: that is not its own", id="not its own"),
    pytest.param({}, "w3 would get another address while calico-node is ready there", id="without consent"),
    pytest.param({"policy": {"networks": {"calico": ["10.9.0.0/16"]}}}, "no method is right for all nodes", id="nothing fits"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_it_refuses_before_anything_is_changed(settings, options, words):
    before = settings.daemonset()["metadata"]["generation"]
    done, _said = settings.ask("calico_autodetection", **options)
    assert done["failed"] and words in done["msg"] and not done["changed"], done["msg"]
    assert settings.daemonset()["metadata"]["generation"] == before


# -- what the API server itself says ----------------------------------------------------------------------------------------

POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "not-on-fridays"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["daemonsets"]}]},
        "validations": [{"expression": "false", "message": "not on Fridays"}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "not-on-fridays"},
    "spec": {"policyName": "not-on-fridays", "validationActions": ["Deny"]},
}


def test_an_admission_policy_refuses_it_at_the_dry_run(settings):
    before = settings.daemonset()["metadata"]["generation"]
    for number, thing in enumerate((POLICY, BINDING)):
        file = settings.place / ("policy%d.json" % number)
        file.write_text(json.dumps(thing))
        settings.lab.kubectl("apply", "-f", file)
    try:
        time.sleep(3)  # until the API server goes by it
        done, _said = settings.ask("calico_autodetection", allow_disruption=True)
        assert done["failed"] and "not on Fridays" in done["msg"] and "Nothing was changed" in done["msg"], done["msg"]
        assert settings.daemonset()["metadata"]["generation"] == before
    finally:
        settings.lab.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "not-on-fridays")
        time.sleep(3)


def test_the_repairers_rights_are_enough_and_less_is_told(settings):
    lab = settings.lab
    lab.kubectl("apply", "-f", ROOT / "docs" / "nodecare-reader.yml", "-f", ROOT / "docs" / "nodecare-repairer.yml")
    try:
        as_whom = {"impersonate_user": "system:serviceaccount:kube-system:nodecare-repairer"}
        done, _said = settings.ask("calico_autodetection", allow_disruption=True, **as_whom)
        assert done["changed"] and set(done["nodes"]) == set(NODES), done
        assert settings.ask("calico_autodetection", state="as_before", **as_whom)[0]["changed"]
        done, _said = settings.ask("calico_autodetection", allow_disruption=True, impersonate_user="system:serviceaccount:kube-system:nodecare-reader")
        assert done["failed"] and "docs/nodecare-repairer.yml" in done["msg"] and not done["changed"], done["msg"]
    finally:
        lab.kubectl("delete", "-f", ROOT / "docs" / "nodecare-repairer.yml")
        lab.kubectl("delete", "-f", ROOT / "docs" / "nodecare-reader.yml")


def test_somebody_else_writes_at_the_same_time(settings):
    """The very patch that is sent, with a version that is no longer the newest."""
    thing = settings.daemonset()
    settings.lab.kubectl("-n", "kube-system", "annotate", "--overwrite", "daemonset", "calico-node", "somebody=else-%s" % time.time())
    body = {"metadata": {"resourceVersion": thing["metadata"]["resourceVersion"]}, **DaemonSet("kube-system", "calico-node").patch(thing, {"env": {}})}
    code, said = settings.lab.ask("kubectl", "-n", "kube-system", "patch", "daemonset", "calico-node", "-p", json.dumps(body))
    assert code and "the object has been modified" in said


# -- probes and a restart ----------------------------------------------------------------------------------------------------


def probe(settings):
    (container,) = (one for one in settings.template()["spec"]["containers"] if one["name"] == "calico-node")
    return container["livenessProbe"]


def test_probes_are_set_and_taken_back(settings):
    before = settings.template()
    done, _said = settings.ask("calico_probes", liveness={"failures": 12, "delay": 20})
    assert done["changed"] and set(done["nodes"]) == set(NODES), done["msg"]
    assert (probe(settings)["failureThreshold"], probe(settings)["initialDelaySeconds"], probe(settings)["periodSeconds"]) == (12, 20, 10)
    assert not settings.ask("calico_probes", liveness={"failures": 12})[0]["changed"]
    settings.ask("calico_probes", state="as_before")
    assert settings.template() == before


def test_calico_node_is_started_anew_on_one_node(settings):
    pods = settings.pods()
    predicted, _said = settings.ask("calico_restart", "--check", "--limit", "w2", node="w2")
    assert predicted["changed"] and settings.pods() == pods
    done, _said = settings.ask("calico_restart", "--limit", "w2", node="w2")
    assert done["new_pod"] != done["pod"] and done["was_ready"]
    assert {node for node, uid in settings.pods().items() if uid != pods[node]} == {"w2"}
    settings.obey(w2={"sick": "first-found"})
    done, _said = settings.ask("calico_restart", "--limit", "w2", node="w2", within=5)
    assert done["failed"] and "calico-node on w2 is not ready" in done["msg"] and "it ended with exit code 1" in done["msg"], done["msg"]
    done, _said = settings.ask("calico_restart", "--limit", "w2", node="nowhere")
    assert done["failed"] and "no calico-node pod is on nowhere" in done["msg"]
    settings.obey()
    settings.ask("calico_restart", "--limit", "w2", node="w2")


# -- the operator's definitions, without the operator ------------------------------------------------------------------------

METHOD = ("get", "installation", "default", "-o", "jsonpath={.spec.calicoNetwork.nodeAddressAutodetectionV4}")


@pytest.fixture
def operated(settings):
    settings.lab.do("operator-crds")
    yield settings
    settings.lab.kubectl("delete", "installation", "default")


def installation(settings):
    return json.loads(settings.lab.kubectl("get", "installation", "default", "-o", "json"))


def test_the_installation_gets_one_method_only(operated):
    """Nobody makes the DaemonSet of it here: the test does, as the operator would."""
    before = installation(operated)["spec"]
    predicted, _said = operated.ask("calico_autodetection", "--check", allow_disruption=True)
    assert predicted["changed"] and installation(operated)["spec"] == before
    command = {"env": [{"name": "IP_AUTODETECTION_METHOD", "value": "kubernetes-internal-ip"}], "name": "calico-node"}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [command]}}}})
    with ThreadPoolExecutor(1) as operator:
        done = operator.submit(operated.ask, "calico_autodetection", allow_disruption=True, within=60)
        eventually("the Installation", lambda: json.loads(operated.lab.kubectl(*METHOD)) == {"kubernetes": "NodeInternalIP"}, 90, every=0.5)
        operated.lab.kubectl("-n", "kube-system", "patch", "daemonset", "calico-node", "-p", patch)
        done, _said = done.result()
    assert set(done["nodes"]) == set(NODES), done["msg"]
    words = shlex.split(done["undo"])
    operated.lab.kubectl(*words[1:])
    assert installation(operated)["spec"] == before


def test_an_operator_that_is_away_leaves_nothing_behind(operated):
    before = installation(operated)
    done, _said = operated.ask("calico_autodetection", allow_disruption=True, within=3)
    assert done["failed"] and "does the operator run?" in done["msg"], done["msg"]
    after = installation(operated)
    assert after["spec"] == before["spec"] and not after["metadata"].get("annotations")


def test_an_operator_of_this_version_lets_nobody_change_a_probe(operated):
    before = installation(operated)
    done, _said = operated.ask("calico_probes", liveness={"failures": 12})
    assert done["failed"] and "Installation default does not take it" in done["msg"] and "Nothing was changed" in done["msg"], done["msg"]
    assert installation(operated) == before
