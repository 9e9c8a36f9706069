# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a node again and again until some rules find it well, and says what it waits for."""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from ..plugin_utils import _judge
from ..plugin_utils._patience import Patience
from .node_check import ARGUMENTS as CHECK
from .node_check import ActionModule as NodeCheck

OWN = {"within": {"type": "float", "default": 300.0}, "every": {"type": "float", "default": 5.0}}
ARGUMENTS = {
    "checks": {"type": "list", "elements": "str", "required": True},
    **{name: CHECK[name] for name in ("exclude", "policy", "timeout")},
    **OWN,
}
NOT_YET = ("fail", "unknown")


class ActionModule(NodeCheck):
    def run(self, tmp=None, task_vars=None):
        ActionBase.run(self, tmp, task_vars)  # not the look of node_check: there are many
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        looking = {**{name: value for name, value in arguments.items() if name not in OWN}, "return_facts": False}
        patience = Patience(self, task_vars["inventory_hostname"], arguments["within"], arguments["every"])
        answer = {"findings": []}
        while True:
            answer = patience.through(lambda: self.look(looking, task_vars), answer)
            ill = [one for one in answer["findings"] if one["status"] in NOT_YET]
            result = {"changed": False, "findings": answer["findings"], "summary": _judge.summary(answer["findings"]), "seconds": round(patience.seconds, 1)}
            if answer["findings"] and not ill:
                return result
            if patience.is_over():
                return {**result, "failed": True, "msg": "not well after %.0f s: %s" % (patience.seconds, _why(ill))}
            patience.wait(_why(ill))


def _why(ill):
    return "; ".join("%(title)s (%(id)s): %(message)s" % one for one in ill[:3]) or "a first look"
