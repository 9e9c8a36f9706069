# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a path of the node is, and how it becomes something else at one stroke.

All that a repair leaves behind on a node is expressed as a path that was something and becomes something else: a file with
other bytes, a link that masks a unit, nothing. So each repair has its diff, its check mode and its undo for nothing.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections import namedtuple

LIMIT = 1 << 20  # no configuration file is larger


class Unchangeable(Exception):
    """Why a path cannot be changed."""


class State(namedtuple("State", "kind content target mode owner labels")):
    """What a path is: ``absent``, a ``file``, a ``link``, a ``directory``, or something ``else`` that no repair touches."""

    __slots__ = ()

    def is_like(self, other):
        """Whether both are the same to whoever reads them; who owns them and when they were written does not count."""
        return self[:3] == other[:3]

    @property
    def digest(self):
        return hashlib.sha256(self.content).hexdigest() if self.kind == "file" else None

    def said(self):
        """In words, for a diff."""
        return {"link": "a link to %s" % self.target, "absent": "nothing", "else": "something else"}.get(self.kind, "a " + self.kind)


def _state(kind, content=None, target=None, mode=None, owner=None, labels=()):
    return State(kind, content, target, mode, owner, tuple(labels))


ABSENT = _state("absent")
NOTHING = _state("link", target="/dev/null")  # as systemd masks a unit, a generator or a drop-in


def file(content, like=None):
    """A file with these bytes, and the rights of another one."""
    if like is not None and like.kind == "file":
        return like._replace(content=content)
    return _state("file", content, mode=0o644, owner=(0, 0))


def directory():
    return _state("directory", mode=0o755, owner=(0, 0))


class Paths:
    """The node's paths; ``root`` lets tests show a directory instead."""

    def __init__(self, root="/"):
        self.root = root.rstrip("/")

    def at(self, path):
        return self.root + path

    def state(self, path):
        """What a path is now. A file that is too large or that cannot be read is something else."""
        try:
            found = os.lstat(self.at(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return ABSENT
            raise Unchangeable("%s cannot be looked at: %s" % (path, error.strerror)) from None
        owner, mode = (found.st_uid, found.st_gid), stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            return _state("link", target=os.readlink(self.at(path)), owner=owner)
        if stat.S_ISDIR(found.st_mode):
            return _state("directory", mode=mode, owner=owner)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LIMIT:
            return _state("else")
        try:
            with open(self.at(path), "rb") as opened:
                return _state("file", opened.read(), mode=mode, owner=owner, labels=self._labels(path))
        except OSError as error:
            raise Unchangeable("%s cannot be read: %s" % (path, error.strerror)) from None

    def settled(self, path):
        """The file that a path leads to, where it is a link: that is what has to be changed."""
        for _step in range(8):
            try:
                path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(self.at(path))))
            except OSError:  # no link
                return path
        raise Unchangeable("%s is a link that leads in a circle" % path)

    def why_not(self, path):
        """What keeps a path from being changed, found out without changing anything; None where nothing does."""
        parent = os.path.dirname(path)
        while self.state(parent).kind == "absent":
            parent = os.path.dirname(parent)
        if not os.access(self.at(parent) or "/", os.W_OK):
            readonly = os.statvfs(self.at(parent) or "/").f_flag & os.ST_RDONLY
            return "%s is on a file system that is mounted read-only" % parent if readonly else "%s may not be written to" % parent
        return next(("%s is immutable (chattr +i)" % one for one in (path, parent) if self._immutable(one)), None)

    def put(self, path, state):
        """Make a path be this, at one stroke: whoever looks sees the old or the new, also after a power cut."""
        try:
            if state.kind == "absent":
                self._remove(path)
            elif state.kind == "directory":
                os.mkdir(self.at(path), state.mode)
            elif state.kind == "link":
                self._replace(path, lambda beside: os.symlink(state.target, beside))
            elif state.kind == "file":
                self._replace(path, lambda beside: self._write(beside, state))
            else:
                raise Unchangeable("%s is neither file, link nor directory" % path)
            _settle(os.path.dirname(self.at(path)))
        except OSError as error:
            raise Unchangeable("%s cannot be changed: %s" % (path, error.strerror)) from None

    def _remove(self, path):
        if self.state(path).kind == "directory":
            with contextlib.suppress(OSError):  # not empty: somebody else uses it by now
                os.rmdir(self.at(path))
        else:
            os.unlink(self.at(path))

    def _replace(self, path, make):
        where, name = os.path.split(self.at(path))
        beside = "%s/.%s.nodecare-%s" % (where, name[:60], os.urandom(4).hex())
        try:
            make(beside)
            os.rename(beside, self.at(path))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise

    @staticmethod
    def _write(beside, state):
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as opened:
            opened.write(state.content)
            if os.geteuid() == 0:
                os.fchown(handle, *state.owner)
            os.fchmod(handle, state.mode)
            for name, value in state.labels:
                os.setxattr(handle, name, value)
            opened.flush()
            os.fsync(handle)

    def _labels(self, path):
        """Extended attributes: SELinux' context and access lists are among them."""
        try:
            names = os.listxattr(self.at(path))
        except OSError:
            return ()
        found = []
        for name in sorted(names):
            with contextlib.suppress(OSError):
                found.append((name, os.getxattr(self.at(path), name)))
        return tuple(found)

    def _immutable(self, path):
        import fcntl  # noqa: PLC0415 - not every Python has it

        try:
            handle = os.open(self.at(path) or "/", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            flags = fcntl.ioctl(handle, 0x80086601, b"\0" * 8)  # FS_IOC_GETFLAGS
            return bool(flags[0] & 0x10)  # FS_IMMUTABLE_FL
        except OSError:
            return False
        finally:
            os.close(handle)


def _settle(directory):
    """What was renamed in a directory is only there after a power cut once the directory is written."""
    handle = os.open(directory or "/", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Change(namedtuple("Change", "path before after why")):
    """One path that becomes something else, and what for."""

    __slots__ = ()

    def edits(self):
        """[(number, old line, new line)], counted from 0, where a file keeps its number of lines."""
        if self.before.kind != "file" or self.after.kind != "file":
            return []
        old, new = self.before.content.split(b"\n"), self.after.content.split(b"\n")
        return [(number, *pair) for number, pair in enumerate(zip(old, new)) if pair[0] != pair[1]] if len(old) == len(new) else []

    def what(self):
        """What becomes of the path, in words."""
        if self.after.kind == "absent":
            return "is removed"
        if self.before.kind == "file" and self.after.kind == "file":
            lines = ", ".join(str(number + 1) for number, _old, _new in self.edits())
            return "line %s changes" % lines if "," not in lines else "lines %s change" % lines
        return "becomes " + self.after.said()

    def diff(self):
        """For Ansible: the lines that change and no others, since the rest of a file is nobody's business (fstab may hold passwords)."""
        header = "--- before: %s\n+++ after: %s\n" % (self.path, self.path)
        if self.edits():
            return {"prepared": header + "".join("@@ line %d @@\n-%s\n+%s\n" % (number + 1, _shown(old), _shown(new)) for number, old, new in self.edits())}
        lines = [(sign, line) for sign, state in (("-", self.before), ("+", self.after)) for line in _lines(state)]
        return {"prepared": header + "".join("%s%s\n" % one for one in lines)}


def _lines(state):
    if state.kind != "file":
        return ["(%s)" % state.said()]
    return [_shown(line) for line in state.content.rstrip(b"\n").split(b"\n")]


def _shown(line):
    return line.decode("utf-8", "replace").replace("\r", "\\r")
