# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges a node together with its cluster again and again, until what it was repaired for is found no more."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _judge, _registered, _sweep
from ..plugin_utils._api import ClientError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._patience import Patience
from ..plugin_utils._policy import policy
from ..plugin_utils._rules._rule import CLUSTER
from .node_check import ARGUMENTS as CHECK
from .node_check import ActionModule as NodeCheck

ARGUMENTS = {
    **ACCESS,
    "checks": {"type": "list", "elements": "str", "required": True},
    "cluster": {"type": "bool", "default": False},
    "results": {"type": "str", "default": "nodecare_check"},
    **{name: CHECK[name] for name in ("policy", "timeout")},
    "within": {"type": "float", "default": 300.0},
    "every": {"type": "float", "default": 5.0},
}
SWEEP_S = 20.0
NOT_YET = ("fail", "unknown")


class ActionModule(NodeCheck, ClusterAction):
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        ActionBase.run(self, tmp, task_vars)  # not the look of node_check: there are many
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        patience = Patience(self, task_vars["inventory_hostname"], arguments["within"], arguments["every"])
        said = None
        while True:
            said = patience.through(lambda: self.findings(arguments, task_vars), said)
            findings = said or []
            ill = [one for one in findings if one["status"] in NOT_YET]
            result = {"changed": False, "findings": findings, "summary": _judge.summary(findings), "seconds": round(patience.seconds, 1)}
            if said is not None and not ill:
                return result
            if patience.is_over():
                return {**result, "failed": True, "msg": "not better after %.0f s: %s" % (patience.seconds, _why(ill))}
            patience.wait(_why(ill))

    def findings(self, arguments, task_vars):
        """What the rules say now, of this node and of the cluster, compared with what is known of the other nodes."""
        node = task_vars["inventory_hostname"]
        looked = self.look({**CHECKS, **{name: arguments[name] for name in ("checks", "policy", "timeout")}}, task_vars)
        if looked.get("failed"):
            return looked["findings"]
        checked = policy(arguments["policy"])
        chosen = _judge.select(arguments["checks"], policy=checked)
        others = {name: result["facts"] for name, result in _registered.results(task_vars, arguments["results"]) if result.get("facts")}
        nodes = {**others, node: looked["facts"]}
        found = _judge.judge_together(looked["findings"], nodes, dict.fromkeys(nodes, checked), chosen, checked, self._cluster(arguments))
        return [one for one in found if one["node"] in (node, CLUSTER)]

    def _cluster(self, arguments):
        if not arguments["cluster"]:
            return None
        try:
            return _sweep.read({name: arguments.get(name) for name in ACCESS}, SWEEP_S, self.environment())
        except ClientError as error:
            raise AnsibleActionFail(str(error)) from None


CHECKS = {"exclude": [], "return_facts": True}


def _why(ill):
    return "; ".join("%(title)s (%(id)s): %(message)s" % one for one in ill[:3]) or "a first look"
