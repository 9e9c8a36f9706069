"""The diagnosis as an operator reads it."""

from __future__ import annotations

from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._diagnosis import diagnose, untold
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report import diagnosis
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report.words import width
from findings import HOSTILE, finding
from test_diagnosis import of_story


def told(findings, symptom=None):
    return diagnosis.text(diagnose(findings, symptom), symptom, untold(findings, symptom))


def test_swap_that_came_back():
    found = [*of_story("I5"), finding("swap.returns", "n2", title="Swap will come back", message="/dev/sda2 is activated by /etc/fstab line 3")]
    assert told(found, {"node": "n2"}).splitlines()[:4] == [
        "n2: 1 cause",
        "",
        " 1 FAIL  n2: The kubelet refuses to start because swap is on  [kubelet.refuses_swap]",
        "         the kubelet refused to start 80 times in the last hour because swap is on (/dev/sda2,",
    ]
    rest = told(found, {"node": "n2"})
    assert "Explains cluster.node_not_ready on n2: NotReady for 10 min (Kubelet stopped posting node" in rest
    assert "Disproved if: journalctl -u kubelet -n 100 on n2 has no" in rest
    assert "         Repair" in rest
    assert "So that it does not come back (swap.returns): /dev/sda2 is activated by /etc/fstab line 3" in rest


def test_what_is_asked_for_is_repeated():
    assert told([]) == "all nodes: nothing that was read is wrong"
    assert told([], {"pod": "kube-system/calico-node-x", "node": "n1"}) == "pod kube-system/calico-node-x on n1: nothing that was read is wrong"


def test_what_was_not_looked_at_is_told():
    stuck = finding("calico.init_stuck", "n1", title="Stuck", message="Init:0/3", evidence={"cause": "unknown"})
    lost = finding("runtime.unresponsive", "n1", "unknown", message="cannot tell: containerd: permission denied")
    said = told([stuck, lost])
    assert "This is what is seen; what is behind it was not found." in said
    assert said.endswith("Could not be looked at, and might explain it:\n         runtime.unresponsive on n1: containerd: permission denied")


def test_any_text_stays_on_its_lines():
    found = [finding("links.stray_bridge", text, title=text, message=text, evidence={"bridge": text}) for text in HOSTILE]
    said = told([*found, *(finding("calico.bgp", text, message=text, evidence={"lacked_by": HOSTILE}) for text in HOSTILE)])
    assert all(width(line) <= 100 and line.isprintable() for line in said.split("\n"))


def test_many_causes_are_cut():
    said = told([finding("swap.active", "n%d" % number) for number in range(50)])
    assert said.endswith("and 40 causes more")
