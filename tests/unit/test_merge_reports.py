"""A fleet that was read in slices gives the report that one run would have given, finding by finding. With 1000 nodes: tests/lab/test_awx_slices.py."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nodecare.kubernetes.plugins.filter.merge_reports import merge_reports
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _merge
from bench.judging import made_up_cluster
from findings import finding
from slices import LOST, STRICT, TWINS, fleet, merged_and_whole, registered, run, slices


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    return fleet(100, tmp_path_factory.mktemp("trees"))


def test_slices_together_are_the_run_that_was_not_sliced(nodes):
    merged, whole, loose = merged_and_whole(registered(nodes))
    assert merged["findings"] == whole["findings"]
    assert merged == whole
    assert loose != whole["findings"]
    twins = {one["node"] for one in merged["findings"] if one["id"] == "host.unique" and one["status"] == "fail"}
    assert twins == set(TWINS)
    assert not twins & {one["node"] for one in loose if one["id"] == "host.unique" and one["status"] == "fail"}, "a slice has seen what only all tell"


def test_a_cluster_that_each_slice_has_read_is_joined_with_all_nodes(nodes):
    some = {name: one for name, one in list(nodes.items())[:20] if name not in LOST}
    cluster = made_up_cluster(some)
    merged, whole, _loose = merged_and_whole(registered(some), cluster)
    assert merged["findings"] == whole["findings"]


def test_a_slice_that_did_not_come_to_its_end_is_told(nodes):
    parts = [run(one)[1] for one in slices(registered(dict(list(nodes.items())[:30])))]
    merged = merge_reports(parts[1:], sorted(nodes)[:30])
    told = {one["node"] for one in merged["findings"] if "none of the runs that were put together has read it" in one["message"]}
    assert told == {"node-0000", "node-0010", "node-0020"}


def bundle(nodes=("a",), **more):
    facts = {"schema": "nodecare.node/1", "taken": {}, "problems": []}
    return {"schema": "nodecare.bundle/1", "policy": {}, "nodes": dict.fromkeys(nodes, facts), "cluster": None, **more}


REFUSED = {
    "no list": ({}, "needs a list of saved facts"),
    "a report": ([{"schema": "nodecare.report/1", "nodes": {}}], "number 1 are no facts that a run has saved"),
    "a node twice": ([bundle(["a", "b"]), bundle(["b"])], "b is in number 1 and in number 2: leave out the older one"),
    "other checks": ([bundle(checks=["*"]), bundle(["b"], checks=["swap"])], "judged by different checks"),
    "a host with the cluster's name": ([bundle(["a", "cluster"])], "give its host another name"),
    "a policy that is none": ([bundle(policy={"thresholds": {"no_such": 1}})], "policy.thresholds has no no_such"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_put_together_is_refused(name):
    given, says = REFUSED[name]
    with pytest.raises(AnsibleFilterError, match=says):
        merge_reports(given)


def test_each_node_keeps_the_policy_of_its_own_run():
    found = _merge.merged([("1", bundle(["b"], policy={"disable": ["swap"]})), ("2", bundle(["a", "c"], policies={"c": STRICT}))], ["a", "b", "c"])
    assert (found.policy, found.beside["policies"]) == ({}, {"b": {"disable": ["swap"]}, "c": STRICT})
    assert {one["node"] for one in found.findings if one["message"] == "disabled by policy"} == {"b"}


def test_a_node_that_two_runs_could_not_reach_is_told_once():
    lost = [finding("node.unreachable", "n9", message=why) for why in ("timed out", "refused")]
    found = _merge.merged([("1", bundle(lost=lost[:1])), ("2", bundle(["b"], lost=lost[1:]))])
    assert [one["message"] for one in found.findings if one["node"] == "n9"] == ["refused"]


def test_files_are_found_below_directories(tmp_path):
    for name in ("1", "2/deeper"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "facts.json").write_text("{}")
    assert [file for file, _bundle in _merge.read([str(tmp_path)])] == [str(tmp_path / name / "facts.json") for name in ("1", "2/deeper")]
    (tmp_path / "1" / "facts.json").write_text('{"nodes": ')
    for path, says in ((tmp_path, "did not come to its end"), (tmp_path / "none", "no facts.json is in or below")):
        with pytest.raises(_merge.MergeError, match=says):
            _merge.read([str(path)])
