"""The lock of a cluster, and the mark and the cordon of a Node, on a real API server: real runs side by side, killed, denied, and beside others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from labs import ROOT, eventually

PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
DOCS = ROOT / "docs"
SERVER = "https://10.0.0.1:6443"
LEASE = ("-n", "kube-system", "lease", "nodecare-repair")
NODE = "lock-1"
NOISE = ("resourceVersion", "managedFields")  # what the API server changes by itself with each write
SILENT = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")  # taints of a Node that has no kubelet, some time or other


class Runs:
    """Plays on the controller, in the lab's network."""

    def __init__(self, lab, place):
        self.lab, self.place = lab, place

    def start(self, *tasks, check=False, verbose=False, **variables):
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables, "tasks": list(tasks)}]
        path = self.place / ("play-%d.yml" % len(list(self.place.iterdir())))
        path.write_text(yaml.safe_dump(play))
        options = [*(["--check", "--diff"] if check else []), *(["-vvv"] if verbose else [])]
        words = self.lab.command("exec", "--", PLAYBOOK, "-i", "localhost,", path, *options)
        environment = self.lab.environment(ANSIBLE_DEPRECATION_WARNINGS="0")
        return subprocess.Popen(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *tasks, timeout=600, **how):
        """(exit code, what was said)"""
        with self.start(*tasks, **how) as process:
            try:
                said = process.communicate(timeout=timeout)[0]
            finally:
                process.kill()
        return process.returncode, said

    def do(self, *tasks, **how):
        code, said = self.run(*tasks, **how)
        assert code == 0, said
        return said

    def lease(self):
        """Who holds the lock, None where nobody does."""
        code, said = self.lab.ask("kubectl", "get", *LEASE, "-o", "json")
        return json.loads(said)["spec"] if code == 0 else None

    def node(self):
        """All of it that is not about its kubelet, which it has not."""
        found = json.loads(self.lab.kubectl("get", "node", NODE, "-o", "json"))
        taints = [one for one in found["spec"].pop("taints", []) if one["key"] not in SILENT]
        return {"metadata": {name: value for name, value in found["metadata"].items() if name not in NOISE}, "spec": found["spec"], "taints": taints}


def lease(**options):
    return {"nodecare.kubernetes.node_lease": {"repair": "swap", **options}}


def cordon(**options):
    return {"nodecare.kubernetes.node_cordon": {"node": NODE, "repair": "swap", **options}}


def shell(command):
    return {"ansible.builtin.shell": command}


UNCORDON = cordon(state="as_found")
FREE = lease(state="free")


@pytest.fixture
def runs(api, tmp_path):
    api.kubectl("delete", *LEASE, "--ignore-not-found")
    api.kubectl("delete", "node", NODE, "--ignore-not-found")
    description = tmp_path / "node.json"
    description.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": {"a": "b"}, "labels": {"c": "d"}}}))
    api.kubectl("create", "-f", description)
    found = Runs(api, tmp_path)
    eventually("its last annotation", lambda: "node.alpha.kubernetes.io/ttl" in found.node()["metadata"]["annotations"])
    yield found
    api.kubectl("delete", *LEASE, "--ignore-not-found")
    api.kubectl("delete", "node", NODE, "--ignore-not-found")


# -- the lock --------------------------------------------------------------------------------------------------------------


def test_runs_at_the_same_time_work_one_after_the_other(runs, tmp_path):
    """What one does while it holds the lock, the others see as a whole."""
    log = tmp_path / "log"
    together = shell("touch %s-{{ me }}; until test $(ls %s-* | wc -l) = 3; do sleep 0.1; done" % (log, log))
    work = shell("for step in 1 2 3 4 5; do echo {{ me }} >>%s; sleep 0.5; done" % log)
    started = [runs.start(together, lease(within=500), work, FREE, me=name) for name in "abc"]
    said = [one.communicate(timeout=600)[0] for one in started]
    assert [one.returncode for one in started] == [0, 0, 0], said
    who = log.read_text().split()
    assert len(who) == 15 and all(len(set(who[first : first + 5])) == 1 for first in (0, 5, 10)), who
    assert any("waiting for another run holds the cluster's lock" in one for one in said)
    assert runs.lease() is None


def test_who_does_not_wait_leaves_with_a_clear_word(runs, tmp_path):
    ended = tmp_path / "ended"
    with runs.start(lease(), shell("until test -e %s; do sleep 0.2; done" % ended), lease(repair="still swap"), FREE) as first:
        held = eventually("the lock", runs.lease, every=0.5)
        code, said = runs.run(lease(), shell("touch %s" % (tmp_path / "never")))  # were it to wait, it would do so for ever
        code_of_free, said_of_free = runs.run(FREE, verbose=True)
        ended.touch()
        said_of_first = first.communicate(timeout=600)[0]
    assert (code, first.returncode, code_of_free) == (2, 0, 0), said_of_first
    assert held["holderIdentity"] in said and "for swap, since" in said and "kubectl -n kube-system delete lease nodecare-repair" in said
    assert "this run did not hold the cluster's lock, and leaves it to" in said_of_free
    assert not (tmp_path / "never").exists()
    assert runs.lease() is None


def test_a_run_that_is_killed_is_followed_only_when_its_time_is_over(runs, tmp_path):
    """The orphan that it leaves ends with the file for which it waits."""
    ended = tmp_path / "ended"
    with runs.start(lease(duration=60), shell("until test -e %s; do sleep 0.2; done" % ended)) as process:
        held = eventually("the lock", runs.lease, every=0.5)
        os.kill(int(held["holderIdentity"].split("-")[-2]), signal.SIGKILL)
        ended.touch()
        process.communicate(timeout=600)
    code, said = runs.run(lease())
    assert code == 2 and "It was renewed" in said, said
    said = runs.do(lease(within=300))
    taken = runs.lease()
    assert (datetime.fromisoformat(taken["acquireTime"]) - datetime.fromisoformat(held["renewTime"])).total_seconds() > 60 + 30
    assert taken["holderIdentity"] != held["holderIdentity"] and taken["leaseTransitions"] == 1, taken
    assert "waiting for" in said


THIEF = """
import sys
sys.path.insert(0, ".collections")
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _api, _lease
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api._insist import insisting
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._holder import Run

us, them = Run("us", "me"), Run("them", "somebody else")
with _api.opened({"kubeconfig": sys.argv[1]}, 10, {}) as door:
    ours = _lease.Lock(door, us)
    print(ours.take("swap", 60, 5)[0])
    write, asked = door.replace, []

    def slower(*arguments, **options):
        if not asked:
            asked.append(True)
            lease = ours.read(5)
            thing = _lease.Lock(door, them)._filled(lease.thing, "reboot", 60, None, lease)
            write(_lease.PATH, thing, 5)
        try:
            return write(*arguments, **options)
        except _api.NoAnswerError as error:
            print(error.status)
            raise

    door.replace = slower
    try:
        insisting(lambda seconds: ours.take("swap", 60, seconds), 10)
    except _lease.LostError as error:
        print(error)
    print(insisting(ours.free, 10)[0])
"""


def test_a_lock_that_is_taken_in_the_moment_of_its_renewal_is_lost(runs):
    said = runs.lab.do("exec", "--", sys.executable, "-c", THIEF, runs.lab.do("kubeconfig")).splitlines()
    assert said[:2] == ["created", "409"]
    assert said[2].startswith("this run has lost the cluster's lock to somebody else (run them), for reboot"), said
    assert said[3] == "nothing"
    assert runs.lease()["holderIdentity"] == "them"


def test_a_server_that_hangs_ends_the_task_in_time(runs):
    runs.lab.do("freeze", "kube-apiserver-1")
    try:
        code, said = runs.run(lease(timeout=6))
    finally:
        runs.lab.do("thaw", "kube-apiserver-1")
    assert code == 2 and "no answer within" in said and "kubectl get --raw /readyz" in said, said
    eventually("the API server", lambda: runs.lab.ask("kubectl", "get", "--raw", "/readyz")[0] == 0)


# -- rights and secrets ----------------------------------------------------------------------------------------------------


def account(lab, name):
    lab.kubectl("apply", "-f", DOCS / "nodecare-reader.yml", "-f", DOCS / "nodecare-repairer.yml")
    ca = lab.control_plane / "pki" / "ca.crt"
    return {"host": SERVER, "api_key": lab.kubectl("-n", "kube-system", "create", "token", name), "ca_cert": str(ca)}


def test_the_repairers_role_is_enough_and_the_readers_is_not(runs):
    repairer, reader = account(runs.lab, "nodecare-repairer"), account(runs.lab, "nodecare-reader")
    runs.do(lease(**repairer), lease(**repairer), cordon(**repairer), cordon(state="as_found", **repairer), lease(state="free", **repairer))
    before = runs.node()
    for task in (lease(**reader), cordon(**reader)):
        code, said = runs.run(task)
        assert code == 2 and "docs/nodecare-repairer.yml" in said and "forbidden" in said, said
    assert runs.lease() is None and runs.node() == before


def test_nothing_secret_is_said(runs):
    """Whatever goes wrong, and however much is asked for."""
    token = account(runs.lab, "nodecare-reader")["api_key"]
    given = yaml.safe_load(Path(runs.lab.do("kubeconfig")).read_text())
    key = given["users"][0]["user"]["client-key-data"]
    told = {**given, "users": [{**given["users"][0], "user": {"token": token}}]}
    ways = ({"kubeconfig": told}, {"host": SERVER, "api_key": token, "validate_certs": False}, {"kubeconfig": given}, {"kubeconfig": {**told, "clusters": []}})
    tasks = [make(**way, **state) for way in ways for make, back in ((lease, "free"), (cordon, "as_found")) for state in ({}, {"state": back})]
    said = runs.do(*({**task, "ignore_errors": True} for task in tasks), verbose=True)
    assert "forbidden" in said and "cannot be used" in said and "ok=%d" % len(tasks) in said
    assert token not in said and key not in said


# -- the mark and the cordon -----------------------------------------------------------------------------------------------


def test_a_cordon_and_its_undoing_leave_the_node_as_it_was(runs):
    before = runs.node()
    runs.do(cordon(), check=True)
    assert runs.node() == before
    assert "kubectl uncordon lock-1 && kubectl annotate node lock-1 nodecare/repair-" in runs.do(cordon(), shell("true"), verbose=True)
    assert runs.node()["spec"]["unschedulable"] is True
    mark = json.loads(runs.node()["metadata"]["annotations"]["nodecare/repair"])
    assert (mark["repair"], mark["cordoned"]) == ("swap", True)
    assert "changed=0" in runs.do(cordon(run=mark["run"]))
    runs.do(UNCORDON, check=True)
    assert runs.node()["spec"]["unschedulable"] is True
    assert "the mark was of an earlier run, which is over" in runs.do(UNCORDON, verbose=True)
    eventually("the taint to go", lambda: runs.node() == before, limit=30)
    assert "changed=0" in runs.do(UNCORDON)


def test_the_way_out_by_kubectl_does_the_same(runs):
    before = runs.node()
    runs.do(cordon())
    runs.lab.kubectl("uncordon", NODE)
    runs.lab.kubectl("annotate", "node", NODE, "nodecare/repair-")
    eventually("the taint to go", lambda: runs.node() == before, limit=30)


def test_an_administrators_cordon_is_left_as_it_is(runs):
    runs.lab.kubectl("cordon", NODE)
    eventually("the taint", lambda: runs.node()["taints"])
    before = runs.node()
    assert "kubectl annotate node lock-1 nodecare/repair-" in runs.do(cordon(), verbose=True)
    marked = runs.node()
    assert json.loads(marked["metadata"]["annotations"].pop("nodecare/repair"))["cordoned"] is False
    assert marked == before
    runs.do(UNCORDON)
    assert runs.node() == before
    assert "changed=0" in runs.do(UNCORDON)
    assert runs.node() == before


MARKS = {
    "kured is rebooting it": ("annotate", "node", NODE, "weave.works/kured-reboot-in-progress=now"),
    "the cluster autoscaler is about to delete it": ("taint", "node", NODE, "ToBeDeletedByClusterAutoscaler=1:NoSchedule"),
    "Karpenter is replacing it": ("taint", "node", NODE, "karpenter.sh/disrupted:NoSchedule"),
    "medik8s is remediating it": ("taint", "node", NODE, "medik8s.io/remediation=x:NoExecute"),
    "a mark nodecare/repair that cannot be read": ("annotate", "node", NODE, "nodecare/repair={}"),
    "somebody is deleting this Node": ("patch", "node", NODE, "--type=merge", "-p", '{"metadata": {"finalizers": ["nodecare.test/held"]}}'),
}


@pytest.mark.parametrize(("said", "words"), MARKS.items(), ids=MARKS)
def test_what_others_have_marked_is_refused(runs, said, words):
    runs.lab.kubectl(*words)
    if words[0] == "patch":
        runs.lab.kubectl("delete", "node", NODE, "--wait=false")
    before = runs.node()
    try:
        code, heard = runs.run(cordon())
        assert code == 2 and said in heard and "is left as it is" in heard, heard
        assert runs.node() == before
    finally:
        runs.lab.kubectl("patch", "node", NODE, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')


def test_another_runs_lock_and_mark_are_respected(runs):
    runs.do(lease(run="them"), cordon(run="them"))
    before = runs.node()
    for task in (cordon(run="us"), cordon(run="us", state="as_found")):
        code, said = runs.run(task)
        assert code == 2 and "another run holds the cluster's lock and has marked this Node" in said, said
    assert runs.node() == before
    runs.do(lease(run="them", state="free"))
    assert "an earlier run that has not ended its repair" in runs.do(cordon(run="us"), verbose=True)
