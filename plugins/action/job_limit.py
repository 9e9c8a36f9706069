# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses a job of AWX that does not say which nodes it is for, before anything is read or touched."""

from __future__ import annotations

from ansible.plugins.action import ActionBase

from ..plugin_utils import _awx
from ..plugin_utils._report.words import safe

ARGUMENTS = {"confirm": {"type": "str", "default": ""}}


class ActionModule(ActionBase):
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        limit = task_vars.get("ansible_limit") or ""
        confirmed = None if self._task.check_mode else arguments["confirm"]
        why = _awx.refusal(task_vars, limit, task_vars["groups"], confirmed)
        result = {"changed": False, "job": _awx.job(task_vars), "limit": limit}
        return {**result, "failed": True, "msg": safe(why)} if why else result
