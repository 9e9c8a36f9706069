"""What a job leaves for later ones: when it names the one node that is to be repaired."""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _artifacts
from findings import finding, report

SWAP, RUNTIME, TUNE = ("nodecare.kubernetes." + name for name in ("repair_swap", "repair_runtime", "repair_probes"))


@pytest.mark.parametrize(
    ("repairs", "node"),
    [
        ([], None),
        ([("n1", None)], None),
        ([("n1", SWAP)], "n1"),
        ([("n1", SWAP), ("n1", RUNTIME), ("n2", None)], "n1"),
        ([("n1", SWAP), ("n2", SWAP)], None),
        ([("n1", SWAP), ("n2", RUNTIME)], None),
        ([("cluster", TUNE)], None),
        ([("n1", TUNE)], None),
        ([("n1", SWAP), ("n1", TUNE)], None),
        ([("n7", SWAP)], None),
    ],
)
def test_one_node_is_named_where_all_repairs_are_of_one_host_and_change_no_other(repairs, node):
    findings = [finding(node=where, remedy={"playbook": playbook, "vars": {}, "disruptive": False, "reboot": False}) for where, playbook in repairs]
    assert _artifacts.of_report(report(findings, ["n1", "n2"]), ["n1", "n2"], {}).get("nodecare_found_only_on") == node
