# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. To wait for something on a node, and to say so: which node, what for, and for how long."""

from __future__ import annotations

import time

from ansible.errors import AnsibleConnectionFailure

from ._report.words import safe


class Patience:
    def __init__(self, action, node, limit, every):
        self.action = action
        self.node = node
        self.limit = limit
        self.every = every
        self.start = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.start

    def is_over(self):
        return self.seconds >= self.limit

    def wait(self, what):
        """Until it is worth to look again."""
        self.action._display.display("%s: %.0f of %g s: waiting for %s" % (safe(self.node), self.seconds, self.limit, safe(what)))
        time.sleep(max(0.0, min(self.every, self.limit - self.seconds)))

    def through(self, look, otherwise):
        """What a look says; where the connection is lost, what was said before, as long as the patience lasts."""
        try:
            return look()
        except AnsibleConnectionFailure as error:
            if self.is_over():
                raise
            self.action._display.display("%s: no connection (%s)" % (safe(self.node), safe(str(error))[:200]))
            self.action._connection.reset()
            return otherwise
