# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes and shows the plan over all repairs, from what was found in this run or from an earlier report."""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.color import ANSIBLE_COLOR

from ..plugin_utils import _artifacts, _judge, _plan, _registered, _report, _reported
from ..plugin_utils._collected import collected
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._report import plan as shown
from ..plugin_utils._rules import RULES

GROUPS = ["control_plane", "controlplane", "kube_control_plane", "kube-master", "masters", "master", "etcd"]
ARGUMENTS = {
    "report": {"type": "path"},
    "results": {"type": "str", "default": "nodecare_check"},
    "cluster_results": {"type": "str", "default": "nodecare_cluster_check"},
    "checks": {"type": "list", "elements": "str", "default": ["*"]},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "dict", "default": {}},
    "allow_disruption": {"type": "bool", "default": False},
    "reboot_ok": {"type": "bool"},
    "same_percent": {"type": "float", "default": 34.0},
    "control_plane_groups": {"type": "list", "elements": "str", "default": GROUPS},
    "path": {"type": "path"},
}


class ActionModule(ActionBase):
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        if not 0 < arguments["same_percent"] <= 100:
            raise AnsibleActionFail("same_percent is %g; it has to be more than 0 and at most 100" % arguments["same_percent"])
        try:
            found = _reported.read(arguments["report"], arguments["policy"]) if arguments["report"] else _found(arguments, task_vars)
        except (_reported.ReportError, _judge.SelectionError, PolicyError) as error:
            raise AnsibleActionFail(str(error)) from None
        hosts = [str(name) for name in task_vars["ansible_play_hosts_all"]]
        groups = task_vars.get("groups") or {}
        said = {str(name) for group in arguments["control_plane_groups"] for name in groups.get(group) or []}
        machines = {**dict.fromkeys([*found.names, *hosts], {"taken": {}}), **found.nodes}
        nodes, others = _plan.known(machines, found.cluster, said)
        others += [name for name in machines if name not in hosts]
        consent = _plan.Consent(arguments["allow_disruption"], arguments["reboot_ok"])
        plan = _plan.plan(found.findings, hosts, nodes, others, consent, arguments["same_percent"])
        self._display.display(shown.text(plan, colour=ANSIBLE_COLOR))
        return {"changed": False, "plan": plan, "turns": _plan.can_begin(plan), "artifacts": _artifacts.of_plan(plan), **self._written(plan, arguments["path"])}

    def _written(self, plan, directory):
        if not directory:
            return {}
        path, broken = _report.write_plan(plan, os.path.abspath(directory))
        if broken:
            return {"failed": True, "msg": broken}
        self._display.display("\nPlan: %s" % path)
        return {"path": path}


def _found(arguments, task_vars):
    """What the nodes and the cluster of this run have been found to be."""
    checked = policy(arguments["policy"], known_rules=list(RULES))
    chosen = _judge.select(arguments["checks"], arguments["exclude"], checked)
    nodes, policies, findings = collected(_registered.results(task_vars, arguments["results"]), checked)
    read = {name: facts for name, facts in nodes.items() if facts}
    cluster = _registered.cluster(task_vars, arguments["cluster_results"])
    findings = _judge.judge_together(findings, read, policies, chosen, checked, cluster)
    return _reported.Reported(findings, list(nodes), read, cluster)
