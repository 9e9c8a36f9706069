"""What the nodes of a play have registered, brought together, and what it means for the end of the run."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.nodecare.kubernetes.plugins.action.report import FAILING, _outcome
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _registered
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._collected import collected
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from findings import finding, report


def test_a_node_that_was_read_without_a_rule_of_its_own_is_not_lost():
    """As where only rules are chosen that compare nodes."""
    results = [("a", {"facts": {"problems": []}, "findings": []}), ("b", {"unreachable": True, "msg": "no route"}), ("c", {})]
    _nodes, _policies, findings = collected(results, policy({}))
    assert [(one["node"], one["id"]) for one in findings] == [("b", "node.unreachable"), ("c", "node.unreadable")]


def test_a_host_that_is_called_as_the_cluster_is():
    with pytest.raises(AnsibleActionFail, match="give that host another name"):
        list(_registered.results({"hostvars": {}, "ansible_play_hosts_all": ["cluster"]}, "said"))


@pytest.mark.parametrize(
    ("findings", "fail_on", "says"),
    [
        ([finding()], "error", "1 finding on 1 of 2 nodes must be put right"),
        ([finding()], "never", None),
        ([finding(severity="warning")], "error", None),
        ([finding(severity="warning")], "warning", "1 finding on 1 of 2 nodes"),
        ([finding(status="warn")], "error", None),
        ([finding(status="warn")], "warning", "1 finding on 1 of 2 nodes"),
        ([finding(status="warn", severity="info")], "warning", None),
        ([finding(status="unknown")], "warning", None),
        ([finding(), finding(node="n7"), finding("cluster.unread", "cluster")], "error", "3 findings on 2 of 3 nodes"),
        ([finding("cluster.unread", "cluster")], "error", "1 finding about the cluster must be put right"),
    ],
)
def test_outcome(findings, fail_on, says):
    said = _outcome(report(findings, ["n1", "n2"]), ["n1", "n2"], {}, [], FAILING[fail_on])
    assert bool(said.get("failed")) is bool(says)
    assert (says or "") in said.get("msg", "")
