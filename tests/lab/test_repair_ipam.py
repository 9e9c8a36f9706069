"""A migration of addresses that does not end: Calico's own upgrade-ipam on a real API server, and a real node whose calico-node it holds up.

The machine of the first is this one with a /var/lib of its own, so that no kubelet is needed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from labs import ROOT, eventually

BIN = Path(sys.executable).parent
NODE, POD, POD_CIDR = "ipam-1", "calico-node-ipam", "192.168.77.0/24"
# Without an address, upgrade-ipam does not loop but panics.
ADDRESSED = {"projectcalico.org/IPv4Address": "10.0.0.177/24", "projectcalico.org/IPv4IPIPTunnelAddr": "192.168.77.1"}
PATH = "lib/cni/networks/k8s-pod-network"
AWAY = "lib/cni/k8s-pod-network.left-over"
DEFINE = "from lab import network\nfrom lab.calico import calico\nfrom lab.control_plane import ControlPlane\nfrom lab.space import Space\n"
DEFINE += "network.define(ControlPlane(Space(%r)), calico())\nprint(calico().place)"
INFORMATION = "clusterinformations.crd.projectcalico.org"
INIT = {"name": "upgrade-ipam", "image": "calico/cni", "imageID": "", "ready": False, "restartCount": 0}


class Machine:
    """This machine as the Node ipam-1."""

    def __init__(self, lab, place):
        self.lab, self.place = lab, place
        (place / PATH).mkdir(parents=True)
        program = Path(lab.do("exec", "--", "python3", "-c", DEFINE % lab.name, timeout=1800).splitlines()[-1])
        (place / "calico-ipam").symlink_to(program / "calico-cni")
        self.plane = lab.control_plane
        for name in ("nodecare-reader", "nodecare-repairer"):
            lab.kubectl("apply", "-f", ROOT / "docs" / (name + ".yml"))
        objects = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": ADDRESSED}, "spec": {"podCIDR": POD_CIDR, "podCIDRs": [POD_CIDR]}},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": POD, "namespace": "kube-system", "labels": {"k8s-app": "calico-node"}},
                "spec": {
                    "nodeName": NODE,
                    "tolerations": [{"operator": "Exists"}],
                    "initContainers": [{"name": "upgrade-ipam", "image": "calico/cni"}],
                    "containers": [{"name": "calico-node", "image": "calico/node"}],
                },
            },
            {
                "apiVersion": "crd.projectcalico.org/v1",
                "kind": "ClusterInformation",
                "metadata": {"name": "default"},
                "spec": {"datastoreReady": True, "clusterGUID": "x", "calicoVersion": "v3.31.0"},
            },
        ]
        (place / "objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        lab.kubectl("apply", "-f", place / "objects.json")

    def leave_over(self):
        """What another network has kept, and a name that upgrade-ipam cannot read: it begins, and tries again for ever."""
        (self.place / PATH).mkdir(parents=True, exist_ok=True)
        for name, text in (("#old", "x"), ("192.168.77.9", "d" * 64), ("lock", "")):
            (self.place / PATH / name).write_text(text)

    def command(self, *words):
        """Something that runs on the machine."""
        shell = 'mount --make-rprivate /; mount --bind "$0" /var/lib; exec "$@"'
        return self.lab.command("exec", "--", "unshare", "-m", "sh", "-c", shell, self.place / "lib", *words)

    def upgrade(self):
        environment = {"KUBECONFIG": str(self.plane / "admin.conf"), "DATASTORE_TYPE": "kubernetes", "KUBERNETES_NODE_NAME": NODE}
        words = self.command("env", *("%s=%s" % pair for pair in environment.items()), self.place / "calico-ipam", "-upgrade")
        with (self.place / "upgrade.log").open("w") as log:
            return subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, *options, account="nodecare-repairer", playbook=None, **arguments):
        play = [{"hosts": NODE, "gather_facts": False, "tasks": [{"nodecare.kubernetes.unstick_ipam": {"wait": 120, **arguments}, "register": "done"}]}]
        path = self.place / "play.yml"
        path.write_text(json.dumps(play))
        inventory = self.place / "hosts"
        inventory.write_text("%s ansible_connection=local ansible_python_interpreter=%s\n" % (NODE, sys.executable))
        access = {"K8S_AUTH_HOST": "https://10.0.0.1:6443", "K8S_AUTH_SSL_CA_CERT": str(self.plane / "pki" / "ca.crt")}
        self.token = self.lab.kubectl("-n", "kube-system", "create", "token", account)
        environment = {name: value for name, value in self.lab.environment(**access, K8S_AUTH_API_KEY=self.token).items() if name != "K8S_AUTH_KUBECONFIG"}
        words = self.command(BIN / "ansible-playbook", "-i", inventory, playbook or path, *options)
        return subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def play(self, *options, expect=0, **more):
        with self.start(*options, **more) as run:
            said = run.communicate(timeout=300)[0]
        assert (run.returncode == 0) is (expect == 0), said
        assert self.token not in said
        return said

    def init(self, since=None):
        """What a kubelet would say: it is there, and upgrade-ipam runs since so many seconds, or has ended."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - (since or 0)))
        state = {"terminated": {"exitCode": 0, "startedAt": when, "finishedAt": when}} if since is None else {"running": {"startedAt": when}}
        status = {"phase": "Pending", "initContainerStatuses": [{**INIT, "state": state}]}
        self.lab.kubectl("-n", "kube-system", "patch", "pod", POD, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now}
        self.lab.kubectl("patch", "node", NODE, "--subresource=status", "--type=strategic", "--patch", json.dumps({"status": {"conditions": [ready]}}))

    def information(self):
        return json.loads(self.lab.kubectl("get", INFORMATION, "default", "-o", "json"))

    def kept(self, where):
        return {path.name: path.read_text() for path in (self.place / where).iterdir()} if (self.place / where).exists() else None


def changed(said):
    return int(re.search(r"changed=(\d+)", said).group(1))


@pytest.fixture(scope="module")
def machine(api, tmp_path_factory):
    made = Machine(api, tmp_path_factory.mktemp("ipam"))
    yield made
    for kind, name in (("node", NODE), (INFORMATION, "default")):
        api.kubectl("delete", kind, name, "--ignore-not-found")
    api.kubectl("-n", "kube-system", "delete", "pod", POD, "--ignore-not-found", "--force", "--grace-period=0")


def test_upgrade_ipam_in_its_loop(machine):
    machine.leave_over()
    kept = machine.kept(PATH)
    upgrade = machine.upgrade()
    try:
        log = machine.place / "upgrade.log"
        eventually("upgrade-ipam to fail", lambda: log.read_text().count("failed to migrate ipam, retrying") >= 2 or upgrade.poll() is not None, 120)
        assert upgrade.poll() is None and machine.information()["spec"]["datastoreReady"] is False, log.read_text()

        machine.init(since=20)
        said = machine.play()
        assert "left alone: " in said or changed(said) == 0
        assert machine.kept(PATH) == kept and machine.information()["spec"]["datastoreReady"] is False

        machine.init(since=3600)
        version = machine.information()["metadata"]["resourceVersion"]
        foreseen = machine.play("--check", "--diff")
        assert changed(foreseen) == 1 and "+datastoreReady: true" in foreseen and "/var/lib/cni/k8s-pod-network.left-over" in foreseen
        assert machine.kept(PATH) == kept and machine.information()["metadata"]["resourceVersion"] == version

        with machine.start("--diff") as run:
            eventually("upgrade-ipam to end", lambda: upgrade.poll() is not None or run.poll() is not None, 240)
            machine.init()
            said = run.communicate(timeout=240)[0]
        assert run.returncode == 0 and changed(said) == 1 and "waiting for upgrade-ipam to end on %s" % NODE in said, said
        assert upgrade.wait(10) == 0
    finally:
        upgrade.kill()
    assert (machine.kept(PATH), machine.kept(AWAY)) == (None, kept)
    free = machine.information()
    assert free["spec"]["datastoreReady"] is True
    # In the middle of a try upgrade-ipam makes the directory anew, finds nothing in it, and frees the datastore itself.
    assert ("nodecare/unlocked" in free["metadata"]["annotations"]) is ("+datastoreReady: true" in said), said
    assert changed(machine.play()) == 0

    assert changed(machine.play(playbook=ROOT / "playbooks" / "undo.yml")) == 1
    assert (machine.kept(PATH), machine.kept(AWAY)) == (kept, None)


def test_a_lock_of_somebody_else_stays(machine):
    """It is an administrator's, who has his reasons; with consent it is freed, and the printed command takes that back."""
    machine.init()
    lock = json.dumps({"spec": {"datastoreReady": False}})
    machine.lab.kubectl("patch", INFORMATION, "default", "--type=merge", "--patch", lock)
    said = machine.play(expect=2)
    assert "kubectl-patch has locked Calico's datastore" in said and "Nothing was changed" in said
    assert machine.kept(AWAY) is None and machine.information()["spec"]["datastoreReady"] is False
    said = machine.play("-v", even_if_locked_by_hand=True)
    assert machine.information()["spec"]["datastoreReady"] is True
    undo = json.loads(re.search(r'"undo": (\[.*?\])', said, re.S).group(1))[0]
    machine.lab.kubectl(*re.sub("'", "", undo).split(" ", 1)[1].split(" ", 6)[:5], "-p", undo.split("-p ")[1].strip("'"))
    assert machine.information()["spec"]["datastoreReady"] is False and "nodecare/unlocked" not in machine.information()["metadata"].get("annotations", {})


def test_without_the_right_to_free_it(machine):
    said = machine.play(expect=2, account="nodecare-reader", even_if_locked_by_hand=True)
    assert 'cannot patch resource "clusterinformations"' in said


@pytest.mark.parametrize("how", ["refuse", "drop"])
def test_an_api_server_out_of_reach(machine, how):
    machine.leave_over()
    kept = machine.kept(PATH)
    with machine.start() as run:
        machine.lab.do("api", how, "--for", "users")
        try:
            said = run.communicate(timeout=300)[0]
        finally:
            machine.lab.do("api", "heal")
    assert run.returncode != 0 and "Nothing was changed" in said, said
    assert machine.kept(PATH) == kept
