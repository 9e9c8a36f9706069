"""The statistics that say which node stands out: what must hold whatever the nodes' loads are."""

from __future__ import annotations

import math
import time

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.nodecare.kubernetes.plugins.filter.judge import judge
from ansible_collections.nodecare.kubernetes.plugins.filter.load_outliers import DOCUMENTATION, load_outliers
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._outliers import METRICS, SMALL, scores, standings
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from hypothesis import given
from hypothesis import strategies as st

DEFAULT = policy({})
LOADS = st.floats(0, 1000, allow_subnormal=False)
MANY = st.lists(LOADS, min_size=2, max_size=30)


def node(value, cpus=1, uptime=90000.0):
    return {"load": {"averages": {"one": value, "five": value}, "cpus": cpus, "uptime": uptime, "pressure": {}}}


def out(values, **more):
    """The positions of those that stand out."""
    return sorted({int(one["node"]) for one in load_outliers({str(i): node(value, **more) for i, value in enumerate(values)})})


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([60], []),
        ([60, 1], [0]),
        ([60, 60], []),
        ([60, 1, 1], [0]),
        ([60, 60, 1], []),  # most are loaded: the cause is common
        ([60, 60, 60, 60], []),
        ([1, 1, 60, 1], [2]),
        ([0, 0, 0, 60], [3]),
        ([0, 0, 0, 1.9], []),  # far above the others, but no node is overloaded by that
        ([1.9, 1.9, 1.9, 2.1], []),  # overloaded, but hardly more than the others
        ([1, 1, 1, 1, 1, 1.2], []),  # MAD = 0
        ([1, 1, 1, 1, 1, 60], [5]),
        ([1.9, 1.9, 1.9, 1.9, 1.9, 2.5], []),  # the same, though it is above the threshold
        ([60, 60, 1, 1, 1, 1, 1, 1], [0, 1]),
        ([1, 60, 60, 60, 60, 60], []),  # an idle node is no outlier
    ],
)
def test_who_stands_out(values, found):
    assert out(values) == found


@given(peers=st.lists(st.floats(0.5, 1.9), min_size=1, max_size=40), times=st.floats(30, 1000), data=st.data())
def test_one_node_at_thirty_times_the_load_is_always_found_and_alone(peers, times, data):
    at = data.draw(st.integers(0, len(peers)))
    assert out([*peers[:at], max(peers) * times, *peers[at:]]) == [at]


@given(values=st.lists(st.floats(2, 1000), min_size=1, max_size=30))
def test_where_all_are_overloaded_none_stands_out(values):
    assert out(values) == []


@given(value=LOADS, many=st.integers(2, 30))
def test_nodes_that_are_alike_never_stand_out(value, many):
    assert out([value] * many) == []


@given(values=st.lists(LOADS, min_size=SMALL, max_size=30))
def test_one_more_node_like_the_middle_one_never_stands_out(values):
    assert len(values) not in out([*values, sorted(values)[len(values) // 2]])


@given(values=MANY, step=st.floats(0, 10), power=st.integers(-8, 8))
def test_the_unit_does_not_matter(values, step, power):
    values = [round(value, 3) for value in values]
    scale = 2.0**power
    assert [score for _middle, score in scores([value * scale for value in values], step * scale)[0]] == pytest.approx(
        [score for _middle, score in scores(values, step)[0]], rel=1e-6, nan_ok=True
    )


@given(values=MANY, data=st.data())
def test_the_order_does_not_matter(values, data):
    order = data.draw(st.permutations(range(len(values))))
    found, moved = out(values), out([values[i] for i in order])
    assert sorted(order[i] for i in moved) == found


@given(values=st.lists(LOADS, min_size=SMALL, max_size=30), more=st.floats(1, 100))
def test_who_stands_out_still_does_with_more_load(values, more):
    for worst in out(values):
        assert worst in out([value * more if i == worst else value for i, value in enumerate(values)])


ODD = st.none() | st.floats() | st.booleans() | st.text(max_size=3) | st.integers(-(10**400), 10**400)


@given(
    loads=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "averages": st.none() | st.fixed_dictionaries({"one": ODD, "five": ODD}),
                "cpus": ODD,
                "uptime": ODD,
                "pressure": st.none()
                | st.dictionaries(st.sampled_from(["cpu", "io"]), st.fixed_dictionaries({"some": st.fixed_dictionaries({"avg10": ODD, "avg60": ODD})})),
            },
        ),
        max_size=8,
    )
)
def test_what_is_missing_or_no_number_is_left_out(loads):
    nodes = {str(i): one for i, one in enumerate(loads)}
    found, left_out = standings(nodes, DEFAULT)
    assert {one.node for one in found} | set(left_out) == set(nodes)
    assert all(math.isfinite(one.value) and math.isfinite(one.score) for one in found)


def test_missing_values_do_not_move_the_others():
    broken = [{}, {"load": {}}, {"load": {"averages": None}}, node(math.nan), node(None), node(60, cpus=0), node(60, uptime=30.0)]
    nodes = {"a": node(60), "b": node(1), "c": node(1.5), **{"x%d" % i: one for i, one in enumerate(broken)}}
    assert [(one["node"], one["median"], one["by"]) for one in load_outliers(nodes)] == [("a", 1.25, "ratio")]


def test_nodes_of_one_size_are_compared_among_themselves():
    small, big = {"s%d" % i: node(1.0, cpus=2) for i in range(6)}, {"b%d" % i: node(192.0, cpus=64) for i in range(6)}
    assert load_outliers({**small, **big}) == []  # 3 per CPU is what big nodes have here
    assert [one["node"] for one in load_outliers({**small, **big, "b9": node(1920.0, cpus=64), "s9": node(61.0, cpus=2)})] == ["s9"]


def test_the_words():
    nodes = {"n%d" % i: node(value, cpus=2) for i, value in enumerate([0.8, 1.9, 1.0, 61.0, 1.2, 1.1, 0.9, 1.0])}
    (found,) = load_outliers(nodes)
    assert found["reason"] == "load 61.0 on 2 CPUs; the other 7 nodes have 0.8 to 1.9"
    assert (found["node"], found["metric"], found["value"], found["median"], found["by"]) == ("n3", "load_per_cpu", 30.5, 0.53, "modified z")


def test_the_thresholds_are_the_policys():
    nodes = {"n%d" % i: node(value) for i, value in enumerate([0.1, 0.1, 0.1, 1.5])}
    assert load_outliers(nodes) == []
    assert [one["node"] for one in load_outliers(nodes, {"load_per_cpu": 1})] == ["n3"]
    assert load_outliers(nodes, {"load_per_cpu": 1, "outlier_ratio": 20}) == []
    assert [one["node"] for one in load_outliers({"schema": "nodecare.bundle/1", "nodes": nodes}, {"load_per_cpu": "1"})] == ["n3"]


def test_one_task_that_waits_for_a_disk_is_not_blamed_for_dozens_that_wait_for_a_cpu():
    window = {"seconds": 0.25, "cpu": None, "running": [60], "blocked": [1], "processes": [], "largest": [], "waiting": [], "cgroups": []}
    (found,) = judge({"schema": "nodecare.node/1", "load": {**node(60)["load"], "window": window}}, checks=["load.saturated"])
    assert found["status"] == "fail"
    assert "blocked" not in found["message"]


def test_the_documented_defaults_are_the_thresholds():
    documented = yaml.safe_load(DOCUMENTATION)["options"]["thresholds"]["suboptions"]
    assert {name: option["default"] for name, option in documented.items()} == {name: DEFAULT[name] for name in documented}
    assert {metric.least for metric in METRICS} < set(documented)


@pytest.mark.parametrize(
    ("facts", "thresholds", "says"),
    [
        ([], {}, "needs a dictionary of node names and their facts, not list"),
        ({"schema": "nodecare.node/1"}, {}, "give it {name: facts} of several"),
        ({"n1": "no facts"}, {}, "what is given for n1 are no facts of node_check"),
        ({}, {"load_per_cpus": 1}, "policy.thresholds has no load_per_cpus"),
        ({}, {"load_per_cpu": "much"}, "policy.thresholds.load_per_cpu is 'much'"),
    ],
)
def test_refusals_say_what_would_be_right(facts, thresholds, says):
    with pytest.raises(AnsibleFilterError) as refused:
        load_outliers(facts, thresholds)
    assert says in str(refused.value)


def test_a_thousand_nodes_take_no_time():
    nodes = {
        "n%d" % i: {
            "load": {
                **node(1 + i % 7 / 10, cpus=2 << i % 4)["load"],
                "pressure": {kind: {"some": {"avg10": i % 9, "avg60": 2.0}} for kind in ("cpu", "io", "memory")},
            }
        }
        for i in range(999)
    }
    nodes["worst"] = node(300, cpus=4)
    start = time.process_time()
    assert [one["node"] for one in load_outliers(nodes)] == ["worst"]
    spent = time.process_time() - start
    assert spent < 0.2
