# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the API server once for the whole play, from the controller."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _sweep
from ..plugin_utils._api import ClientError
from ..plugin_utils._api._action import ACCESS, ClusterAction

ARGUMENTS = {**ACCESS, "timeout": {"type": "float", "default": 20.0}}


class ActionModule(ClusterAction):
    BYPASS_HOST_LOOP = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        seconds = arguments.pop("timeout")
        if seconds <= 0:
            raise AnsibleActionFail("timeout is %s; a sweep needs more than 0 seconds" % seconds)
        try:
            cluster = _sweep.read(arguments, seconds, self.environment())
        except ClientError as error:
            raise AnsibleActionFail(str(error)) from None
        return {"changed": False, "cluster": cluster, "msg": _said(cluster)}


def _said(cluster):
    problems, server = cluster["problems"], cluster["taken"]["server"]
    if any(one["fact"] == "cluster" for one in problems):
        return "nothing could be read from %s: %s" % (server, problems[0]["why"])
    nodes = "no nodes" if cluster["nodes"] is None else "1 node" if len(cluster["nodes"]) == 1 else "%d nodes" % len(cluster["nodes"])
    version = cluster["calico"]["version"]
    read = "%s and %s were read from %s" % (nodes, "Calico %s" % version if version else "no Calico", server)
    missing = sorted(one["fact"] for one in problems)
    more = ", …" if len(missing) > 3 else ""
    return "%s; what could not be read is named among its problems: %s%s" % (read, ", ".join(missing[:3]), more) if missing else read
