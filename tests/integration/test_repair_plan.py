"""repair.yml on real sshd: shown, agreed to, carried out in the plan's order, and ended by the first node that does not get better."""

from __future__ import annotations

import json
import re

import pytest
from cores import NEWEST, OLDEST
from test_repair import NODES, changed, nodes  # noqa: F401 - a fixture

pytestmark = pytest.mark.apart

ONLY = {"nodecare_checks": ["swap", "node"], "nodecare_cluster": False}


def turns(said):
    """The nodes of the plan that is shown, in its order."""
    return re.findall(r"^\d+ +(\S+) +repair_swap", said, re.M)


def test_it_is_shown_and_nothing_more(nodes):  # noqa: F811
    said = nodes.play("repair", expect=2, **ONLY)
    assert turns(said) == list(NODES), said
    assert "Nothing was changed. To carry the plan out" in said
    assert nodes.untouched() == list(NODES)


@pytest.mark.slow
@pytest.mark.parametrize("core", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_predicted_and_carried_out_in_order(nodes, core):  # noqa: F811
    """s1 belongs to the control plane, and so comes last; s4 is not in the limit."""
    only = {**ONLY, "nodecare_report_dir": str(nodes.place / "out")}
    inventory = nodes.place / "more.ini"
    inventory.write_text("[control_plane]\ns1\n")
    limited = ("-i", str(inventory), "--limit", "s1,s2,s3")
    predicted = nodes.play("repair", *limited, "--check", "--diff", core=core, **only)
    assert nodes.untouched() == list(NODES)
    assert turns(predicted) == ["s2", "s3", "s1"]
    done = nodes.play("repair", *limited, core=core, nodecare_consent=True, **only)
    assert nodes.repaired() == ["s1", "s2", "s3"] and nodes.untouched() == ["s4"]
    begun = re.findall(r"^(?:changed|ok): \[(s\d)\]", done.partition("Turn swap off, and stop what would turn it on again")[2], re.M)
    assert list(dict.fromkeys(begun)) == ["s2", "s3", "s1"], done
    assert changed(done) == changed(predicted) == {"s1": 1, "s2": 1, "s3": 1}
    plan = json.loads((nodes.place / "out" / "plan.json").read_text())
    assert [turn["node"] for turn in plan["turns"]] == ["s2", "s3", "s1"]
    again = nodes.play("repair", *limited, core=core, nodecare_consent=True, **only)
    assert "nothing that a playbook repairs is wrong" in again and set(changed(again).values()) == {0}
    earlier = nodes.play("repair", *limited, core=core, nodecare_consent=True, nodecare_report=str(nodes.place / "out"), **only)
    assert set(changed(earlier).values()) == {0}


@pytest.mark.parametrize("hook", ["echo Cannot allocate memory; exit 4\n", "printf 'exit 255\\n' >COMMAND; sleep 1\n"], ids=["fails", "is lost"])
def test_the_first_node_that_does_not_get_better_ends_it(hook, nodes):  # noqa: F811
    (nodes.hooks / "s1").write_text(hook.replace("COMMAND", str(nodes.command("s1"))))
    said = nodes.play("repair", expect=2, nodecare_consent=True, nodecare_swap_wait=4, nodecare_wait=4, **ONLY)
    assert nodes.untouched()[-3:] == ["s2", "s3", "s4"], said
    assert "No further node is touched" in said, said
    nodes.heal()
    nodes.play("repair", nodecare_consent=True, **ONLY)
    assert nodes.repaired() == list(NODES)


def test_a_file_that_is_no_report(nodes):  # noqa: F811
    place = nodes.place / "report.json"
    for text, words in (("{", "is no JSON"), ("{}", "has the schema None"), ('{"schema": "nodecare.report/1", "findings": [{}], "nodes": {}}', "is damaged")):
        place.write_text(text)
        assert words in nodes.play("repair", expect=2, nodecare_report=str(place), nodecare_consent=True)
    assert nodes.untouched() == list(NODES)
