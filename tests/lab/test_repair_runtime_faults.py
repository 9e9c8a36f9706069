"""The repair of a runtime over a real sshd, with faults at each step, on stand-ins of containerd and systemctl: no further node is touched."""

from __future__ import annotations

import re

import pytest
from silent import changed, silent_nodes


@pytest.fixture
def nodes(tmp_path):
    with silent_nodes(tmp_path) as made:
        yield made


ACT = "Restart what is ill, and nothing else"
# what happens to s1: the task at whose beginning it is cut off, what is done there before
FAULTS = {
    "cut off before anything is restarted": (ACT, "", True),
    "cut off while it is restarted": ("never", "echo exit 255 >COMMAND", True),
    "cut off at the last look": ("Wait until the probe finds that each runtime answers, and that the kubelet runs", "", True),
    "it does not come up again": ("never", ">broken", False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_further_node_is_touched(fault, nodes):
    task, hook, again = FAULTS[fault]
    if hook:
        nodes.on("s1", "cat >/run/unit/hook <<'END'\n%s\nEND" % hook.replace("COMMAND", str(nodes.fleet.place / "s1.sh")))
    said = nodes.play(expect=2, plug=(task, "s1"), nodecare_wait=4, nodecare_runtime_wait=8)
    assert nodes.asked()["s2"] == [] and nodes.journals() in ([], ["s1"]), said
    assert not re.search(r"\bs2\b", said), "they were looked at:\n" + said
    assert "No further node is touched" in said, said
    nodes.heal()
    if again:
        nodes.on("s1", "rm -f /run/unit/hook")
        nodes.play()
        assert nodes.asked() == {"s1": ["restart"], "s2": ["restart"]}
        assert changed(nodes.play()) == {"s1": 0, "s2": 0}
