"""The last words of a run that stops: how the node is left, and the command that undoes that."""

from __future__ import annotations

import json
import re

import pytest
from checkout import BIN, run

UNMARK = "kubectl annotate node w1 nodecare/repair-"
UNCORDON = "kubectl uncordon w1 && " + UNMARK
OURS = {"node": "w1", "refused": False, "undo_command": UNCORDON}
PASSED_OVER = {"skipped": True, "changed": False}  # what a task registers that was left out
EARLIER = {"node": "w1", "marked": True, "undo_command": UNCORDON}
WELL = {"node": "w1", "marked": False, "undo_command": ""}
AGAIN = "to finish it, run this again with --limit localhost; when it is well, by hand: "

# what the run knows: (guard_mark, guard_gate, guard_cordoned), and what it says
CASES = {
    "nothing was asked": ({}, {}, False, None),
    "no repair has marked it": (PASSED_OVER, WELL, False, None),
    "this run has cordoned it": (OURS, WELL, True, "The Node w1 is left cordoned on purpose: " + AGAIN + UNCORDON),
    "it was cordoned before by somebody else": ({**OURS, "undo_command": UNMARK}, WELL, False, "The Node w1 is left marked: " + AGAIN + UNMARK),
    "nobody knows whether this run has cordoned it": ({"node": "w1", "refused": False}, WELL, False, "Whether the Node w1 is cordoned is not known"),
    "an earlier run has cordoned it": (PASSED_OVER, EARLIER, False, "The Node w1 is still cordoned for a repair that is not finished: " + AGAIN + UNCORDON),
    "an earlier one has marked it": (
        PASSED_OVER,
        {**EARLIER, "undo_command": UNMARK},
        False,
        "The Node w1 is still marked for a repair that is not finished: " + AGAIN + UNMARK,
    ),
    "it may not be cordoned, and an earlier run has": ({"node": "w1", "refused": True}, EARLIER, False, "The Node w1 is still cordoned for a repair"),
    "an earlier run's was given back": ({}, {**EARLIER, "undo_command": ""}, False, None),
}


def play(case):
    mark, gate, cordoned, _said = CASES[case]
    facts = {"guard_trouble": "it went wrong", "guard_ended": False, "guard_mark": mark, "guard_gate": gate, "guard_cordoned": cordoned}
    said = {"ansible.builtin.debug": {"msg": "<{{ ansible_failed_result.msg }}>"}}
    stop = {"ansible.builtin.include_role": {"name": "nodecare.kubernetes.guard", "tasks_from": "stop"}}
    tasks = [{"ansible.builtin.set_fact": facts}, {"block": [stop], "rescue": [said]}]
    return {"hosts": "localhost", "gather_facts": False, "tasks": tasks}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{case: the words of the stop}, of one run."""
    plays = tmp_path_factory.mktemp("stop") / "plays.yml"
    plays.write_text(json.dumps([play(case) for case in CASES]))
    words = run(BIN / "ansible-playbook", plays, "-i", "localhost,", "-c", "local")
    return dict(zip(CASES, re.findall(r'"msg": "<(.*)>"', words)))


@pytest.mark.parametrize("case", CASES)
def test_how_the_node_is_left(case, said):
    wanted = CASES[case][3]
    assert "localhost: it went wrong. No further node is touched." in said[case]
    assert wanted in said[case] if wanted else "kubectl" not in said[case], said[case]
