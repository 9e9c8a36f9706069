"""A migration that does not end: what is moved away, what is refused, what only takes its time, and when the datastore is freed."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _journal, _node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._changes import Unchangeable
from ansible_collections.nodecare.kubernetes.plugins.module_utils._journal import Busy, Conflict
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs import Failed, Refused, ipam, undo
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _ipam, _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._with_cluster import joined
from tables import table

CASES = [pytest.param(case, id=case["case"]) for case in table("repairs/ipam")]
STORIES = table("cases/calico-cluster")
IDS = {"ALIVE": "a" * 64, "DEAD": "d" * 64}
POLICY = policy({})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(ipam, "LOOKS_S", 0.0)
    monkeypatch.setattr(_node.Node, "dump", lambda self, message, family=0, limit=50000: [])


@pytest.fixture
def made(tmp_path):
    """A function that makes the machine of a case; answers its root."""

    def make(case):
        files = {ipam.PATH + "/" + name: text for name, text in (case.get("files") or {}).items()}
        files.update({"/proc/7/cgroup": "0::/kubepods/cri-containerd-%s.scope\n" % IDS["ALIVE"], "/proc/sys/kernel/random/boot_id": "one\n"})
        for path, text in {**files, **case.get("more", {})}.items():
            target = tmp_path / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(IDS.get(text.split("\r")[0], text), errors="surrogateescape")
        if "files" in case:
            (tmp_path / ipam.PATH[1:]).mkdir(parents=True, exist_ok=True)
        return str(tmp_path)

    return make


def state(root):
    """All below /var/lib/cni, with its bytes."""
    return {str(one.relative_to(root)): one.read_bytes() for one in Path(root, "var/lib/cni").rglob("*") if one.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_case(case, made):
    root = made(case)
    before = state(root)
    if "refused" in case:
        for check in (True, False):
            with pytest.raises(Refused, match=case["refused"]):
                ipam.absent(check, root)
        assert state(root) == before
        return
    foreseen = ipam.absent(True, root)
    assert state(root) == before and not Path(root, "var/lib/nodecare").exists()
    done = ipam.absent(root=root)
    away = {"nothing": None, "away": ipam.AWAY, "away-2": ipam.AWAY + "-2"}[case["becomes"]]
    assert (done["changed"], done["moved_to"]) == (away is not None, away)
    assert {**done, "journal": None} == foreseen
    assert not Path(root, ipam.PATH[1:]).exists()
    moved = {path.replace(ipam.PATH[1:], (away or "")[1:]): content for path, content in before.items()}
    assert state(root) == moved
    assert not ipam.absent(root=root)["changed"]
    assert undo.take_back(check=True, root=root)["changed"] is (away is not None)
    assert state(root) == moved
    undo.take_back(root=root)
    assert state(root) == before
    assert not undo.take_back(root=root)["changed"]


LEFT = {"files": {"10.1.0.2": "DEAD", "lock": ""}}


def test_an_address_with_a_route_is_not_touched(made, monkeypatch):
    root = made(LEFT)
    monkeypatch.setattr("ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.links._cni._routed", lambda node: {"10.1.0.2"})
    with pytest.raises(Refused, match="1 of its addresses still have a route"):
        ipam.absent(root=root)


def test_a_migration_that_gets_on_is_left_its_time(made, monkeypatch):
    root = made(LEFT)
    monkeypatch.setattr(ipam, "HELD_S", 0.2)
    with open(root + ipam.PATH + "/lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="as a migration does that is at work"):
            ipam.absent(root=root)
    monkeypatch.setattr(_node.Node, "sleep", lambda self, seconds: os.unlink(root + ipam.PATH + "/10.1.0.2"))
    with pytest.raises(Refused, match="gets on"):
        ipam.absent(root=root)
    assert Path(root, ipam.PATH[1:]).exists()


def test_a_try_that_fails_again_is_waited_for(made, monkeypatch):
    """upgrade-ipam has the lock for the moment that each of its tries takes."""
    root = made(LEFT)
    with open(root + ipam.PATH + "/lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(_node.Node, "sleep", lambda self, seconds: fcntl.flock(lock, fcntl.LOCK_UN))
        assert ipam.absent(root=root)["changed"]


def test_undo_does_not_touch_what_is_new(made):
    root = made(LEFT)
    ipam.absent(root=root)
    Path(root, ipam.PATH[1:]).mkdir()
    with pytest.raises(Conflict, match="has been made anew since; what was there before is in /var/lib/cni/k8s-pod-network.left-over"):
        undo.take_back(root=root)


def test_a_rename_that_fails_leaves_nothing_behind(made, monkeypatch):
    root = made(LEFT)
    before = state(root)

    def full(old, new):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(ipam.os, "rename", lambda old, new: full(old, new) if ipam.PATH in old else REAL(old, new))
    with pytest.raises(Unchangeable, match="Invalid cross-device link"):
        ipam.absent(root=root)
    assert state(root) == before and not undo.take_back(root=root)["changed"]


REAL = os.rename


def test_what_is_moved_is_not_called_unchanged_where_only_the_journal_fails(made, monkeypatch):
    root = made(LEFT)
    before = state(root)

    def full(self, **more):
        if more == {"state": "done"}:
            raise Unchangeable("no space left")
        NOTE(self, **more)

    monkeypatch.setattr(_journal.Entry, "note", full)
    with pytest.raises(Failed, match="it was changed, but that it was done could not be noted: no space left"):
        ipam.absent(root=root)
    monkeypatch.undo()
    assert state(root) != before
    undo.take_back(root=root)
    assert state(root) == before


NOTE = _journal.Entry.note


# -- stuck, or slow? -----------------------------------------------------------------------------------------------------


def decided(name, mine="n2", **changed):
    """What is decided about a node in the case whose title begins so."""
    case = next(one for one in STORIES if one["case"].startswith(name))
    nodes = {node: {"taken": {"hostname": node}, "problems": [], **machine["facts"]} for node, machine in case["nodes"].items()}
    cluster = {"schema": "nodecare.cluster/1", "problems": [], **case["cluster"], **changed}
    findings = _judge.judge(nodes, dict.fromkeys(nodes, POLICY), list(_ipam.CHECKS), POLICY, cluster)
    return _ipam.decide([one for one in findings if one["node"] in (mine, "cluster")], joined(nodes, cluster)[mine]["cluster"], POLICY)


def test_a_migration_that_loops():
    decision = decided("I7: the API")
    assert (decision.move, decision.unlock, decision.refused, decision.left_alone) == (True, True, None, None)


def test_a_node_that_is_well_waits_for_the_one_that_is_not():
    decision = decided("I7: the API", "n1")
    assert decision[:3] == (False, False, None) and decision.left_alone == "the datastore is locked while upgrade-ipam runs on n2: repair that"


def test_the_path_to_the_api_server_comes_first():
    decision = decided("I7: the same")
    assert decision.refused.startswith("this has to be put right first: ")


def test_what_only_takes_its_time_is_left_alone():
    """The same picture, Init:0/3, a minute after it began, and while its image is being pulled."""
    case = next(one for one in STORIES if one["case"].startswith("I7: the API"))
    now = case["cluster"]["taken"]["server_time"] if "taken" in case["cluster"] else None
    pods = json.loads(json.dumps(case["cluster"]["pods"]))
    for pod in (pod for pod in pods if pod["node"] == "n2"):
        pod["init"][0]["since"] = now - 30
    decision = decided("I7: the API", pods=pods)
    assert decision.left_alone and not decision.move and not decision.unlock and not decision.refused


# -- the lock --------------------------------------------------------------------------------------------------------------


def test_who_has_locked_the_datastore():
    def information(manager):
        return {"metadata": {"resourceVersion": "7", "managedFields": [{"manager": "calico-node", "fieldsV1": {"f:spec": {"f:clusterGUID": {}}}}, manager]}}

    def by(manager, migrated, **more):
        return _ipam.locked_by_hand(information({"manager": manager, "fieldsV1": {"f:spec": {"f:datastoreReady": {}}}, **more}), migrated)

    assert by("calico-ipam", True) is by("Go-http-client", True) is _ipam.locked_by_hand({"metadata": {}}, True) is None
    assert by("kubectl-patch", True, time="2026-11-18T20:00:00Z").startswith("kubectl-patch has locked Calico's datastore at 2026-11-18T20:00:00Z")
    assert by("Go-http-client", False).startswith("one of Calico's programs has locked")
    assert _ipam.locked_by_hand({"metadata": {}}, False).startswith("somebody who is not known")
    patch = _ipam.unlocked(information({}), "2026-11-18T20:00:00Z")
    assert patch["spec"] == {"datastoreReady": True} and patch["metadata"]["resourceVersion"] == "7" and _ipam.OURS in patch["metadata"]["annotations"]
    assert json.loads(_ipam.undo("/apis/crd.projectcalico.org/v1/x").split("-p ")[1].strip("'"))["spec"] == {"datastoreReady": False}
