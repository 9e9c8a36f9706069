"""The rules as a whole: each is proven red and green, documented, and names only what exists."""

from __future__ import annotations

import inspect
import re

import generate_rules
import pytest
import test_cases
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES, _rule
from checkout import ROOT, files

PROMISED = """
    swap.active swap.returns swap.kubelet_policy swap.unsafe_to_disable
    links.stray_bridge links.ambiguous_address links.overlap links.loopback links.cni_leftovers links.ipam_leftovers links.manager_touches_calico
    runtime.unresponsive runtime.slow runtime.docker_cannot_reach_containerd runtime.cri_disabled runtime.restarts runtime.restart_kills_pods
    runtime.cgroup_driver runtime.blocked_tasks
    kubelet.down kubelet.refuses_swap kubelet.certificate kubelet.cgroup_v1
    load.saturated load.memory load.disk load.limits load.outlier
    host.kernel_modules host.sysctl host.survives_reboot host.time host.clock_skew host.unique host.name host.ports host.iptables_mix host.cgroup
    node.unreachable node.unreadable
""".split()


def test_promised_rules_are_there():
    assert set(PROMISED) - set(RULES) == set()


def test_every_rule_was_seen_red_and_green():
    """The two about lost nodes need no facts; the integration tests lose nodes for them."""
    seen = {rule_id: set() for rule_id in RULES if rule_id not in _judge.OUTSIDE}
    for parameters in test_cases.CASES:
        (case,) = parameters.values
        for want in case["want"].values() if "nodes" in case else [case["want"]]:
            for rule_id, status in want.items():
                seen.setdefault(rule_id, set()).add(status)
    never = {rule_id: sorted(statuses) for rule_id, statuses in seen.items() if not ({"fail", "warn"} & statuses and "pass" in statuses)}
    assert never == {}, "rules whose cases do not show both a bad node and a good one"


@pytest.mark.parametrize("rule_id", RULES)
def test_a_rule_says_why_and_what_to_do(rule_id):
    rule = RULES[rule_id]
    sentences = re.findall(r"[^.!?]+[.!?](?:\s|$)", inspect.cleandoc(rule.why))
    assert 1 <= len(sentences) <= 6, "its docstring is its documentation: %r" % rule.why
    assert rule.title and not rule.title.endswith(".")
    assert rule.areas <= {*AREAS, "node"}


def test_every_playbook_that_a_remedy_names_is_there():
    assert [name for name in _rule.PLAYBOOKS if not (ROOT / "playbooks" / (name + ".yml")).exists()] == []


def test_every_area_file_is_imported():
    areas = {"probes": set(AREAS), "rules": {rule.area for rule in RULES.values()} - {"node"}}
    probes = {path.stem for path in (ROOT / "plugins/module_utils/_probes").iterdir() if not path.stem.startswith("_")}
    rules = {path.stem for path in (ROOT / "plugins/plugin_utils/_rules").iterdir() if not path.stem.startswith("_")} - {"node"}
    assert areas == {"probes": probes, "rules": rules}


def test_every_threshold_is_used():
    used = set().union(*map(generate_rules.uses_thresholds, RULES.values()))
    assert set(generate_rules._policy.THRESHOLDS) - used == set()


def test_pages_are_current():
    """`make docs` writes them."""
    wanted = {"docs/rules/%s" % name: text for name, text in generate_rules.pages().items()}
    there = {path: (ROOT / path).read_text() for path in files("docs/rules")}
    assert sorted(wanted) == sorted(there)
    assert [path for path in wanted if wanted[path] != there[path]] == [], "run `make docs`"
