"""repair.yml on real nodes: from one diagnosis, first what is wrong with a node, then the setting that all nodes share."""

from __future__ import annotations

import json

from labs import BOOT, changed, eventually
from mesh import ILL, SECOND_NIC, WELL, healed, registered  # noqa: F401 - a fixture
from test_repair_autodetection import template

SWAPPING = "n3"
JUDGED = ["swap", "calico.registered_wrong_address", "calico.wrong_address"]


def plan(place):
    return json.loads((place / "plan.json").read_text())


def turns(place):
    return [(turn["node"], [step["playbook"].rpartition(".")[2] for step in turn["steps"]]) for turn in plan(place)["turns"]]


def swaps(cluster):
    return cluster.on(SWAPPING, "swapon --noheadings --show=NAME").split()


def test_a_node_and_then_the_setting_of_all(healed, tmp_path):  # noqa: F811
    before = template(healed)
    asked = {"nodecare_checks": JUDGED, "nodecare_report_dir": str(tmp_path), "nodecare_allow_disruption": True, "nodecare_wait": 600}
    healed.do("fault", SWAPPING, "swap")
    healed.do("fault", ILL, "wrong-nic")
    try:
        eventually("Calico to register the second network's address", lambda: registered(healed) == {**WELL, ILL: SECOND_NIC}, BOOT)
        shown = healed.play("repair", expect=(2,), **asked)
        assert turns(tmp_path) == [(SWAPPING, ["repair_swap"]), ("cluster", ["repair_autodetection"])], shown
        assert "Nothing was changed. To carry the plan out" in " ".join(shown.split()) and swaps(healed) and template(healed) == before
        said = healed.play("repair", "--diff", nodecare_consent=True, nodecare_plan_id=plan(tmp_path)["id"], **asked)
        assert swaps(healed) == [] and registered(healed) == WELL, said
        assert said.index("Turn swap off, and stop") < said.index("Set what is one setting for the whole cluster")
        assert changed(said)[SWAPPING] > 0
        again = healed.play("repair", nodecare_consent=True, **asked)
        assert sum(changed(again).values()) == 0 and turns(tmp_path) == [], again
    finally:
        healed.do("heal", ILL, "wrong-nic")
        healed.play("repair_autodetection", nodecare_state="as_before")
        healed.play("undo", "--limit", SWAPPING)  # other nodes' journals hold the repairs of other tests
        healed.on(SWAPPING, "swapoff --all")  # as it was before the repair, which found it on
        healed.do("heal", SWAPPING, "all")
    assert template(healed) == before
