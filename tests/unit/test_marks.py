"""Marks on a Node: our own, in whatever state somebody has left it, those of others, and what is decided by them."""

from __future__ import annotations

import json

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _cordon, _marks
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._holder import Run, RunError, this_run
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._lease import Lease
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1795030943.0
AT = "2026-11-18T19:42:23Z"
US, THEM = Run("us", "me@here, process 1"), Run("them", "AWX job 7")
WELL = {"run": "them", "holder": "AWX job 7", "repair": "swap", "at": AT, "cordoned": True}


def node(mark=None, unschedulable=False, taints=(), deleting=None, **annotations):
    """A Node as the API server has it."""
    if mark is not None:
        annotations[_marks.MARKER] = mark if isinstance(mark, str) else json.dumps(mark)
    metadata = {"name": "w1", "resourceVersion": "7", "annotations": annotations, "deletionTimestamp": deleting}
    return _cordon.Node({"metadata": metadata, "spec": {"unschedulable": unschedulable, "taints": [{"key": key} for key in taints]}})


# -- our own ---------------------------------------------------------------------------------------------------------------


def test_a_mark_is_read_as_it_was_written():
    mark = _marks.Marker("r", "h", "swap", AT, True)
    assert _marks.marker({_marks.MARKER: mark.written()}) == mark
    assert _marks.marker({}) is None


BROKEN = ["", "null", "[]", '"x"', "{}", "{", "\x00", "[" * 100_000, "1e999", json.dumps({**WELL, "cordoned": "true"}), json.dumps({**WELL, "run": " "})]
BROKEN += [json.dumps({**WELL, "at": "yesterday"}), json.dumps({name: value for name, value in WELL.items() if name != "cordoned"}), 7, ["x"]]


@pytest.mark.parametrize("said", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_mark_is_somebodys(said):
    found = _marks.marker({_marks.MARKER: said})
    assert found.broken and not found.cordoned and not found.run


@settings(max_examples=40)
@given(
    st.text() | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)).map(json.dumps)
)
def test_no_mark_raises(said):
    found = _marks.marker({_marks.MARKER: said})
    assert json.dumps(found.facts()) and found.said().isprintable()


# -- of others -------------------------------------------------------------------------------------------------------------

KURED = {"weave.works/kured-reboot-in-progress": "2026-11-18T19:40:00Z"}
LOCK = {"who": "kured", "what": "holds its lock", "where": "there", "node": "w1", "since": NOW - 60, "until": None}
OTHERS = {
    "nobody": ({}, {}, []),
    "kured has asked for a reboot only": ({"annotations": {"weave.works/kured-most-recent-reboot-needed": AT}}, {}, []),
    "kured reboots": ({"annotations": KURED}, {}, ["kured is rebooting it"]),
    "Flatcar has no leave yet": ({"annotations": {"flatcar-linux-update.v1.flatcar-linux.net/reboot-ok": "false"}}, {}, []),
    "Flatcar has leave": ({"annotations": {"flatcar-linux-update.v1.flatcar-linux.net/reboot-ok": "true"}}, {}, ["the Flatcar update operator has allowed"]),
    "OpenShift is through": ({"annotations": {"machineconfiguration.openshift.io/state": "Done"}}, {}, []),
    "OpenShift is at it": ({"annotations": {"machineconfiguration.openshift.io/state": "Working"}}, {}, ["the machine config daemon"]),
    "a candidate of the autoscaler": ({"taints": ["DeletionCandidateOfClusterAutoscaler"]}, {}, []),
    "the autoscaler": ({"taints": ["ToBeDeletedByClusterAutoscaler"]}, {}, ["the cluster autoscaler is about to delete it (taint ToBeDeleted"]),
    "Karpenter": ({"taints": ["karpenter.sh/disrupted"]}, {}, ["Karpenter"]),
    "Karpenter's beta": ({"taints": ["karpenter.sh/disruption"]}, {}, ["Karpenter"]),
    "medik8s": ({"taints": ["medik8s.io/remediation", "medik8s.io/drain"]}, {}, ["medik8s is remediating", "medik8s holds it in maintenance"]),
    "Cluster API": ({"taints": ["node.cluster.x-k8s.io/outdated-revision"]}, {}, ["Cluster API"]),
    "an administrator's cordon and taint": ({"unschedulable": True, "taints": ["node.kubernetes.io/unschedulable", "dedicated"]}, {}, []),
    "it is being deleted": ({"deleting": AT}, {}, ["somebody is deleting this Node"]),
    "a lock for ever": ({}, {"locks": [LOCK]}, ["kured holds its lock (there)"]),
    "a lock on another": ({}, {"locks": [{**LOCK, "node": "w2"}]}, []),
    "a lock on nobody knows which": ({}, {"locks": [{**LOCK, "node": ""}]}, ["kured holds its lock"]),
    "a lock that is over": ({}, {"taken": {"server_time": NOW}, "locks": [{**LOCK, "until": NOW - 1}]}, []),
    "a lock that is not": ({}, {"taken": {"server_time": NOW}, "locks": [{**LOCK, "until": NOW + 1}]}, ["kured"]),
    "locks that were not read": ({}, {"locks": None}, []),
}


@pytest.mark.parametrize(("thing", "cluster", "want"), OTHERS.values(), ids=OTHERS)
def test_others(thing, cluster, want):
    annotations = thing.get("annotations", {})
    entry = node(**{name: value for name, value in thing.items() if name != "annotations"}, **annotations).entry
    found = [one.said() for one in _marks.foreign(entry, cluster)]
    assert len(found) == len(want) and all(said.startswith(begin) for said, begin in zip(sorted(found), sorted(want))), found


# -- what is decided -------------------------------------------------------------------------------------------------------


def lease(run, age=0):
    times = dict.fromkeys(("acquireTime", "renewTime"), _marks.written(NOW - age))
    return Lease({"spec": {"holderIdentity": run, "leaseDurationSeconds": 600, **times}})


OURS = {**WELL, "run": "us"}
ADMINS = {**WELL, "cordoned": False}
# {what: (node, Lease, what is written of spec, whether the mark says cordoned; or a word of the refusal)}
CORDON = {
    "a free node": (node(), None, {"unschedulable": True}, True),
    "while we hold the lock": (node(), lease("us"), {"unschedulable": True}, True),
    "an administrator's cordon": (node(unschedulable=True), None, None, False),
    "ours already": (node(OURS, True), None, None, None),
    "ours, and somebody has uncordoned it": (node(OURS), None, {"unschedulable": True}, True),
    "an earlier run's": (node(WELL, True), None, None, True),
    "an earlier run's on an administrator's cordon": (node(ADMINS, True), None, None, False),
    "an earlier run's on a cordon that an administrator has undone": (node(ADMINS), None, {"unschedulable": True}, True),
    "an earlier run's whose lock is over": (node(WELL, True), lease("them", 700), None, True),
    "an earlier run's whose lock is just over": (node(WELL, True), lease("them", 620), "holds the cluster's lock and has marked", None),
    "another run at work": (node(), lease("them"), "holds the cluster's lock: run them", None),
    "a broken mark": (node("{"), None, "kubectl annotate node w1 nodecare/repair-", None),
    "kured": (node(**KURED), None, "kured is rebooting it", None),
    "kured after us": (node(OURS, True, **KURED), None, "kured is rebooting it", None),
}


@pytest.mark.parametrize(("found", "held", "spec", "ours"), CORDON.values(), ids=CORDON)
def test_to_cordon(found, held, spec, ours):
    if isinstance(spec, str):
        with pytest.raises(_cordon.RefusedError, match=spec):
            _cordon.cordoned(found, US, "swap", held, NOW)
        return
    patch = _cordon.cordoned(found, US, "swap", held, NOW).patch
    if ours is None:
        assert patch is None
        return
    assert (patch.get("spec"), patch["metadata"]["resourceVersion"]) == (spec, "7")
    mark = _marks.marker(patch["metadata"]["annotations"])
    assert mark == _marks.Marker("us", US.holder, "swap", AT, ours)


GONE = {"unschedulable": None}
UNCORDON = {
    "ours": (node(OURS, True), None, GONE, "schedulable again"),
    "ours while another run has the lock": (node(OURS, True), lease("them"), GONE, "schedulable again"),
    "ours on an administrator's cordon": (node({**OURS, "cordoned": False}, True), None, None, "stays cordoned"),
    "ours, and somebody has uncordoned it": (node(OURS), None, None, "schedulable already"),
    "an earlier run's": (node(WELL, True), None, GONE, "earlier run, which is over: AWX job 7"),
    "an earlier run's whose lock is over": (node(WELL, True), lease("them", 700), GONE, "earlier run"),
    "an earlier run's while we hold the lock": (node(WELL, True), lease("us"), GONE, "earlier run"),
    "nobody's": (node(), None, "nothing", "no repair has marked it"),
    "an administrator's": (node(unschedulable=True), None, "nothing", "left to undo that"),
    "another run's at work": (node(WELL, True), lease("them"), "refused", "and has marked this Node"),
    "an earlier run's while a third is at work": (node(WELL, True), lease("third"), "refused", "run third"),
    "a broken mark": (node("{", True), None, "refused", "cannot be read"),
    "kured after us": (node(OURS, True, **KURED), None, "refused", "kured"),
}


@pytest.mark.parametrize(("found", "held", "spec", "said"), UNCORDON.values(), ids=UNCORDON)
def test_to_undo(found, held, spec, said):
    if spec == "refused":
        with pytest.raises(_cordon.RefusedError, match=said):
            _cordon.as_found(found, US, held, NOW)
        return
    answer = _cordon.as_found(found, US, held, NOW)
    assert said in answer.said
    if spec == "nothing":
        assert answer.patch is None
    else:
        assert answer.patch == {"metadata": {"resourceVersion": "7", "annotations": {_marks.MARKER: None}}, **({"spec": spec} if spec else {})}


# -- who we are ------------------------------------------------------------------------------------------------------------


def test_all_tasks_of_a_process_are_one_run():
    one, other = "02fc0000-0001-a1b2-c3d4-000000000001", "02fc0000-0001-ffff-c3d4-000000000001"
    assert this_run(one, {}) == this_run(one[:-1] + "7", {}) != this_run(other, {})


def test_a_job_of_awx_is_named():
    assert this_run("a-b", {"awx_job_id": 7}).holder.startswith("AWX job 7 on ")
    assert this_run("a-b", {"tower_job_id": "8"}).id.startswith("awx-job-8-")
    assert this_run("a-b", {"awx_job_id": 7}, "ours").id == "ours"


@pytest.mark.parametrize("run", ["", " ", "a\nb", "x" * 201, "\x1b[31m"])
def test_no_name_for_a_run(run):
    with pytest.raises(RunError, match="run is"):
        this_run("a-b", {}, run)
