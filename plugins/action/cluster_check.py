# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the API server once for the whole play, from the controller."""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _sweep

ARGUMENTS = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "username": {"type": "str"},
    "password": {"type": "str", "no_log": True},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "proxy_headers": {
        "type": "dict",
        "options": {
            "proxy_basic_auth": {"type": "str", "no_log": True},
            "basic_auth": {"type": "str", "no_log": True},
            "user_agent": {"type": "str"},
        },
    },
    "persist_config": {"type": "bool"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
    "timeout": {"type": "float", "default": 20.0},
}


class ActionModule(ActionBase):
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        seconds = arguments.pop("timeout")
        if seconds <= 0:
            raise AnsibleActionFail("timeout is %s; a sweep needs more than 0 seconds" % seconds)
        try:
            cluster = _sweep.read(arguments, seconds, self._environment())
        except _sweep.ClientError as error:
            raise AnsibleActionFail(str(error)) from None
        return {"changed": False, "cluster": cluster, "msg": _said(cluster)}

    def _environment(self):
        """With what the play or the task sets, as a module on a host would have it."""
        found = dict(os.environ)
        for given in self._task.environment or []:
            found.update(self._templar.template(given) or {})
        return found


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
