"""The rules about addresses on what nobody has foreseen: documents with gaps and with nonsense in them."""

from __future__ import annotations

import copy
import random
import shlex

import pytest
import test_cases
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._commands import set_method
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._recommend import exactly
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES

RULE_IDS = [
    *("calico.wrong_address", "calico.unstable_address", "calico.no_address", "calico.registered_wrong_address", "calico.address_conflict"),
    *(
        "calico.node_leftovers",
        "calico.method_not_effective",
        "calico.overlap",
        "calico.version",
        "links.stray_bridge",
        "links.ambiguous_address",
        "links.overlap",
    ),
]
NONSENSE = (None, "", "x", "%s%d%(a)s", "$(reboot)", "';reboot;'", "10.0.0.1", "10.0.0.1/24", "::1", "fe80::1/64", "999.1.1.1/99", "\u202e", "a" * 300)
WITH_CLUSTER = [case.values[0] for case in test_cases.CASES if case.id.startswith("calico-address") and "cluster" in case.values[0]]


def damaged(said, chance, share):
    """A document in which some values are gone, and some are nonsense; names of Nodes stay what they are."""
    if isinstance(said, dict):
        return {key: one if key == "name" else damaged(one, chance, share) for key, one in said.items() if key == "name" or chance.random() > share / 3}
    if isinstance(said, list):
        return [damaged(one, chance, share) for one in said if chance.random() > share / 4]
    return chance.choice(NONSENSE) if isinstance(said, str) and chance.random() < share else said


@pytest.mark.parametrize("seed", range(60))
def test_no_gap_in_what_the_cluster_says_breaks_a_rule(seed, tmp_path):
    chance = random.Random(seed)
    for number, case in enumerate(chance.sample(WITH_CLUSTER, 5)):
        facts = {name: copy.deepcopy(test_cases.facts_of(machine, RULE_IDS, tmp_path / ("%d-%s" % (number, name)))) for name, machine in case["nodes"].items()}
        known = policy(case.get("policy"), known_rules=list(RULES))
        cluster = damaged(test_cases.cluster_of(case), chance, chance.choice((0.02, 0.1, 0.3)))
        findings = _judge.judge(facts, dict.fromkeys(facts, known), RULE_IDS, known, {**cluster, "problems": []})
        assert [one["message"] for one in findings if "broke" in one["message"]] == []
        assert {one["id"] for one in findings} <= set(RULE_IDS)


@pytest.mark.parametrize("name", ["$(reboot)", "`id`;&|'", "a(b", 'a<b>"x', "{{ x }}", "a'b\"c"])
@pytest.mark.parametrize("kind", ["manifest", "operator", "kubespray"])
def test_nothing_of_a_links_name_acts_in_a_shell(name, kind):
    command = set_method("interface=" + exactly(name), 4, {"install": {"kind": kind}, "installation": {}}).split("  # ")[0]
    words = shlex.split(command)
    assert words[0] == "kubectl" and len(words) == {"manifest": 10, "kubespray": 10, "operator": 8}[kind]
    assert exactly(name) in words[-1].replace("\\\\", "\\").replace('\\"', '"')
