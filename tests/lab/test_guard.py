"""The guard of repairs on a real API server and over a real sshd: a small repair that it guards, four nodes, and a fault at every step.

The nodes are Node objects, of which the test itself says that their kubelets live, and SSH targets of the same names. The API
server is reached through a relay, which a fault cuts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml
from labs import ROOT, eventually, processes_in

from lab.fleet import Face, Fleet, Target, missing

NODES = ("s1", "s2", "s3", "s4")
BEAT = 0.5  # seconds between two heartbeats
LEASE = ("-n", "kube-system", "lease", "nodecare-repair")
MARK = "nodecare/repair"

# Does something when a task begins.
FAULT = """
import os
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = "name: fault\\ntype: aggregate\\nshort_description: does harm\\ndescription: [does harm]\\n"

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "aggregate", "fault", True

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().endswith(os.environ["FAULT_AT"]) and not os.path.exists(os.environ["FAULT_DONE"]):
            open(os.environ["FAULT_DONE"], "w").close()
            assert os.system(os.environ["FAULT_DO"]) == 0
"""
REPAIR = """
- hosts: all
  serial: "{{ nodecare_serial | default(1) }}"
  max_fail_percentage: 0
  gather_facts: false
  tasks:
    - name: Repair this node
      ignore_unreachable: true
      block:
        - name: Look before anything is touched
          ansible.builtin.import_role: {name: nodecare.kubernetes.guard, tasks_from: enter}
          vars: {guard_repair: touch, guard_checks: [links.loopback], guard_cordon: "{{ ill }}", guard_disruptive: "{{ ill }}"}
        - name: Refuse where the test says so
          ansible.builtin.assert: {that: "inventory_hostname not in (refusing | default([]))"}
        - name: Touch it
          ansible.builtin.command: {cmd: "{{ 'touch /run/touched' if ill else 'true' }}"}
          register: touched
        - name: See that it has answered
          ansible.builtin.assert: {that: touched.rc is defined, fail_msg: the connection was lost}
        - name: Give the node back
          ansible.builtin.import_role: {name: nodecare.kubernetes.guard, tasks_from: leave}
          vars: {guard_touched: "{{ ill }}"}
      rescue:
        - name: Remember
          ansible.builtin.import_role: {name: nodecare.kubernetes.guard, tasks_from: record}
          vars: {guard_touched: "{{ touched is defined }}"}
    - name: Stop
      ansible.builtin.import_role: {name: nodecare.kubernetes.guard, tasks_from: stop}
"""
READ, WHOSE, LOCK = "Read the node", "Read which Node of the cluster this machine is", "Be the only run that repairs nodes of this cluster"
GATES, CORDON, ACT = "Ask whether the others can do without it now, and whether nobody else is at work", "Let no new pods come to it", "Touch it"
PROVE, UNDO = "Wait until the node has proven to the cluster that it is well", "Make the node what it was, where a repair had cordoned it"
RENEW, FREE = "Renew the lock, which no other run may have taken meanwhile", "Give the lock back"


class Relay:
    """The way to the lab's API server, from outside of the lab's network."""

    def __init__(self, lab, cut):
        self.network, self.cut = "/proc/%d/ns/net" % min(processes_in(lab.network())), cut
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with open(self.network) as network:
            os.setns(network.fileno(), os.CLONE_NEWNET)  # of this thread only
        with contextlib.suppress(OSError):
            while True:
                near, _where = self.listener.accept()
                if self.cut.exists():
                    near.close()
                    continue
                far = socket.create_connection(("10.0.0.1", 6443), timeout=10)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()

    def close(self):
        self.listener.close()


def _pump(near, far):
    with contextlib.suppress(OSError):
        while data := near.recv(65536):
            far.sendall(data)
    for one in (near, far):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class Cluster:
    """Four nodes in the API server and behind sshd."""

    def __init__(self, lab, fleet, place):
        self.lab, self.fleet, self.place = lab, fleet, place
        self.silent = set()  # whose kubelet is dead
        self.cut = place / "api-is-cut"
        self.relay, self.ours = Relay(lab, self.cut), Relay(lab, place / "never")
        self.kubeconfig = self._kubeconfig(self.relay.port, place / "kubeconfig")
        self._config = self._kubeconfig(self.ours.port, place / "own")
        self.commands = {node: self.command(node).read_text() for node in NODES}
        (place / "callbacks").mkdir()
        (place / "callbacks" / "fault.py").write_text(FAULT)
        (place / "repair.yml").write_text(REPAIR)
        lab.ask("kubectl", "delete", "nodes", "--all")
        self.client = self._client()
        for node in NODES:
            self.client.create_node({"metadata": {"name": node}})
        self.alive = threading.Event()
        self.kubelets = threading.Thread(target=self._live)
        self.kubelets.start()

    def close(self):
        self.alive.set()
        self.kubelets.join()
        self.lab.ask("kubectl", "delete", "nodes", "--all")
        self.relay.close()
        self.ours.close()

    def _kubeconfig(self, port, path):
        config = yaml.safe_load(Path(self.lab.do("kubeconfig")).read_text())
        config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:%d" % port
        path.write_text(yaml.safe_dump(config))
        return path

    def _client(self):
        kubernetes = pytest.importorskip("kubernetes")
        api = kubernetes.config.new_client_from_config(str(self._config))
        self.leases = kubernetes.client.CoordinationV1Api(api)
        return kubernetes.client.CoreV1Api(api)

    def _live(self):
        """What kubelets do: Ready now and then, and a heartbeat."""
        while not self.alive.wait(BEAT):
            for node in [one for one in NODES if one not in self.silent]:
                with contextlib.suppress(Exception):
                    self._beat(node)

    def _beat(self, node):
        now = datetime.now(timezone.utc).isoformat()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now}
        self.client.patch_node_status(node, {"status": {"conditions": [ready]}})

    # -- a run -------------------------------------------------------------------------------------------------------------

    def command(self, node):
        return self.fleet.place / (node + ".sh")

    def start(self, *words, at="never", do="true", **variables):
        done = self.place / ("fault-%d" % time.monotonic_ns())
        more = {"ANSIBLE_CALLBACK_PLUGINS": str(self.place / "callbacks"), "ANSIBLE_CALLBACKS_ENABLED": "fault", "ANSIBLE_TIMEOUT": "5"}
        more.update(FAULT_AT=at, FAULT_DO=do, FAULT_DONE=str(done), K8S_AUTH_KUBECONFIG=str(self.kubeconfig))
        given = {"ill": True, "nodecare_wait": 30, "nodecare_skip_gates": ["api_server"], **variables}
        argv = [Path(sys.executable).parent / "ansible-playbook", self.place / "repair.yml", "-i", self.fleet.inventory, *words, "-e", json.dumps(given)]
        return subprocess.Popen(
            argv, cwd=ROOT, env=self.fleet.environment(**more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def play(self, *words, well=True, **more):
        with self.start(*words, **more) as run:
            said = run.communicate(timeout=600)[0]
        assert (run.returncode == 0) is well, said
        return said

    def heal(self):
        self.cut.unlink(missing_ok=True)
        self.silent.clear()
        for node in NODES:
            self.command(node).write_text(self.commands[node])

    # -- what is -----------------------------------------------------------------------------------------------------------

    def touched(self):
        return [node for node in NODES if self.on(node, "test -e /run/touched && echo yes || true")]

    def on(self, node, command):
        done = subprocess.run(["sh", "-c", self.commands[node]], env={**os.environ, "SSH_ORIGINAL_COMMAND": command}, capture_output=True, check=True)
        return done.stdout.decode()

    def cordoned(self):
        return [one.metadata.name for one in self.client.list_node().items if one.spec.unschedulable]

    def marked(self):
        return [one.metadata.name for one in self.client.list_node().items if MARK in (one.metadata.annotations or {})]

    def locked(self):
        return any(one.metadata.name == "nodecare-repair" for one in self.leases.list_namespaced_lease("kube-system").items)

    def clean(self):
        """As if no run had ever been."""
        self.heal()
        for node in NODES:
            self.client.patch_node(node, {"metadata": {"annotations": {MARK: None, KURED: None}}, "spec": {"unschedulable": None}})
            self.on(node, "rm -f /run/touched")
        self.lab.ask("kubectl", "delete", "--ignore-not-found", *LEASE)
        eventually("Ready nodes", lambda: all(is_ready(one) for one in self.client.list_node().items), every=0.3)


def is_ready(node):
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or [])


@pytest.fixture(scope="module")
def made(api, tmp_path_factory):
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    with Fleet({node: Target(Face({})) for node in NODES}) as fleet:
        cluster = Cluster(api, fleet, tmp_path_factory.mktemp("guard"))
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture
def cluster(made):
    made.clean()
    return made


# -- when all is well ------------------------------------------------------------------------------------------------------


def test_one_node_after_the_other(cluster):
    said = cluster.play()
    assert (cluster.touched(), cluster.cordoned(), cluster.marked(), cluster.locked()) == (list(NODES), [], [], False)
    order = re.findall(r"^(?:ok|changed|failed|fatal|skipping): \[(s\d)", said, re.M)
    assert [node for node, after in zip(order, [*order[1:], ""]) if node != after] == list(NODES)


def test_check_mode_does_nothing(cluster):
    said = cluster.play("--check", "--diff", nodecare_serial=2)
    assert (cluster.touched(), cluster.cordoned(), cluster.marked(), cluster.locked()) == ([], [], [], False)
    assert "+" in said and "unschedulable" in said


def test_a_cordon_of_somebody_else_stays(cluster):
    cluster.client.patch_node("s2", {"spec": {"unschedulable": True}})
    cluster.play("--limit", "s1,s2", nodecare_serial=2)
    assert (cluster.touched(), cluster.cordoned(), cluster.marked()) == (["s1", "s2"], ["s2"], [])


# -- when it is not --------------------------------------------------------------------------------------------------------

KURED = "weave.works/kured-reboot-in-progress"
KUBECTL = "%s -m lab --id %s kubectl " % (sys.executable, "LAB")
STEAL = KUBECTL + 'patch -n kube-system lease nodecare-repair --type=merge -p \'{"spec": {"holderIdentity": "somebody"}}\' >/dev/null'
MARK_S1 = KUBECTL + "annotate node s1 %s=2026-11-18T20:00:00Z >/dev/null" % KURED
SSH, API = "echo 'exit 255' >COMMAND", "touch CUT"

# what happens when which task begins: (task, command, variables, whether s1 is touched, whether it is left marked)
FAULTS = {
    "SSH is cut at the first look": (READ, SSH, {}, False, False),
    "SSH is cut while the machine is asked who it is": (WHOSE, SSH, {}, False, False),
    "SSH is cut before it is touched": (ACT, SSH, {}, False, True),
    "the API server is gone before the lock is taken": (LOCK, API, {}, False, False),
    "the API server is gone before the gates are asked": (GATES, API, {}, False, False),
    "the API server is gone before it is cordoned": (CORDON, API, {}, False, False),
    "the API server is gone before it is touched": (ACT, API, {"nodecare_wait": 4}, True, True),
    "the API server is gone before the proof": (PROVE, API, {"nodecare_wait": 4}, True, True),
    "the API server is gone before the cordon is undone": (UNDO, API, {}, True, True),
    "the API server is gone before the lock is given back": (FREE, API, {}, True, False),
    "the lock is stolen before it is touched": (ACT, STEAL, {}, True, False),
    "the lock is stolen before the cordon": (CORDON, STEAL, {}, False, False),
    "a second operator has marked it before": (READ, MARK_S1, {}, False, False),
    "a second operator marks it before it is touched": (ACT, MARK_S1, {}, True, True),
    "the repair refuses": ("never", "true", {"refusing": ["s1"]}, False, False),
    "its kubelet dies": (ACT, "touch DEAD", {"nodecare_wait": 4}, True, True),
}
ALONE = ("SSH is cut before it is touched", "the API server is gone before the proof", "its kubelet dies")
RUNS = [(fault, 2) for fault in FAULTS] + [(fault, 1) for fault in ALONE]


@pytest.mark.parametrize(("fault", "serial"), [pytest.param(*run, id="%s, %d at a time" % run) for run in RUNS])
def test_no_further_node_is_touched(fault, serial, cluster):
    task, command, variables, touched, marked = FAULTS[fault]
    dead = cluster.place / "dead"
    dead.unlink(missing_ok=True)
    with dying(cluster, dead):
        for word, meant in (("LAB", cluster.lab.name), ("COMMAND", cluster.command("s1")), ("CUT", cluster.cut), ("DEAD", dead)):
            command = command.replace(word, str(meant))
        said = cluster.play(well=False, at=task, do=command, nodecare_serial=serial, **variables)
    later = NODES[serial:]
    assert not set(cluster.touched()) & set(later), said
    assert not re.search(r"\[(%s)" % "|".join(later), said), said
    assert ("s1" in cluster.touched(), "s1" in cluster.marked()) == (touched, marked), said
    assert set(cluster.cordoned()) <= set(cluster.marked()), said
    assert "s1: " in said and "No further node is touched" in said, said
    for node in cluster.marked():
        assert "kubectl uncordon %s && kubectl annotate node %s %s-" % (node, node, MARK) in said, said
    if serial == 2:
        finish(cluster)


@contextlib.contextmanager
def dying(cluster, sign):
    """The kubelet of s1 falls silent once there is that file."""
    over = threading.Event()

    def watch():
        while not over.wait(0.05):
            if sign.exists():
                cluster.silent.add("s1")

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def finish(cluster):
    """What the words of the first run tell to do, and then the second run, on the nodes that the first one had to do with."""
    cluster.heal()
    cluster.client.patch_node("s1", {"metadata": {"annotations": {KURED: None}}})
    cluster.lab.ask("kubectl", "delete", "--ignore-not-found", *LEASE)
    cluster.play("--limit", "s1,s2", nodecare_serial=2)
    assert (cluster.touched(), cluster.cordoned(), cluster.marked(), cluster.locked()) == (["s1", "s2"], [], [], False)


def test_a_run_that_only_finishes_an_earlier_one_says_the_way_out_as_well(cluster):
    """Nothing is ill any more, but the node does not prove it; and once it has, it is no longer said to be cordoned, whatever comes after that."""
    cluster.silent.add("s1")
    for ill in (True, False):
        said = cluster.play("--limit", "s1", well=False, nodecare_wait=4, ill=ill)
        assert "kubectl uncordon s1 && kubectl annotate node s1 %s-" % MARK in said, said
        assert (cluster.cordoned(), cluster.marked()) == (["s1"], ["s1"]), said
    cluster.heal()
    said = cluster.play("--limit", "s1", well=False, at=RENEW, do=STEAL.replace("LAB", cluster.lab.name), ill=False)
    assert "lock" in said and "kubectl uncordon s1" not in said and (cluster.cordoned(), cluster.marked()) == ([], []), said


def test_a_controller_that_is_killed(cluster):
    with cluster.start(at=ACT, do="kill -KILL $PPID") as run:
        run.wait(300)
    assert run.returncode == -signal.SIGKILL
    assert (cluster.touched(), cluster.cordoned(), cluster.marked()) == ([], ["s1"], ["s1"])
    said = cluster.play(well=False)
    assert "another run holds the cluster's lock" in said and "kubectl -n kube-system delete lease nodecare-repair" in said
    assert cluster.touched() == []
    cluster.lab.kubectl("delete", *LEASE)
    said = cluster.play("--limit", "s2", well=False)
    assert "a repair is not finished on s1" in said and "--limit s1" in said
    finish(cluster)


def test_two_runs_at_once(cluster):
    """The second one leaves, or waits where it is told to; never both are at work."""
    hold = "until test -e %s; do sleep 0.1; done" % (cluster.place / "go")
    with cluster.start("--limit", "s1", at=ACT, do=hold) as first:
        eventually("the first to be at work", lambda: cluster.marked() == ["s1"], 300, 0.3)
        said = cluster.play("--limit", "s2", well=False)
        assert "another run holds the cluster's lock" in said and cluster.touched() == []
        with cluster.start("--limit", "s2", nodecare_lock_wait=300) as second:
            for line in second.stdout:
                if "waiting for another run holds the cluster's lock" in line:
                    (cluster.place / "go").touch()
            assert first.communicate(timeout=300)
        assert (first.returncode, second.wait(300)) == (0, 0)
    assert cluster.touched() == ["s1", "s2"]
