"""Made-up fleets as hosts of a play, read by one run or by slices of it."""

from __future__ import annotations

import json

from ansible_collections.nodecare.kubernetes.plugins.filter.merge_reports import merge_reports
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _merge, _report
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._collected import collected
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from bench.judging import made_up
from recorded import read

SLICES = 10
STRICT = {"thresholds": {"load_per_cpu": 1}}  # what one group of the inventory has, unlike the others
TWINS = ("node-0002", "node-0007")  # in different slices, like all that only a comparison tells
SKEWED = ("node-0003", "node-0004")
LOST = {"node-0012": {"unreachable": True, "msg": "Connection timed out"}, "node-0045": {}}


def fleet(count, place):
    """{node: its facts}"""
    facts = {**dict.fromkeys(AREAS, {}), **read("host-debian-13", {}, place / "host", ["host"])}
    facts["links"] = read("links-docker-host", {}, place / "links", ["links"])["links"]
    facts["load"] = {"averages": {}, "cpus": 2, "uptime": 90000.0, "pressure": {}}
    text = json.dumps(facts)
    nodes = {"node-%04d" % number: made_up(text, number) for number in range(count)}
    nodes[TWINS[1]]["host"]["identity"]["machine_id"] = nodes[TWINS[0]]["host"]["identity"]["machine_id"]
    for name in SKEWED:
        nodes[name]["taken"]["at"] += 300
    return nodes


def registered(nodes):
    """{node: what node_check would have registered}; two gave nothing."""
    return {name: LOST[name] if name in LOST else _result(name, facts, STRICT if name.endswith("5") else {}) for name, facts in nodes.items()}


def _result(name, facts, own):
    return {"facts": facts, "policy": own, "findings": _judge.judge_node(name, facts, policy(own), list(RULES))}


def run(results, cluster=None):
    """What the action does with what the hosts of one run have registered: (its report, what it saves)."""
    results, given = list(results.items()), next(iter(results.values())).get("policy", {})  # as a play takes its first host's
    checked = policy(given, known_rules=list(RULES))
    nodes, policies, alone = collected(results, checked)
    there = {name: one for name, one in nodes.items() if one}
    findings = _judge.judge_together(alone, there, policies, list(RULES), checked, cluster)
    beside = _merge.beside(results, alone, nodes, given, ["*"], [])
    return _report.document(nodes, findings), json.loads(json.dumps(_report.bundle(nodes, given, cluster, **beside)))


def slices(results):
    """As AWX makes them: every tenth host, by name."""
    names = sorted(results)
    return [{name: results[name] for name in names[first::SLICES]} for first in range(SLICES)]


def merged_and_whole(results, cluster=None):
    """(the slices' report, that of the one run, what the slices found each by itself)"""
    whole, _saved = run(results, cluster)
    parts = [run(one, cluster) for one in slices(results)]
    merged = merge_reports([saved for _report_of_it, saved in parts], list(results))
    return merged, json.loads(json.dumps(whole)), [one for report, _saved in parts for one in report["findings"]]
