"""repair.yml on real sshd: shown, agreed to, carried out in the plan's order, and ended by the first node that does not get better."""

from __future__ import annotations

import json
import re

import pytest
from cores import OLDEST
from test_repair import NODES, changed, nodes  # noqa: F401 - a fixture

ONLY = {"nodecare_checks": ["swap", "node"], "nodecare_cluster": False}


def turns(said):
    """The nodes of the plan that is shown, in its order."""
    return re.findall(r"^\d+ +(\S+) +repair_swap", said, re.M)


@pytest.fixture
def limited(nodes):  # noqa: F811
    """s1 belongs to the control plane, and so comes last; s3 and s4 are not in the limit."""
    inventory = nodes.place / "more.ini"
    inventory.write_text("[control_plane]\ns1\n")
    return ("-i", str(inventory), "--limit", "s1,s2")


def test_it_is_shown_and_nothing_more(nodes, limited):  # noqa: F811
    said = nodes.play("repair", *limited, expect=2, **ONLY)
    assert turns(said) == ["s2", "s1"], said
    assert "Nothing was changed. To carry the plan out" in said
    assert nodes.untouched() == list(NODES)


@pytest.mark.slow
def test_it_is_carried_out_in_its_order(nodes, limited):  # noqa: F811
    """By the oldest ansible-core, whose batches have to follow the order in which the hosts were added as well."""
    place = nodes.place / "out"
    done = nodes.play("repair", *limited, core=OLDEST, nodecare_consent=True, nodecare_report_dir=str(place), **ONLY)
    assert nodes.repaired() == ["s1", "s2"] and nodes.untouched() == ["s3", "s4"]
    begun = re.findall(r"^(?:changed|ok): \[(s\d)\]", done.partition("Turn swap off, and stop what would turn it on again")[2], re.M)
    assert list(dict.fromkeys(begun)) == ["s2", "s1"], done
    assert changed(done) == {"s1": 1, "s2": 1}
    assert [turn["node"] for turn in json.loads((place / "plan.json").read_text())["turns"]] == ["s2", "s1"]


def test_the_first_node_that_does_not_get_better_ends_it(nodes):  # noqa: F811
    (nodes.hooks / "s1").write_text("printf 'exit 255\\n' >%s; sleep 1\n" % nodes.command("s1"))
    said = nodes.play("repair", expect=2, nodecare_consent=True, nodecare_swap_wait=4, nodecare_wait=4, **ONLY)
    assert nodes.untouched()[-3:] == ["s2", "s3", "s4"], said
    assert "No further node is touched" in said and "Set what is one setting" not in said, said
