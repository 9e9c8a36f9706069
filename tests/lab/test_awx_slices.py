"""A thousand nodes in ten slices of a job of AWX: put together they give the report of the run that was not sliced. Needs no guests."""

from __future__ import annotations

from bench.judging import made_up_cluster
from slices import LOST, TWINS, fleet, merged_and_whole, registered


def test_a_thousand_nodes_in_ten_slices(tmp_path, figure):
    merged, whole, loose = merged_and_whole(registered(fleet(1000, tmp_path)))
    assert merged["findings"] == whole["findings"] and merged == whole
    assert loose != whole["findings"]
    assert {one["node"] for one in merged["findings"] if one["id"] == "host.unique" and one["status"] == "fail"} == set(TWINS)
    figure("%d findings on %d nodes are the same" % (len(whole["findings"]), whole["summary"]["nodes"]))


def test_a_thousand_nodes_of_a_cluster_that_each_slice_has_read(tmp_path):
    nodes = {name: facts for name, facts in fleet(1000, tmp_path).items() if name not in LOST}
    cluster = made_up_cluster(nodes)
    merged, whole, _loose = merged_and_whole(registered(nodes), cluster)
    assert merged["findings"] == whole["findings"] and merged == whole
