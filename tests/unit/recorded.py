"""A machine made of a directory: the files that a real machine had, and what its programs, sockets and kernel answered.

A tree is a directory under ``trees/``. Beside its files it holds ``.recorded.yml`` with

    commands: {"systemctl show": {out: …, code: 0, seconds: 0.1, state: answered}}   # longest matching beginning of the command line wins
    http: {"/run/docker.sock /info": {code: 200, out: …}}
    calls: {"/run/containerd/containerd.sock containerd.services.version.v1.Version/Version": {fields: {1: "1.7.24"}}}   # gRPC; or out: hex, as recorded
    asks: {"/var/run/calico/bird.ctl show status": {out: …}}   # lines said to a daemon over its unix socket
    dumps: {"18": [hex payloads of one netlink dump]}
    others: {"10.0.0.1 6443": {connect: 0.01, tls: 0.02, answers: [{path: /version, seconds: 0.01, …}]}}   # what is not here is silent
    rooms: {"/var/lib/kubelet": {f_bavail: …}}
    clock: 1790000000.0
    links: {/proc/901/fd/3: "socket:[30001]"}   # links of /proc that lead nowhere, which a checkout should not hold
    timex: {synchronised: true, …}       # what the kernel thinks of its clock
    written: {/var/lib/calico/nodename: -3600}   # when a file was written, in seconds before or after the clock

A case changes it: ``files`` (null removes one), ``written``, ``commands``, ``http``, ``calls``, ``asks``, ``dumps``, ``rooms``, ``denied`` (paths that only
root may read), and ``later``: files as they are from the probe's first pause on, for what the kernel counts.
"""

from __future__ import annotations

import errno
import functools
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Answer, Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS, take
from tables import loaded

TREES = Path(__file__).parent / "trees"
CLOCK = 1790000000.0


class RecordedNode(Node):
    def __init__(self, root, recorded, denied=(), **more):
        super().__init__(str(root), **more)
        self.recorded = recorded
        self.denied = set(denied)
        self.naps = 0.0

    def at(self, path):
        """Symbolic links of the tree stay inside it, as they did on the machine that it was recorded on."""
        real = ""
        parts = [part for part in path.split("/") if part]
        hops = 0
        while parts:
            part = parts.pop(0)
            step = os.path.normpath(real + "/" + part)
            full = self.root + step
            if os.path.islink(full) and parts and hops < 20:
                hops += 1
                target = os.readlink(full)
                base = [] if target.startswith("/") else [one for one in real.split("/") if one]
                parts = base + [one for one in target.split("/") if one] + parts
                real = ""
                continue
            real = step
        return self.root + real

    def read(self, path, limit=1 << 20, last=0):
        if self._refuses(path):
            return None
        real = self.at(path)
        if os.path.islink(real):
            target = os.readlink(real)
            return self.read(target if target.startswith("/") else os.path.normpath(os.path.dirname(path) + "/" + target), limit, last)
        return super().read(path, limit, last)

    def tail(self, path, size):
        return None if self._refuses(path) else super().tail(path, size)

    def list(self, path):
        return [] if self._refuses(path) else [name for name in super().list(path) if name not in (".recorded.yml", ".gitkeep")]

    def _refuses(self, path):
        if path in self.denied:
            self.problem(path, "permission denied", "denied")
            return True
        return False

    def program(self, name):
        return "/usr/bin/" + name if any(key.split()[0] == name for key in self.recorded.get("commands") or {}) else None

    def run(self, argv, deadline=None):
        line = " ".join([os.path.basename(argv[0]), *argv[1:]])
        keys = [key for key in self.recorded.get("commands") or {} if line == key or line.startswith(key + " ")]
        return self._answer(line, (self.recorded.get("commands") or {}).get(max(keys, key=len)) if keys else None, deadline)

    def http(self, address, path, deadline=None):
        where = address if isinstance(address, str) else "%s:%s" % tuple(address)
        return self._answer("%s %s" % (where, path), (self.recorded.get("http") or {}).get("%s %s" % (where, path)), deadline, code=200)

    def call(self, path, method, message=b"", deadline=None):
        """A socket that is known but has no answer recorded for this method does not know the method."""
        calls = self.recorded.get("calls") or {}
        known = any(key.split()[0] == path for key in calls)
        said = calls.get("%s %s" % (path, method), calls.get(path, {"code": 12} if known else None))
        answer = self._answer("%s %s" % (path, method.rpartition("/")[2]), said, deadline)
        if answer.state == "answered":
            answer.out = encoded(said["fields"]) if "fields" in said else bytes.fromhex(said.get("out", ""))
        return answer

    def ask(self, path, line, over, deadline=None):
        """A socket whose tree holds the file, but no answer, refuses the connection."""
        what = "%s %s" % (path, line)
        asks = self.recorded.get("asks") or {}
        said = asks.get(what, asks.get(path, {"state": "refused"} if self.exists(path) else None))
        answer = self._answer(what, said, deadline, code=None)
        answer.out = said.get("out", "") if isinstance(said, dict) else answer.out
        whole = over(answer.out) or (isinstance(said, dict) and "cut" in said)
        assert whole or answer.state != "answered", "the recorded answer to %r has no end" % what
        return answer

    def addresses(self, host, deadline=None):
        return [host]

    def reach(self, targets, deadline=None):
        return dict.fromkeys(targets, ("silent", 1.5))

    def converse(self, address, host, paths, deadline=None, tls=True):
        said = (self.recorded.get("others") or {}).get("%s %s" % address)
        step = {"state": "answered", "at": None, "connect": None, "tls": None, "answers": []}
        return {**step, **said} if said else {**step, "state": "hung", "at": "connect"}

    def echoes(self, addresses, size=None, deadline=None):
        return {}

    def objections(self, targets, deadline=None):
        return {}

    def holds(self, address):
        return False

    def _answer(self, what, said, deadline, code=0):
        if said is None:
            return Answer("absent")
        if isinstance(said, str):
            said = {"out": said}
        if said.get("state") == "hung":
            limit = self.deadline if deadline is None else deadline
            self.problem(what, "no answer within %g s" % limit, "hung")
            return Answer("hung", err=said.get("err", ""), seconds=limit)
        if said.get("state") == "denied":
            self.problem(what, "permission denied", "denied")
        return Answer(said.get("state", "answered"), said.get("code", code), said.get("out", ""), said.get("err", ""), said.get("seconds", 0.01))

    def dump(self, message, family=0):
        dumps = self.recorded.get("dumps") or {}
        key = "%d/%d" % (message, family) if family else str(message)
        if key not in dumps:
            raise OSError(errno.EOPNOTSUPP, "no recorded dump %s" % key)
        return [bytes.fromhex(payload) for payload in dumps[key]]

    def room(self, path):
        rooms = self.recorded.get("rooms") or {}
        found = max((one for one in rooms if path == one or path.startswith(one.rstrip("/") + "/")), key=len, default=None)
        return SimpleNamespace(**rooms[found]) if found else None

    def clock(self):
        return self.recorded.get("clock", CLOCK) + self.naps

    def timex(self):
        return self.recorded.get("timex")

    def stopwatch(self):
        return self.naps

    def sleep(self, seconds):
        self.naps += seconds
        for path, text in (self.recorded.get("later") or {}).items():
            beside = Path(self.root + ".later")
            beside.write_text(text)
            beside.replace(self.at(path))  # whole, because other facts are read at the same time


def encoded(fields):
    """A protobuf message of numbers, texts, messages and lists of them."""
    said = b""
    for number, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, int):
                said += varint(number << 3) + varint(value)
            else:
                inner = encoded(value) if isinstance(value, dict) else value if isinstance(value, bytes) else value.encode()
                said += varint(number << 3 | 2) + varint(len(inner)) + inner
    return said


def varint(number):
    said = b""
    while number > 0x7F:
        said += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return said + bytes((number,))


@functools.lru_cache
def _loaded(text):
    return loaded(text)


def machine(tree, change, where):
    """A copy of a recorded tree with a case's changes: (root, recorded, denied)."""
    root = Path(where) / "root"
    if tree:
        shutil.copytree(TREES / tree, root, symlinks=True)
    else:
        root.mkdir()
    extra = root / ".recorded.yml"
    recorded = dict(_loaded(extra.read_text())) if extra.exists() else {}
    for part in ("commands", "http", "calls", "asks", "others", "dumps", "rooms", "written"):
        merged = {**(recorded.get(part) or {}), **(change.get(part) or {})}
        recorded[part] = {key: value for key, value in merged.items() if value is not None}
    for part in ("clock", "later", "timex"):
        if part in change:
            recorded[part] = change[part]
    links = {path: {"link": target} for path, target in (recorded.get("links") or {}).items()}
    for path, text in {**links, **(change.get("files") or {})}.items():
        file = root / path.lstrip("/")
        if file.is_symlink() or file.is_file():
            file.unlink()
        elif text is None and file.is_dir():
            shutil.rmtree(file)
        if isinstance(text, dict):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(text["link"])
        elif text is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for path, after in recorded["written"].items():
        when = recorded.get("clock", CLOCK) + after
        if os.path.lexists(root / path.lstrip("/")):
            os.utime(root / path.lstrip("/"), (when, when), follow_symlinks=False)
    return root, recorded, change.get("denied") or ()


def read(tree, change, where, areas):
    """The facts that the probes give about a recorded machine."""
    root, recorded, denied = machine(tree, change, where)
    chosen = {name: AREAS[name] for name in areas}
    node = RecordedNode(root, recorded, denied, units=[unit for area in chosen.values() for unit in area.UNITS] or ["none"])
    return take(node, chosen, 20)
