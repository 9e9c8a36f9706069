# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of bridge: judges which bridges are stray, where none is named."""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from .node_check import ActionModule as NodeCheck

RULE = "links.stray_bridge"
ARGUMENTS = {
    "state": {"type": "str", "choices": ["absent"], "default": "absent"},
    "name": {"type": "list", "elements": "str"},
    "allow_default_bridge": {"type": "bool", "default": False},
    "policy": {"type": "dict", "default": {}},
    "timeout": {"type": "float", "default": 5.0},
}


class ActionModule(NodeCheck):
    def run(self, tmp=None, task_vars=None):
        ActionBase.run(self, tmp, task_vars)  # not the look of node_check: here it is only a question
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        if arguments["name"] is None:
            looking = {"checks": [RULE], "exclude": [], "policy": arguments["policy"], "timeout": arguments["timeout"], "return_facts": False}
            judged = self.look(looking, task_vars)
            unknown = [one["message"] for one in judged["findings"] if one["status"] == "unknown"]
            if judged.get("failed") or unknown:
                return {"failed": True, "changed": False, "refused": True, "msg": judged.get("msg") or "nobody can tell which bridges are stray: " + unknown[0]}
            arguments["name"] = [one["evidence"]["bridge"] for one in judged["findings"] if one["status"] == "fail"]
        return self._execute_module(module_name="nodecare.kubernetes.bridge", module_args=arguments, task_vars=task_vars)
