# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a daemon that does not answer can still tell about itself, kept before it is ended: afterwards nobody can know any more."""

from __future__ import annotations

import os
import re
import signal
import stat

from ..._changes import file

LIMIT = 1 << 20
PATIENCE_S = 3.0
# where the daemons write the stacks of their goroutines when they get SIGUSR1
STACKS = {
    "containerd": ("/tmp", r"containerd\.%d\.stacks\.log\Z"),
    "dockerd": ("/run/docker", r"goroutine-stacks-.*\.log\Z"),
    "crio": ("/tmp", r"crio-goroutine-stacks-.*\.log\Z"),
}


def keep(node, entry, pid, name):
    """Put the daemon's stacks into the entry; answers the paths of what was kept. Only its main process is asked, and only where it listens to that."""
    kept = [_put(entry, "status-%d" % pid, node.glance("/proc/%d/status" % pid, 1 << 14))]
    if name in STACKS and catches(node, pid, signal.SIGUSR1):
        kept.append(_put(entry, "stacks-%d" % pid, _stacks(node, pid, name)))
    return [path for path in kept if path]


def catches(node, pid, number):
    """Whether a process runs and handles this signal: one that does not would be ended by it."""
    text = (node.glance("/proc/%d/status" % pid, 1 << 14) or b"").decode("utf-8", "replace")
    state, caught = (re.search(pattern, text, re.M) for pattern in (r"^State:\s+(\S)", r"^SigCgt:\s+([0-9a-f]+)$"))
    return bool(state and caught) and state.group(1) in "RS" and bool(int(caught.group(1), 16) >> (number - 1) & 1)


def _stacks(node, pid, name):
    place, pattern = STACKS[name]
    wanted, before = re.compile(pattern % pid if "%d" in pattern else pattern), _seen(node, place)
    try:
        os.kill(pid, signal.SIGUSR1)
    except OSError:
        return None
    until, size = node.stopwatch() + PATIENCE_S, None
    while node.stopwatch() < until:
        node.sleep(0.2)
        path, now = next(((path, now) for path, now in _seen(node, place).items() if wanted.search(path) and before.get(path) != now), (None, None))
        if path and now[1] and now == size:  # it has grown to its end
            return _bytes(node, path)
        size = now
    return None


def _seen(node, place):
    """{path: (when it was written, its size)}, of root's own files alone: others may write to the same directory."""
    found = {}
    for name in node.list(place):
        try:
            said = os.lstat(node.at(place + "/" + name))
        except OSError:
            continue
        if stat.S_ISREG(said.st_mode) and said.st_uid == os.geteuid():
            found[place + "/" + name] = said.st_mtime_ns, said.st_size
    return found


def _bytes(node, path):
    try:
        handle = os.open(node.at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened:
        return opened.read(LIMIT)


def _put(entry, name, content):
    if not content:
        return None
    path = "%s/%s" % (entry.place, name)
    entry.journal.paths.put(path, file(content)._replace(mode=0o600, owner=(os.geteuid(), os.getegid())))
    return path
