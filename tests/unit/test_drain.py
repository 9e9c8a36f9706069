"""Which pods leave a node, which stay and which are refused; what comes back; and what a refusal by the API server means."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _drain
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import NoAnswerError

CASES = yaml.load((Path(__file__).parent / "repairs" / "drain.yml").read_text(), yaml.CSafeLoader)
CART = {
    "metadata": {
        "namespace": "shop",
        "name": "cart-1",
        "uid": "u1",
        "labels": {"app": "cart"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "cart", "uid": "r1", "controller": True}],
    },
    "spec": {},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def pod(change=None, **metadata):
    thing = copy.deepcopy(CART)
    thing["metadata"].update(metadata)
    for part, what in (change or {}).items():
        thing[part] = {**thing[part], **what} if isinstance(what, dict) else what
    return _drain.pod(thing)


def budget(name, selector, **status):
    return _drain.budget({"metadata": {"namespace": "shop", "name": name}, "spec": {"selector": selector}, "status": status})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_becomes_of_a_pod(case):
    budgets = [budget(name, selector) for name, selector in case.get("budgets", {}).items()]
    made = _drain.plan([pod(case.get("pod"))], set(case.get("daemonsets", ())), budgets, case.get("consent", ()))
    want = case["want"] if isinstance(case["want"], dict) else {case["want"]: ""}
    ((kind, words),) = ((key, value) for key, value in want.items() if key != "needs")
    assert [name for name in made._fields if getattr(made, name)] == [kind]
    if kind in ("stay", "refused"):
        (_pod, why, *needs) = getattr(made, kind)[0]
        assert words in why
        assert needs == [want["needs"]] if kind == "refused" else not needs


@pytest.mark.parametrize("namespace", ["shop", "elsewhere"])
def test_a_budget_is_about_pods_of_its_namespace(namespace):
    assert len(_drain.budgets_of(pod(namespace=namespace), [budget("cart", {})])) == (namespace == "shop")


def test_those_that_wait_for_others_on_the_node():
    pods = [pod(uid="u%d" % number) for number in range(4)] + [pod({"status": {"conditions": []}}, uid="ill")]
    waiting = _drain.queued(pods, [budget("cart", {}, disruptionsAllowed=2)])
    assert list(waiting) == ["u2", "u3"]


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Equal", "value": "yes"}, False),
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, False),
    ],
)
def test_what_tolerates_a_cordon_comes_back(toleration, tolerates):
    new = pod({"spec": {"tolerations": [toleration]}}, uid="u2", ownerReferences=[])
    back, late = _drain.returned([pod(), new], {"u1"}, [])
    assert (back, late) == (([new], []) if tolerates else ([], [new]))


def test_what_is_meant_for_the_node_by_its_name_comes_back():
    anew = pod(uid="u2", name="cart-2")
    assert _drain.returned([anew], {"u1"}, [pod()]) == ([anew], [])


BUDGET = {"details": {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget cart needs 2 healthy pods and has 2 currently"}]}}
ENDING = {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}


@pytest.mark.parametrize(
    ("status", "why", "said", "meaning"),
    [
        (429, "Cannot evict pod as it would violate the pod's disruption budget.", BUDGET, "again"),
        (429, "Too many requests", {}, "again"),
        (404, 'pods "x" not found', {}, "gone"),
        (409, "the UID in the precondition does not match", {}, "again"),
        (500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", {}, "never"),
        (500, "Internal error occurred: failed calling webhook", {}, "again"),
        (503, "etcdserver: leader changed", {}, "again"),
        (0, "Connection refused", {}, "again"),
        (403, "pods is forbidden", {}, "never"),
        (403, "being terminated", ENDING, "again"),
        (422, "Invalid value", "not an object", "never"),
    ],
)
def test_what_a_refusal_means(status, why, said, meaning):
    error = NoAnswerError(why, status=status, said=said)
    assert _drain.meaning(error) == meaning
    assert _drain.is_of_budget(error) == (said is BUDGET)
