# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of runtime: waits for daemons that take their time to end and to come back, and says which."""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from ..plugin_utils._patience import Patience

EVERY = 1  # seconds between two looks, each of which waits on the node for some seconds, too
ARGUMENTS = {
    "state": {"type": "str", "choices": ["restarted"], "default": "restarted"},
    "drained": {"type": "bool", "default": False},
    "settle": {"type": "float", "default": 30.0},
    "wait": {"type": "float", "default": 300.0},
    "timeout": {"type": "float", "default": 5.0},
}
NOT_YET = "not well after %.0f s; waiting for %s. The same task goes on with it"


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        patience = Patience(self, task_vars["inventory_hostname"], arguments["wait"], EVERY)
        first = answer = self._ask(arguments, task_vars)
        changed = bool(first.get("changed"))
        while answer.get("waiting") and not answer.get("failed"):
            if patience.is_over():
                return {**_together(first, answer), "changed": changed, "failed": True, "msg": NOT_YET % (patience.seconds, "; ".join(answer["waiting"]))}
            patience.wait("; ".join(answer["waiting"]))
            answer = patience.through(lambda: self._ask(arguments, task_vars), answer)
            changed = changed or bool(answer.get("changed"))
        return {**_together(first, answer), "changed": changed}

    def _ask(self, arguments, task_vars):
        return self._execute_module(module_name="nodecare.kubernetes.runtime", module_args=arguments, task_vars=task_vars)


def _together(first, last):
    """What was found ill belongs to the first look, how it ended to the last."""
    if first is last or first.get("failed"):
        return first
    return {**last, **{key: first[key] for key in ("ill", "diff", "kills_pods") if key in first}}
