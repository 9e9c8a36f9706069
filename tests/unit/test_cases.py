"""Runs the tables in ``cases/``: a machine, what is changed about it, and the verdicts that this must give.

- case: one sentence
  tree: debian-13              # a recorded machine; without one the machine is empty
  change: {files: …}           # see recorded.py
  facts: {load: {…}}           # laid over what the probes read (null removes)
  policy: {thresholds: …}
  cluster: {nodes: …}          # what cluster_check read; a node of the case is the Node of the same name, one machine is called node
  want: {swap.returns: fail}   # the worst status of that rule's findings
  evidence: {swap.returns: {by: /etc/fstab line 3}}       # a part of that finding's evidence
  says: {swap.returns: "a part of the message"}
  by: {swap.returns: repair_swap}                         # the playbook that its remedy names; null where people have to do it
  does: {swap.returns: "a part of what its remedy says"}
  nodes: {n1: {facts: …}, …}   # several machines: each with tree, change, facts; want is then {n1: {…}}, and so may evidence, says, by and does be
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _plan
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from recorded import read
from tables import loaded

CASES = [
    pytest.param(case, id="%s: %s" % (table.stem, case["case"]))
    for table in sorted((Path(__file__).parent / "cases").glob("*.yml"))
    for case in loaded(table.read_text()) or []
]


@pytest.mark.parametrize("case", CASES)
def test_case(case, tmp_path):
    machines = case.get("nodes") or {"node": case}
    want = want_of(case)
    ids = sorted({rule_id for wanted in want.values() for rule_id in wanted})
    facts = {name: facts_of(machine, ids, tmp_path / name) for name, machine in machines.items()}
    known = policy(case.get("policy"), known_rules=list(RULES))
    for name, one in facts.items():
        one["taken"] = {**one.get("taken", {}), "hostname": name}
    findings = _judge.judge(facts, dict.fromkeys(facts, known), ids, known, cluster_of(case))
    assert [one["remedy"] for one in findings if one["remedy"] and one["remedy"]["playbook"] and not _plan.playbook_of(one["remedy"])] == []
    for name, wanted in want.items():
        for rule_id, status in wanted.items():
            of_rule = [one for one in findings if one["id"] == rule_id and one["node"] == name]
            worst = min((one["status"] for one in of_rule), key=_judge.ORDER.index)
            assert worst == status, [(one["status"], one["message"], one["evidence"]) for one in of_rule]
            shown = [one for one in of_rule if one["status"] == status]
            expected = told(case, "evidence", name).get(rule_id)
            assert expected is None or any(expected.items() <= one["evidence"].items() for one in shown), [one["evidence"] for one in shown]
            said = told(case, "says", name).get(rule_id)
            assert said is None or any(said in one["message"] for one in shown), [one["message"] for one in shown]
            does = told(case, "does", name).get(rule_id)
            assert does is None or any(does in one["remedy"]["manual"] for one in shown), [one["remedy"] for one in shown]
            playbooks = told(case, "by", name)
            assert rule_id not in playbooks or [playbooks[rule_id]] == [_plan.playbook_of(one["remedy"]) for one in shown], shown


def want_of(case):
    return case["want"] if "nodes" in case else {"node": case["want"]}


def told(case, part, name):
    """What is expected of one machine, or of all alike."""
    table = case.get(part) or {}
    return table if set(table) <= {rule_id for wanted in want_of(case).values() for rule_id in wanted} else table.get(name, {})


def facts_of(machine, ids, where):
    where.mkdir()
    areas = [] if "facts" in machine and "tree" not in machine and "change" not in machine else _judge.areas(ids)
    facts = read(machine.get("tree"), machine.get("change") or {}, where, areas)
    return lay_over(facts, machine.get("facts") or {})


def cluster_of(case):
    """What the case says, over an empty document."""
    return {"schema": "nodecare.cluster/1", "problems": [], **case["cluster"]} if "cluster" in case else None


def lay_over(facts, change):
    for name, value in change.items():
        if value is None:
            facts.pop(name, None)
        elif isinstance(value, dict) and isinstance(facts.get(name), dict):
            lay_over(facts[name], value)
        else:
            facts[name] = value
    return facts
