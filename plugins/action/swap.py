# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of swap: waits for swapoff, which may take hours, and says how far it is."""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from ..plugin_utils._patience import Patience

EVERY = 5  # seconds between two looks; each costs the node one start of Python
ARGUMENTS = {
    "state": {"type": "str", "choices": ["absent"], "default": "absent"},
    "even_if_tolerated": {"type": "bool", "default": False},
    "allow_disruption": {"type": "bool", "default": False},
    "reserve_mib": {"type": "int", "default": 500},
    "reserve_percent": {"type": "float", "default": 10.0},
    "wait": {"type": "float", "default": 600.0},
    "timeout": {"type": "float", "default": 5.0},
}
GOES_ON = "swapoff of %s is not through after %g s: %s. It goes on by itself; the same task waits for it again"


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        patience = Patience(self, task_vars["inventory_hostname"], arguments["wait"], EVERY)
        first = answer = self._ask(arguments, task_vars)
        while answer.get("waiting") and not answer.get("failed"):
            left = ", ".join("%(device)s: %(mib).0f MiB left" % {**one, "mib": one["used_kib"] / 1024} for one in answer["waiting"])
            if patience.is_over():
                devices = ", ".join(one["device"] for one in answer["waiting"])
                return {**_together(first, answer), "failed": True, "msg": GOES_ON % (devices, arguments["wait"], left)}
            patience.wait("swapoff, " + left)
            answer = patience.through(lambda: self._ask(arguments, task_vars), answer)
        return _together(first, answer)

    def _ask(self, arguments, task_vars):
        return self._execute_module(module_name="nodecare.kubernetes.swap", module_args=arguments, task_vars=task_vars)


def _together(first, last):
    """What was done belongs to the first look, how it ended to the last."""
    if first is last or first.get("failed"):
        return first
    done = {key: first[key] for key in ("changes", "diff", "was_active", "journal") if key in first}
    return {**last, **done, "changed": bool(first.get("changed")), "warnings": [*(first.get("warnings") or []), *(last.get("warnings") or [])]}
