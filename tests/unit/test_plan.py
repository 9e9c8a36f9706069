"""The plan over all repairs: each incident has its own, and whatever is found, no plan is dangerous.

- case: one sentence
  nodes: {n1: 3, cp: true, x: null}    # pods of a worker, true for the control plane, null where neither is known
  others: [n9]                         # nodes of the cluster that are no hosts of the run
  findings: [{id, node, status: fail, by: repair_swap, hand: a command, evidence, vars, disruptive, reboot}]
  consent: {allow_disruption: true}
  plan: ["node playbook (what it heals) everywhere {variables}: why it is held back"]
  by_hand: ["node rule: command"]
  outside: [node]
  stop: [reason]
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _plan, _report, _reported
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._plan import REPAIRS, Consent, Node, can_begin, known
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report import json_report
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report import plan as shown
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES, _rule
from hypothesis import given
from hypothesis import strategies as st
from tables import table
from test_diagnosis import of_story

ROOT = Path(__file__).parents[2]
CASES = [pytest.param(case, id=case["case"]) for case in table("plans/incidents")]


def finding(one):
    by = one.get("by")
    playbook = by if by is None or "." in by else "nodecare.kubernetes." + by
    remedy = {"playbook": playbook, "vars": one.get("vars", {}), "manual": one.get("hand"), **{name: one.get(name, False) for name in ("disruptive", "reboot")}}
    whole = {"status": "fail", "severity": "error", "title": one["id"], "message": "m", "evidence": {}, "see": "docs/rules/%s.md" % one["id"], **one}
    return {**whole, "remedy": remedy if by or one.get("hand") else None}


def node(said):
    return Node(None if said is None else said is True, None if said is True else said)


def planned(case):
    nodes = {name: node(said) for name, said in case["nodes"].items()}
    consent = Consent(case.get("consent", {}).get("allow_disruption", False), case.get("consent", {}).get("reboot_ok"))
    return _plan.plan([finding(one) for one in case["findings"]], list(nodes), nodes, case.get("others", ()), consent)


def brief(step):
    more = (" everywhere" if step["everywhere"] else "") + (" %s" % step["vars"] if step["vars"] else "")
    held = ": " + step["held"] if step["held"] else ""
    return "%s %s (%s)%s%s" % (step["node"], step["playbook"].rpartition(".")[2], ", ".join(step["why"]), more, held)


def steps(made):
    return [step for turn in made["turns"] for step in turn["steps"]]


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    made = planned(case)
    assert [brief(step) for step in steps(made)] == case["plan"]
    assert sorted("%(node)s %(id)s: %(command)s" % one for one in made["by_hand"]) == case.get("by_hand", [])
    assert [one["node"] for one in made["outside"]] == case.get("outside", [])
    assert made["stop"] == case.get("stop", [])
    said = shown.text(made)
    assert said.isascii() and all(one.isprintable() or one == "\n" for one in said)
    assert all(len(line) <= 100 for line in said.splitlines())


# The incidents as the rules themselves tell them: [(node, playbook, whether it can begin with all consent)]
STORIES = {
    "I1": [("n2", "repair_overload", True)],
    "I2 on three nodes": [("n2", "restart_calico", True)],
    "I4: docker": [("n2", "repair_runtime", True)],
    "I4: the runtime": [("n2", "repair_runtime", True)],
    "I5": [("n2", "repair_swap", True)],
    "I7: the API": [("n2", "repair_ipam", False)],  # its addresses have routes: the node is drained by hand first
    "I7: the same": [("n2", "repair_ipam", False)],
    "half of": [],
}


@pytest.mark.parametrize("name", STORIES)
def test_what_the_rules_of_an_incident_lead_to(name):
    findings = of_story(name)
    hosts = list(dict.fromkeys(one["node"] for one in findings if one["node"] != "cluster"))
    made = _plan.plan(findings, hosts, consent=Consent(True, True))
    assert [(step["node"], step["playbook"].rpartition(".")[2], not step["held"]) for step in steps(made)] == STORIES[name]
    assert bool(made["stop"]) is (name == "half of")


# -- whatever is found ---------------------------------------------------------------------------------------------------

NAMES = ("n1", "n2", "n10", "cp1", "cp2", "$(reboot)", "\x1b[2J", "cluster")
IDS = """
    swap.active swap.returns runtime.unresponsive calico.init_stuck links.stray_bridge calico.bgp node.unreachable calico.overloaded_node
    calico.datastore_not_ready
""".split()
METHOD = "nodecare_calico_method"
FINDING = st.fixed_dictionaries(
    {
        "id": st.sampled_from((*IDS, "calico.datastore_not_ready")),
        "node": st.sampled_from(NAMES),
        "status": st.sampled_from(("fail", "fail", "warn", "unknown")),
    },
    optional={
        "by": st.sampled_from([*REPAIRS, "repair_nothing"]),
        "hand": st.just("true"),
        "disruptive": st.booleans(),
        "reboot": st.booleans(),
        "vars": st.sampled_from([{}, {METHOD: "first-found"}, {METHOD: "cidr=10.0.0.0/8"}, {METHOD: 1}, {"nodecare_kubeconfig": "x"}, {"ansible_host": "x"}]),
    },
)
HOSTS = st.dictionaries(st.sampled_from(NAMES[:-1]), st.builds(Node, st.sampled_from([None, True, False]), st.sampled_from([None, 0, 1, 50])))


@given(
    st.lists(FINDING, max_size=14),
    HOSTS,
    st.lists(st.sampled_from(("n1", "n9")), max_size=2),
    st.builds(Consent, st.booleans(), st.sampled_from([None, False, True])),
    st.randoms(),
)
def test_no_plan_is_dangerous(found, hosts, others, consent, chance):
    findings = [finding(one) for one in found]
    made = _plan.plan(findings, list(hosts), hosts, others, consent)
    order = [turn["node"] for turn in made["turns"]]
    assert set(order) <= {*hosts, "cluster"}, "the run is widened"
    assert len(set(order)) == len(order), "a node has two turns"
    assert all(step["node"] == turn["node"] for turn in made["turns"] for step in turn["steps"]), "two nodes at a time"
    assert "cluster" not in order[:-1], "what changes all nodes does not come last"
    tiers = [{False: 0, None: 1, True: 2}[hosts[name].control_plane] for name in order if name in hosts]
    assert tiers == sorted(tiers), "the control plane does not come last"
    for step in steps(made):
        assert step["held"] or ((consent.allow_disruption or not step["disruptive"]) and (consent.reboot_ok or not step["reboot"]))
        assert step["held"] or not step["everywhere"] or not others
        assert step["vars"] == {} or (step["playbook"].endswith("repair_autodetection") and step["vars"][METHOD] in ("first-found", "cidr=10.0.0.0/8"))
    for turn in made["turns"]:
        ranks = [list(REPAIRS).index(step["playbook"].rpartition(".")[2]) for step in turn["steps"]]
        assert ranks == sorted(ranks)
        held = [bool(step["held"]) for step in turn["steps"]]
        assert held == sorted(held), "something is carried out after what is held back"
    assert [step["number"] for step in steps(made)] == list(range(1, len(steps(made)) + 1))
    assert can_begin(made) == [] if made["stop"] else all(not step["held"] for turn in can_begin(made) for step in turn["steps"])
    once = [step["playbook"] for step in steps(made) if step["everywhere"] and step["vars"] == {}]
    assert len(once) == len(set(once)), "what changes all nodes is done twice"
    chance.shuffle(findings)
    again = dict(sorted(hosts.items(), reverse=True))
    assert [turn["node"] for turn in _plan.plan(findings, list(again), again, others, consent)["turns"]] == order
    assert shown.text(made)


def test_an_empty_run():
    made = _plan.plan([], [])
    assert (made["turns"], made["stop"], can_begin(made)) == ([], [], [])
    assert shown.text(made) == "Plan: nothing that a playbook repairs is wrong with these nodes"


def test_what_the_terminal_shows():
    case = next(one.values[0] for one in CASES if one.values[0]["case"].startswith("I1, overload"))
    lines = shown.text(planned(case)).splitlines()
    assert lines[:8] == [
        "Plan: 2 repairs on 2 nodes, one node after the other; 2 held back",
        "",
        "turn  node  repair           heals",
        "1     w2    repair_overload  calico.overloaded_node",
        "                             disturbs running pods, needs a reboot",
        "                             held back: needs your consent:",
        "                             -e nodecare_allow_disruption=true",
        "                             -e nodecare_reboot_ok=true",
    ]
    assert lines[-3:] == ["By hand:", "  w1, w2: load.outlier [load.outlier]", "         top"]


# -- what is known of the nodes --------------------------------------------------------------------------------------------


def test_what_a_node_is():
    cluster = {"nodes": [{"name": "a", "roles": ["control-plane"]}, {"name": "b", "roles": []}, {"name": "z", "roles": []}], "pods": []}
    runtime = {"answers": {"cri": {"pods": {"all": 9, "ready": 7}}, "docker": {"pods": {"all": None, "ready": None}}}}
    machines = {
        "a": {"taken": {}},
        "b": {"taken": {}, "runtime": runtime},
        "c": {"taken": {}, "host": {"role": {"joined": True, "manifests": ["etcd"]}}},
        "d": {"taken": {}, "host": {"role": {"joined": True, "manifests": []}}},
        "e": {"taken": {}},
        "f": {"taken": {}},
    }
    found, others = known(machines, cluster, {"f"})
    assert {name: found[name] for name in machines} == {
        "a": Node(True, None),
        "b": Node(False, 7),
        "c": Node(True, None),
        "d": Node(False, None),
        "e": Node(None, None),
        "f": Node(True, None),
    }
    assert others == ["z"]
    assert known({}) == ({}, [])


def test_a_report_and_its_facts_tell_the_same(tmp_path):
    """What an earlier run has written: the report with what is known of its nodes, and the facts, judged again."""
    swaps = {"swap": {"active": [{"device": "/dev/sdb1", "kind": "partition", "size_kib": 9, "used_kib": 0, "priority": -2}]}}
    facts = {
        "schema": "nodecare.node/1",
        "taken": {"hostname": "a"},
        "problems": [],
        "host": {"role": {"joined": True, "manifests": ["etcd"]}},
        "kubelet": {"config": {"fail_swap_on": True, "from": {}}},
        **swaps,
    }
    bundle = _report.bundle({"a": facts, "b": None}, {})
    found = [one for one in _judge.judge({"a": facts}, {"a": policy({})}, list(RULES), policy({})) if one["status"] == "fail"]
    assert [one["id"] for one in found] == ["swap.active"]
    (tmp_path / "facts.json").write_text(json_report.write_bundle(bundle))
    (tmp_path / "report.json").write_text(json_report.write(_report.document({"a": facts, "b": None}, found)))
    report, again = _reported.read(str(tmp_path), {}), _reported.read(str(tmp_path / "facts.json"), {})
    assert report.findings == [one for one in again.findings if one["status"] == "fail"] == found
    assert (report.names, again.names) == (["a", "b"], ["a"])
    nodes, others = known({**dict.fromkeys(report.names, {"taken": {}}), **report.nodes}, report.cluster)
    assert (nodes, others) == ({"a": Node(True, None), "b": Node(None, None)}, [])


def test_saved_facts_are_judged_as_their_run_has_judged_them(tmp_path):
    """Each node by its own policy, by the rules that were chosen, and with those that could not be reached."""
    facts = {"schema": "nodecare.node/1", "taken": {}, "problems": []}
    beside = {"policies": {"b": {"disable": ["swap"]}}, "exclude": ["host"], "lost": [_judge.judge_lost("c", "node.unreachable", "no route", policy({}))]}
    (tmp_path / "facts.json").write_text(json_report.write_bundle(_report.bundle({"a": facts, "b": facts}, {}, None, **beside)))
    own, given = (_reported.read(str(tmp_path / "facts.json"), said) for said in ({}, {"disable": ["links"]}))
    for read, disabled in ((own, {("b", "swap")}), (given, {("a", "links"), ("b", "links")})):
        assert {(one["node"], one["id"].split(".")[0]) for one in read.findings if one["message"] == "disabled by policy"} == disabled
        assert not [one for one in read.findings if one["id"].startswith("host.")]
        assert [one["id"] for one in read.findings if one["node"] == "c"] == ["node.unreachable"]
        assert (read.names, sorted(read.nodes)) == (["a", "b", "c"], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is no JSON"),
        ("[]", "has the schema None"),
        ('{"schema": "nodecare.report/1", "findings": [], "nodes": []}', "is damaged"),
        ('{"schema": "nodecare.report/1", "findings": [{"id": "x"}], "nodes": {}}', "is damaged"),
        ('{"schema": "nodecare.bundle/1", "nodes": {}, "lost": [{"node": "a"}]}', "is damaged"),
        ('{"schema": "nodecare.bundle/1", "nodes": {}, "checks": ["no.such"]}', "matches no rule"),
        ('{"schema": "nodecare.bundle/1", "nodes": {}, "policy": {"thresholds": {"no_such": 1}}}', "policy.thresholds has no no_such"),
    ],
)
def test_what_is_no_report(text, why, tmp_path):
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    with pytest.raises(_reported.ReportError, match=why):
        _reported.read(str(tmp_path), {})


# -- the tables ------------------------------------------------------------------------------------------------------------


def test_every_playbook_that_a_rule_names_can_be_planned():
    """Whoever gives a rule a playbook adds a line to _plan.REPAIRS, at its place in the order of one node's repairs."""
    assert _rule.PLAYBOOKS - set(REPAIRS) == set()
    for playbook, repair in REPAIRS.items():
        assert (ROOT / "playbooks" / (playbook + ".yml")).exists(), playbook
        assert (ROOT / "roles" / repair.role / "tasks" / "main.yml").exists(), repair.role
        assert "nodecare.kubernetes." + repair.role in (ROOT / "playbooks" / (playbook + ".yml")).read_text()


def test_what_comes_first_are_rules():
    assert {one for ids in _plan.FIRST.values() for one in ids} | {_plan.COMMON, *_plan.LOST} <= set(RULES)
    assert set(_plan.FIRST) <= set(REPAIRS)


def test_what_a_finding_gives_its_repair_is_handed_on():
    """A play sets only what it names: here that is all which a plan lets through, and only what changes all nodes takes any."""
    setting = yaml.safe_load((ROOT / "roles/repair/tasks/setting.yml").read_text())
    assert {name for repair in REPAIRS.values() for name in repair.takes} == {name for name in setting[0]["vars"] if name.startswith("nodecare_")}
    assert all(repair.everywhere for repair in REPAIRS.values() if repair.takes)
