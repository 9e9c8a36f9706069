# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What repairs changed on this node, and how each of it is taken back.

An entry is written before the first change, with the very bytes of all that will change, so that also a repair that was killed
in its middle can be undone, or begun again. It lies on the node: whoever can reach the node can undo, from whichever controller.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time

from ._changes import State, Unchangeable, file

PLACE = "/var/lib/nodecare"
SCHEMA = "nodecare.journal/1"
BEGUN, DONE, UNDONE = "begun", "done", "undone"
TOLD = "told"  # of what was done: it left nothing behind that could be taken back


class Busy(Exception):
    """Another run is at work on this node."""


class Conflict(Exception):
    """What somebody else has changed since, and so cannot be taken back."""


class Journal:
    def __init__(self, paths, boot_id=""):
        self.paths = paths
        self.boot_id = boot_id
        self.place = PLACE + "/journal"

    @contextlib.contextmanager
    def alone(self):
        """One repair of a node at a time, from whichever controller."""
        import fcntl  # noqa: PLC0415 - not every Python has it

        try:
            os.makedirs(self.paths.at(self.place), mode=0o700, exist_ok=True)
            handle = os.open(self.paths.at(PLACE + "/lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Unchangeable("no journal can be kept in %s: %s" % (PLACE, error.strerror)) from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy("another run of nodecare is at work on this node") from None
            yield self
        finally:
            os.close(handle)

    def entries(self):
        """All that was ever noted, the newest first."""
        try:
            names = sorted(os.listdir(self.paths.at(self.place)), reverse=True)
        except OSError:
            return []
        return [entry for entry in (Entry.read(self, name) for name in names if re.match(r"\d{8}T\d{6}", name)) if entry]

    def standing(self, repair=None):
        """The entries that were not taken back, of those that can be."""
        return [entry for entry in self.entries() if entry.said["state"] not in (UNDONE, TOLD) and repair in (None, entry.said["repair"])]

    def begin(self, repair, changes, at):
        """Note what is about to be changed, with what it was; answers the entry."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        for number in range(100):
            name = "%s-%02d-%s" % (stamp, number, repair)
            try:
                os.mkdir(self.paths.at("%s/%s" % (self.place, name)), 0o700)
                break
            except FileExistsError:
                continue
            except OSError as error:
                raise Unchangeable("no journal can be kept in %s: %s" % (self.place, error.strerror)) from None
        said = {"schema": SCHEMA, "repair": repair, "state": BEGUN, "at": at, "boot_id": self.boot_id}
        entry = Entry(self, name, said)
        entry.said["paths"] = [entry.kept(number, change) for number, change in enumerate(changes)]
        entry.write()
        return entry


class Entry:
    def __init__(self, journal, name, said):
        self.journal = journal
        self.name = name
        self.said = said

    @classmethod
    def read(cls, journal, name):
        """An entry; None for what is none, such as the rest of one that was cut off before anything was changed."""
        try:
            with open(journal.paths.at("%s/%s/entry.json" % (journal.place, name)), encoding="utf-8") as opened:
                said = json.load(opened)
        except (OSError, ValueError):
            return None
        return cls(journal, name, said) if isinstance(said, dict) and said.get("schema") == SCHEMA else None

    @property
    def place(self):
        return "%s/%s" % (self.journal.place, self.name)

    def note(self, **more):
        self.said.update(more)
        self.write()

    def write(self):
        content = json.dumps(self.said, indent=1, sort_keys=True).encode() + b"\n"
        self.journal.paths.put(self.place + "/entry.json", file(content)._replace(mode=0o600, owner=(os.geteuid(), os.getegid())))

    # -- what was, and what became of it -------------------------------------------------------------------------------

    def kept(self, number, change):
        """A change as the entry holds it; a file's bytes lie beside it."""
        if change.before.kind == "file":
            copy = change.before._replace(mode=0o600, owner=(os.geteuid(), os.getegid()), labels=())
            self.journal.paths.put("%s/before-%d" % (self.place, number), copy)
        edits = [[place, _text(old), _text(new)] for place, old, new in change.edits()]
        return {"path": change.path, "why": change.why, "before": _noted(change.before), "after": _noted(change.after), "edits": edits}

    def take_back(self, view):
        """Plan on a view of the node what undoes this entry; answers the conflicts."""
        conflicts = []
        for number, kept in reversed(list(enumerate(self.said.get("paths") or []))):
            now = view.state(kept["path"])
            try:
                before = self._undone(number, kept, now)
            except Conflict as conflict:
                conflicts.append(str(conflict))
                continue
            if not now.is_like(before):
                view.plan(kept["path"], before, "as it was before: " + kept["why"])
        return conflicts

    def _undone(self, number, kept, now):
        """What a path has to become: what it was, or the same line by line where somebody has changed other lines since."""
        copy = "%s/before-%d" % (self.place, number)
        if _is(now, kept["before"]):
            return now
        if _is(now, kept["after"]):
            return self._before(copy, kept["before"], now)
        if now.kind == "file" and kept["edits"]:
            content = without(now.content, kept["edits"])
            if content is not None:
                return file(content, like=now)
        where = "; its earlier bytes are in %s" % copy if kept["before"]["kind"] == "file" else ""
        raise Conflict("%s was changed by somebody else since%s" % (kept["path"], where))

    def _before(self, copy, noted, now):
        if noted["kind"] != "file":
            return State(noted["kind"], None, noted["target"], noted["mode"], tuple(noted["owner"] or (0, 0)), ())
        kept = self.journal.paths.state(copy)
        if kept.kind != "file" or kept.digest != noted["sha256"]:
            raise Conflict("the copy %s is not what was kept" % copy)
        if now.kind == "file":  # whoever gave it other rights since meant it
            return file(kept.content, like=now)
        return kept._replace(mode=noted["mode"], owner=tuple(noted["owner"]), labels=tuple((name, bytes.fromhex(value)) for name, value in noted["labels"]))


def without(content, edits):
    """A file's bytes with single lines as they were before; None where one of them is not to be found any more."""
    lines = content.split(b"\n")
    for number, old, new in ((number, _bytes(old), _bytes(new)) for number, old, new in edits):
        found = [place for place, line in enumerate(lines) if line == new]
        if found:
            lines[min(found, key=lambda place: abs(place - number))] = old
        elif old not in lines:
            return None
    return b"\n".join(lines)


def make(journal, entry, changes):
    """The changes of an entry; where they cannot be made there is nothing to take back."""
    try:
        carry_out(journal.paths, changes)
    except (Busy, Unchangeable):
        entry.note(state=UNDONE)
        raise


def carry_out(paths, changes):
    """One after the other; where one fails, those before it are taken back and nothing has happened."""
    for change in changes:
        if not paths.state(change.path).is_like(change.before):
            raise Busy("%s was changed by somebody else just now" % change.path)
    done = []
    try:
        for change in changes:
            paths.put(change.path, change.after)
            done.append(change)
    except Unchangeable:
        for change in reversed(done):
            with contextlib.suppress(Unchangeable):
                paths.put(change.path, change.before)
        raise


def _noted(state):
    labels = [[name, value.hex()] for name, value in state.labels]
    return {"kind": state.kind, "target": state.target, "mode": state.mode, "owner": state.owner, "sha256": state.digest, "labels": labels}


def _is(now, noted):
    return (now.kind, now.target, now.digest) == (noted["kind"], noted["target"], noted["sha256"])


def _text(line):
    return line.decode("utf-8", "surrogateescape")


def _bytes(text):
    return text.encode("utf-8", "surrogateescape")
