# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The repairs, by what they repair: each looks by the probes, plans, changes with a journal, and looks again."""

from __future__ import annotations

import contextlib
import os

from .._changes import Unchangeable

BOOT_ID = "/proc/sys/kernel/random/boot_id"
RELOAD_S = 90  # what systemd gets to read its units again, generators included


class Refused(Exception):
    """Why a repair is not even begun: nothing was changed."""


class Failed(Exception):
    """Why a repair did not reach its end."""


@contextlib.contextmanager
def under_way():
    """From the first change on it must not be said any more that nothing was changed, also where only the journal cannot be kept to its end."""
    try:
        yield
    except Unchangeable as why:
        raise Failed("it was changed, but that it was done could not be noted: %s" % why) from None


def root_only():
    """A repair that may read half of what it has to know is worse than none."""
    if os.geteuid():
        raise Refused("only root can read and change what this is about: run with become")


def daemon_reload(node):
    """systemd reads what was changed, where there is one; answers what has to be said about it."""
    if not node.exists("/run/systemd/system"):
        return []
    answer = node.run(["systemctl", "daemon-reload"], RELOAD_S)
    return [] if answer.ok else ["systemd did not read its units again (%s); it will at the next boot" % (answer.err.strip() or answer.state)]


def told(changes):
    """Changes as a module returns them."""
    return [{"path": one.path, "what": one.what(), "why": one.why} for one in changes]
