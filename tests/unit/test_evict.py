"""Emptying a node, against an API server that is played by a list of pods: what happens between two looks."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _evict
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import NoAnswerError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._holder import Run

OWNER = {"kind": "ReplicaSet", "name": "web", "uid": "r1", "controller": True}


def pod(name, uid=None, **metadata):
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": uid or name, "labels": {"app": "web"}, "ownerReferences": [OWNER], **metadata},
        "spec": {},
        "status": {"phase": "Running"},
    }


class Door:
    """Three pods to a page. ``script`` says what happens after which look at the node: a change, or an error that is answered to it."""

    now = 1800000000.0

    def __init__(self, pods, script=None, budgets=(), refuse=None):
        self.pods, self.script, self.refuse = list(pods), script or {}, refuse or {}
        self.node = {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        self.budgets, self.looks, self.evicted = list(budgets), 0, []

    def get(self, path, query, seconds):
        assert 0 < seconds <= 10
        if path.startswith("/api/v1/nodes/"):
            self.looks += 1
            happens = self.script.get(self.looks, lambda door: None)
            if isinstance(happens, Exception):
                raise happens
            happens(self)
            return self.node
        items = {_evict.PODS: self.pods, _evict.BUDGETS: self.budgets}.get(path)
        if path.endswith("/nodecare-repair"):
            raise NoAnswerError("not found", status=404)
        first = int(query.get("continue") or 0)
        found = copy.deepcopy((items or [])[first : first + 3])
        return {"metadata": {"continue": str(first + 3)} if len(items or []) > first + 3 else {}, "items": found}

    def create(self, path, body, _seconds, dry_run=False):
        name, uid = body["metadata"]["name"], body["deleteOptions"]["preconditions"]["uid"]
        assert path == "/api/v1/namespaces/shop/pods/%s/eviction" % name
        refusals = self.refuse.get((name, dry_run), [])
        if refusals:
            raise refusals.pop(0)
        if not dry_run:
            self.evicted.append(uid)
            self.pods = [one for one in self.pods if one["metadata"]["uid"] != uid]
        return {}


class Patience:
    seconds, limit = 1.0, 100.0

    def __init__(self, looks):
        self.left, self.said = looks, []

    def is_over(self):
        return not self.left

    def wait(self, what):
        self.left -= 1
        self.said.append(what)


def drained(door, looks=5, dry_run=False):
    draining = _evict.Draining(door, Run("me", "somebody"), "w1", Patience(looks), 10.0)
    try:
        draining.foresee(dry_run)
        if not dry_run:
            draining.empty()
    except _evict.DrainError as error:
        return draining, str(error)
    return draining, ""


GONE = NoAnswerError("Connection refused")
DENIED = NoAnswerError("nodes is forbidden", "denied", 403)
BUSY = NoAnswerError("the server is busy", status=503)


def test_all_pages_of_pods_go():
    door = Door(pod("web-%d" % number) for number in range(7))
    assert drained(door)[1] == "" and len(door.evicted) == 7


def test_a_dry_run_evicts_nothing():
    door = Door([pod("web-1")])
    draining, why = drained(door, dry_run=True)
    assert (why, door.evicted, [one.name for one in draining.plan.go]) == ("", [], ["web-1"])


@pytest.mark.parametrize("error", [BUSY, GONE])
def test_what_passes_is_tried_again(error):
    door = Door([pod("web-1"), pod("web-2")], refuse={("web-1", False): [error, error]})
    draining, why = drained(door)
    assert why == "" and sorted(door.evicted) == ["web-1", "web-2"]
    assert any(error.why in one for one in draining.patience.said)


def test_what_the_server_has_said_outlives_an_answer_that_does_not_come():
    said = NoAnswerError("too many disruptions", status=429)
    door = Door([pod("web-1")], refuse={("web-1", False): [said, GONE]})
    assert "shop/web-1 is too many disruptions" in drained(door, looks=1)[1]
    door = Door([pod("web-1")], refuse={("web-1", False): [GONE]})
    assert "shop/web-1 is to be evicted, but that was not answered: Connection refused" in drained(door, looks=0)[1]


@pytest.mark.parametrize("error", [GONE, NoAnswerError("pods is forbidden", "denied", 403)])
def test_a_dry_run_that_is_not_answered_or_refused_touches_nothing(error):
    door = Door([pod("web-1"), pod("web-2")], refuse={("web-2", True): [error]})
    assert "nothing was evicted" in drained(door)[1] and door.evicted == []


def test_a_server_that_is_away_is_waited_for_and_one_that_refuses_is_not():
    kept = {("web-1", False): [BUSY, BUSY]}
    assert drained(Door([pod("web-1")], {2: GONE, 3: GONE}, refuse=kept))[1] == ""
    assert "nodes is forbidden" in drained(Door([pod("web-1")], {2: DENIED}, refuse=kept))[1]
    assert "it cannot be seen any more" in drained(Door([pod("web-1")], {2: NoAnswerError("not found", status=404)}, refuse=kept))[1]
    assert "nothing was evicted" in drained(Door([pod("web-1")], {1: GONE}))[1]


def arrives(thing):
    return lambda door: door.pods.append(thing)


def test_a_pod_that_the_scheduler_had_sent_before_the_cordon_goes_as_well():
    late = pod("late", ownerReferences=[{**OWNER, "uid": "r2"}])
    door = Door([pod("web-1")], {2: arrives(late)})
    draining, why = drained(door)
    assert (why, door.evicted, draining.back) == ("", ["web-1", "late"], [])


def test_one_that_needs_consent_ends_it():
    door = Door([pod("web-1")], {2: arrives(pod("late", ownerReferences=[]))})
    assert "a pod came onto the node while it was being emptied: shop/late: it has no controller" in drained(door)[1]
    assert door.evicted == ["web-1"]


def test_one_that_comes_back_is_named_and_not_evicted_again():
    door = Door([pod("web-0", "old")], {2: arrives(pod("web-0", "new"))})
    draining, why = drained(door)
    assert (why, door.evicted, [one.uid for one in draining.back]) == ("", ["old"], ["new"])


def test_whoever_uncordons_the_node_ends_it():
    door = Door([pod("web-1"), pod("web-2")], {2: lambda door: door.node["spec"].clear()}, refuse={("web-2", False): [BUSY]})
    assert "nothing more is evicted" in drained(door)[1] and door.evicted == ["web-1"]


def test_an_api_server_that_is_too_old():
    class Old(Door):
        def get(self, path, query, seconds):
            if path == _evict.BUDGETS:
                raise NoAnswerError("not found", status=404)
            return super().get(path, query, seconds)

    assert "Kubernetes 1.22" in drained(Old([pod("web-1")]))[1]
