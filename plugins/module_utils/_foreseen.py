# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The node as it will be once some changes are made, shown to the same probes that look at the real one."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

from ._changes import Change, Paths
from ._node import Node

TURNS = ("directory", "link", "file", "absent")
MODES = {"file": 0o100000, "link": 0o120000, "directory": 0o040000}


class Foreseen(Node):
    """A node with planned changes laid over its files. What runs on it, and what the kernel says, is as it is."""

    def __init__(self, root="/", deadline=5.0):
        super().__init__(root, deadline)
        self.paths = Paths(root)
        self._planned = {}

    def plan(self, path, after, why):
        """One more change; a path that was planned already becomes something else again, for both reasons."""
        earlier = self._planned.get(path)
        why = "%s; %s" % (earlier.why, why) if earlier and why not in earlier.why else earlier.why if earlier else why
        self._planned[path] = Change(path, earlier.before if earlier else self.paths.state(path), after, why)

    def changes(self):
        """What has to be done, in an order in which nothing is woken in between: masks come before the lines and links that they outlive."""
        return sorted((one for one in self._planned.values() if not one.before.is_like(one.after)), key=_turn)

    def look_again(self):
        """A fresh view with the same plans: probes keep what they saw of a node."""
        fresh = Foreseen(self.root or "/", self.deadline)
        fresh._planned = dict(self._planned)
        return fresh

    def state(self, path):
        return self._planned[path].after if path in self._planned else self.paths.state(path)

    # -- the door ------------------------------------------------------------------------------------------------------

    def read(self, path, limit=1 << 20, last=0):
        planned = self._planned.get(path) or (self._planned.get(self.paths.settled(path)) if self._planned else None)
        if planned is None:
            return super().read(path, limit, last)
        return planned.after.content[:limit].decode("utf-8", "replace") if planned.after.kind == "file" else "" if planned.after.target == "/dev/null" else None

    def list(self, path):
        names = set(super().list(path))
        for planned in self._planned.values():
            where, name = os.path.split(planned.path)
            if where == path:
                (names.discard if planned.after.kind == "absent" else names.add)(name)
        return sorted(names)

    def exists(self, path):
        return self.state(path).kind != "absent" if path in self._planned else super().exists(path)

    def target(self, path):
        return self._planned[path].after.target if path in self._planned else super().target(path)

    def stat(self, path):
        planned = self._planned.get(path)
        if planned is None or planned.after.kind == "absent":
            return None if planned else super().stat(path)
        return SimpleNamespace(
            st_mode=MODES[planned.after.kind] | (planned.after.mode or 0o777), st_size=len(planned.after.content or b""), st_mtime=time.time()
        )


def _turn(change):
    """Directories are made before what goes into them, and removed after it, the deepest first."""
    depth = change.path.count("/")
    if change.before.kind == "directory":
        return len(TURNS), -depth
    return TURNS.index(change.after.kind), depth if change.after.kind == "directory" else 0
