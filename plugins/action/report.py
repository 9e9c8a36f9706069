# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects what node_check found on all nodes of the play, compares the nodes, writes the reports, and decides the outcome."""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _judge, _report
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._rules import RULES

ARGUMENTS = {
    "results": {"type": "str", "default": "nodecare_check"},
    "checks": {"type": "list", "elements": "str", "default": ["*"]},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "dict", "default": {}},
    "path": {"type": "path", "default": "nodecare-report"},
    "formats": {"type": "list", "elements": "str", "default": list(_report.WRITERS), "choices": list(_report.WRITERS)},
    "fail_on": {"type": "str", "default": "error", "choices": ["error", "warning", "never"]},
}
FAILING = {"error": ("error",), "warning": ("error", "warning"), "never": ()}


class ActionModule(ActionBase):
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        try:
            checked = policy(arguments["policy"], known_rules=list(RULES))
            chosen = _judge.select(arguments["checks"], arguments["exclude"], checked)
        except (_judge.SelectionError, PolicyError) as error:
            raise AnsibleActionFail(str(error)) from None
        nodes, policies, findings = {}, {}, []
        for name in task_vars["ansible_play_hosts_all"]:
            result = task_vars["hostvars"][name].get(arguments["results"]) or {}
            nodes[name] = result.get("facts")
            policies[name] = policy(result["policy"]) if result.get("policy") else checked
            findings.extend(result.get("findings") or [_lost(name, result, checked)])
        read = {name: facts for name, facts in nodes.items() if facts}
        findings = _judge.merge(findings, _judge.judge_across(read, policies, chosen, checked))
        report = _report.document(nodes, findings)
        paths = _report.write(report, os.path.abspath(arguments["path"]), arguments["formats"])
        self._display.display(_report.terminal_text(report))
        for path in paths.values():
            self._display.display("Report: %s" % path)
        return self._outcome(report, paths, FAILING[arguments["fail_on"]])

    @staticmethod
    def _outcome(report, paths, failing):
        bad = [one for one in report["findings"] if one["status"] == "fail" and one["severity"] in failing]
        result = {"changed": False, "summary": report["summary"], "paths": paths}
        if bad:
            nodes = len({one["node"] for one in bad})
            result.update(
                failed=True, msg="%d findings on %d of %d nodes must be put right before these nodes are used" % (len(bad), nodes, len(report["nodes"]))
            )
        return result


def _lost(name, result, checked):
    """The finding about a node whose task gave no findings."""
    rule_id = "node.unreachable" if result.get("unreachable") else "node.unreadable"
    return _judge.judge_lost(name, rule_id, str(result.get("msg") or "it was not read in this run"), checked)
