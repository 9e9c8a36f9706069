# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What all actions have in common that ask the API server, which they do on the controller."""

from __future__ import annotations

import os

from ansible.plugins.action import ActionBase

from . import opened

ACCESS = {
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
}


class ClusterAction(ActionBase):
    _requires_connection = False
    _supports_check_mode = True

    def opened(self, arguments, seconds):
        """The way to the API server that the task's arguments and its environment name."""
        return opened({name: arguments.get(name) for name in ACCESS}, seconds, self.environment())

    def environment(self):
        """With what the play or the task sets, as a module on a host would have it."""
        found = dict(os.environ)
        for given in self._task.environment or []:
            found.update(self._templar.template(given) or {})
        return found
