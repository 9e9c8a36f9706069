"""A policy is checked whole before any node is touched; every refusal names the variable, the value and what would be right."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nodecare.kubernetes.plugins.filter.judge import judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import PolicyError, policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES

KNOWN = list(RULES)
RULE = {"id": "site.one", "query": "host.kernel", "expect": {"exists": True}, "message": "m"}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"limits": {}}, "policy has no limits; it has thresholds"),
        ({"thresholds": []}, None),
        ({"thresholds": [1]}, "policy.thresholds must be a dictionary, not [1]"),
        ({"thresholds": {"no_such": 1}}, "policy.thresholds has no no_such; it has"),
        ({"networks": {"pods": "10.0.0.0/99"}}, "policy.networks.pods: '10.0.0.0/99'"),
        ({"networks": {"pod": []}}, "policy.networks has no pod; it has pods, services, nodes"),
        ({"kubernetes_version": "latest"}, "policy.kubernetes_version is 'latest', but must be like 1.36"),
        ({"disable": ["swop.*"]}, "policy.disable names 'swop.*', which is no rule"),
        ({"severity": {"swap.active": "fatal"}}, "policy.severity.swap.active is 'fatal', but must be one of error, warning, info"),
        ({"site_rules": [{**RULE, "id": "kernel"}]}, "site_rules[0]: id is 'kernel', but must be like site.kernel"),
        ({"site_rules": [{"id": "site.one", "query": "a"}]}, "site rule site.one: has no expect; has no message"),
        ({"site_rules": [{**RULE, "level": 1}]}, "site rule site.one: has level, which no site rule has"),
        ({"site_rules": [{**RULE, "query": "host.[kernel"}]}, "site rule site.one: query is no JMESPath expression"),
        ({"site_rules": [{**RULE, "query": "host.[kernel"}]}, "\n  host.[kernel\n  "),
        ({"site_rules": [{**RULE, "expect": {"is": 1}}]}, "must have exactly one of equals"),
        ({"site_rules": [{**RULE, "expect": {"matches": "("}}]}, "expect.matches is no regular expression: missing ), unterminated subpattern at position 0"),
        ({"site_rules": [{**RULE, "expect": {"at_least": "many"}}]}, "expect.at_least is 'many', but must be a number"),
        ({"site_rules": [RULE, RULE]}, "two site rules have the id site.one"),
    ],
)
def test_refusals_say_what_would_be_right(raw, says):
    if says is None:
        policy(raw, KNOWN)
        return
    with pytest.raises(PolicyError) as refused:
        policy(raw, KNOWN)
    assert says in str(refused.value)


def test_unknown_check_lists_the_known_ones():
    with pytest.raises(_judge.SelectionError, match=r"'swop' matches no rule\. Areas: .*swap.* Rules: .*swap\.active"):
        _judge.select(["swop"])


FACTS = {
    "schema": "nodecare.node/1",
    "taken": {"euid": 1000},
    "problems": [{"fact": "host.uuid", "what": "/sys/uuid", "why": "permission denied", "kind": "denied"}],
    "host": {"kernel": {"release": "6.1.0"}, "uuid": None},
    "swap": {"active": [{"device": "/dev/sda2", "kind": "partition", "size_kib": 1, "used_kib": 0}]},
    "kubelet": {"config": {"fail_swap_on": True, "swap_behavior": None, "from": {}}},
}


@pytest.mark.parametrize(
    ("query", "expect", "status"),
    [
        ("host.kernel.release", {"matches": r"^6\."}, "pass"),
        ("host.kernel.release", {"equals": "5.15"}, "fail"),
        ("host.kernel.release", {"in": ["6.1.0"]}, "pass"),
        ("length(swap.active)", {"at_most": 0}, "fail"),
        ("swap.active[?used_kib > `0`]", {"empty": True}, "pass"),
        ("swap.active[].device", {"contains": "/dev/sda2"}, "pass"),
        ("host.nothing", {"equals": 1}, "unknown"),
        ("host.nothing", {"exists": False}, "pass"),
        ("host.uuid", {"exists": False}, "unknown"),  # hidden from an ordinary user: absence proves nothing
        ("length(host.nothing)", {"equals": 0}, "unknown"),
        ("host.kernel.release", {"contains": 6}, "fail"),
    ],
)
def test_site_rules(query, expect, status):
    rule = {"id": "site.x", "query": query, "expect": expect, "message": "have {value}", "severity": "warning"}
    (found,) = judge(FACTS, {"site_rules": [rule]}, checks=["site"])
    assert (found["id"], found["status"], found["severity"]) == ("site.x", status, "warning"), found["message"]


def test_site_rules_choose_the_areas_to_probe():
    by = policy({"site_rules": [{**RULE, "query": "length(swap.active) == `0` && load.x[?host].y"}]})
    assert _judge.areas(_judge.select(["site"], (), by), by) == ["load", "swap"]


@pytest.mark.parametrize(
    ("raw", "status", "severity"),
    [
        ({}, "fail", "error"),
        ({"disable": ["swap"]}, "skip", "error"),
        ({"severity": {"swap": "info", "*.active": "warning"}}, "fail", "warning"),
    ],
)
def test_policy_changes_findings(raw, status, severity):
    facts = {**FACTS, "problems": []}
    (found,) = judge({"n1": facts}, raw, checks=["swap.active"])
    assert (found["node"], found["status"], found["severity"]) == ("n1", status, severity)


def test_judge_refuses_what_are_no_facts():
    with pytest.raises(AnsibleFilterError, match="given for n1 are no facts of node_check"):
        judge({"n1": {"a": 1}})


def test_a_broken_rule_is_one_unknown_finding(monkeypatch):
    def broken(_areas, *_more):
        raise KeyError("oops")

    monkeypatch.setattr(RULES["swap.active"], "alone", broken)
    found = judge(FACTS, checks=["swap.active"])
    assert [(one["status"], one["message"][:38]) for one in found] == [("unknown", "the rule swap.active broke: KeyError: ")]


def test_remedies_quote_what_the_node_said():
    facts = {**FACTS, "problems": [], "swap": {"active": [{"device": "/x; rm -rf $HOME", "kind": "file", "size_kib": 1, "used_kib": 0}]}}
    (found,) = judge(facts, checks=["swap.active"])
    assert "'/x; rm -rf $HOME'" in found["remedy"]["manual"]
