# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The only door from a probe to the machine.

Every look through it has a deadline and a size limit, and what could not be seen is kept as a *problem* under the name
of the fact that was being gathered. So a probe needs no ``try`` of its own, and a rule can later tell "there is nothing"
from "nobody could look".
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import selectors
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

from ._grpc import ROOM, TOO_LARGE, Reply, request

TEXT_LIMIT = 1 << 20
TABLE_LIMIT = 1 << 21
PAGE, LONGEST_ROW = 4096, 512
PROCESSES = 20000  # so many are looked at, whatever the node runs
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/opt/cni/bin:/snap/bin"
DENIED = (errno.EACCES, errno.EPERM)
ABSENT = (errno.ENOENT, errno.ENOTDIR)


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _wire():
    from . import _wire as wire  # noqa: PLC0415 - each reading compiles anew what it loads, and few ask other machines

    return wire


class Answer:
    """What a command or a socket said, and how long it took to say it."""

    def __init__(self, state, code=None, out="", err="", seconds=0.0):
        self.state = state  # answered | absent | hung | refused | denied
        self.code = code
        self.out = out
        self.err = err
        self.seconds = round(seconds, 3)

    @property
    def ok(self):
        return self.state == "answered" and self.code in (0, 200)

    def json(self):
        """The answer as JSON, or None when it is none."""
        try:
            return json.loads(self.out) if self.ok else None
        except ValueError:
            return None


class Node:
    """The machine that this code runs on; ``root`` lets tests show it a directory instead. ``targets`` names other machines to ask."""

    def __init__(self, root="/", deadline=5.0, units=(), targets=None):
        self.root = root.rstrip("/")
        self.deadline = deadline
        self.targets = targets or {}
        self.problems = []
        self._unit_names = sorted(set(units))
        self._systemd = None
        self._asking = threading.Lock()
        self._statuses = None
        self._listing = threading.Lock()
        self._tables = {}
        self._lock = threading.Lock()
        self._closed = False
        self._here = threading.local()

    # -- gathering -----------------------------------------------------------------------------------------------------

    def facts(self, parts, into=None):
        """Gather a table of facts, each by itself: one that raises becomes None and a problem, the others go on."""
        facts = {} if into is None else into
        for name, look in parts.items():
            self._gather(name, look, facts)
        return facts

    def together(self, parts, into=None):
        """Like ``facts``, but side by side: for those that wait for a daemon."""
        facts = {} if into is None else into
        threads = [self.beside(self._gather, name, look, facts) for name, look in parts.items()]
        for thread in threads:
            thread.join()
        return facts

    def each(self, looks):
        """What a list of functions finds, in one list; each is named in the problems by its own name."""
        found = []
        for look in looks:
            found.extend(self.look(look.__name__, look) or [])
        return found

    def look(self, name, look):
        """Call ``look(node)`` under the name of its fact."""
        above = self.path
        self._here.path = above + (name,)
        try:
            return look(self)
        except Exception as error:  # pylint: disable=broad-except
            self.problem(name if look.__name__ == "<lambda>" else look.__name__, "%s: %s" % (type(error).__name__, error), "error")
            return None
        finally:
            self._here.path = above

    def beside(self, work, *arguments):
        """Start a piece of work in a thread that inherits the fact's name and never keeps the process alive."""
        above = self.path

        def start():
            self._here.path = above
            work(*arguments)

        thread = threading.Thread(target=start, daemon=True)
        thread.start()
        return thread

    def _gather(self, name, look, facts):
        value = self.look(name, look)
        with self._lock:
            if not self._closed:
                facts[name] = value

    def close(self):
        """Time is up: whatever still runs can no longer write into the facts."""
        with self._lock:
            self._closed = True

    @property
    def path(self):
        return getattr(self._here, "path", ())

    def problem(self, what, why, kind, fact=None):
        """Note what could not be seen. ``kind`` is denied, hung, late or error."""
        entry = {"fact": fact or ".".join(self.path), "what": str(what), "why": str(why), "kind": kind}
        with self._lock:
            if not self._closed and entry not in self.problems:
                self.problems.append(entry)

    # -- files ---------------------------------------------------------------------------------------------------------

    def at(self, path):
        return self.root + path

    def read(self, path, limit=TEXT_LIMIT, last=0):
        """The text of a file, or None. That a file is not there is an answer; that it is forbidden is a problem.

        A part that is shorter than ``last`` is the last one.
        """
        try:
            # O_NONBLOCK: a FIFO in place of a configuration file must not hang the probe.
            handle = os.open(self.at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            return self._unseen(path, error)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                self.problem(path, "is not a regular file", "error")
                return None
            chunks, size = [], 0
            while size < limit:
                chunk = os.read(handle, min(65536, limit - size))
                if not chunk:
                    break
                chunks.append(chunk)
                size += len(chunk)
                if len(chunk) < last:
                    break
            return b"".join(chunks).decode("utf-8", "replace")
        except OSError as error:
            return self._unseen(path, error)
        finally:
            os.close(handle)

    def glance(self, path, limit=4096):
        """The beginning, as bytes, of a kernel's file that may be gone or refused at any moment: None, and no problem."""
        try:
            handle = os.open(self.at(path), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            return os.read(handle, limit)
        except OSError:
            return None
        finally:
            os.close(handle)

    def statuses(self, again=False):
        """When, and {pid: the bytes of its /proc/PID/stat}: one pass for all who ask, a new one where the difference is wanted."""
        with self._listing:
            if again or self._statuses is None:
                pids = [name for name in self.list("/proc") if name.isdigit()][:PROCESSES]
                read = {pid: self.glance("/proc/%s/stat" % pid, 1024) for pid in pids}
                self._statuses = self.stopwatch(), read
            return self._statuses

    def table(self, path, limit=TABLE_LIMIT):
        """A kernel's table that is dear to make and asked for by several probes: read once, and anew where it could not be read.

        The kernel hands out a full page while it has more; to ask after less would make it walk over all its connections again.
        """
        with self._listing:
            if self._tables.get(path) is None:
                self._tables[path] = self.read(path, TABLE_LIMIT, last=PAGE - LONGEST_ROW)
            return (self._tables[path] or "")[:limit]

    def points(self, path):
        """One by one, where the links in a kernel's directory point to: None, and no problem, for what is gone or refused."""
        try:
            names = os.listdir(self.at(path))
        except OSError:
            names = [""]
        for name in names:
            try:
                yield os.readlink(self.at(path + "/" + name))
            except OSError:
                yield None

    def tail(self, path, size):
        """The end of a file that only grows, as text; None as for read."""
        try:
            with open(self.at(path), "rb", buffering=0, opener=_without_waiting) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - size))
                return file.read(size).decode("utf-8", "replace")
        except OSError as error:
            return self._unseen(path, error)

    def lines(self, path):
        """The lines of a file; none where there is no such file."""
        return (self.read(path) or "").splitlines()

    def json(self, path):
        """What a JSON file holds, or None; a file that is no JSON is a problem."""
        text = self.read(path)
        try:
            return None if text is None else json.loads(text)
        except (ValueError, RecursionError):
            self.problem(path, "is not JSON", "error")
            return None

    def number(self, path):
        """A file that holds one integer, as /proc and /sys do; None where there is none."""
        return whole((self.read(path) or "").strip())

    def list(self, path):
        """The sorted names in a directory; none where there is no such directory."""
        try:
            return sorted(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in os.listdir(self.at(path)))
        except OSError as error:
            self._unseen(path, error)
            return []

    def glob(self, pattern):
        """Paths that match a pattern with wildcards in any component, sorted, as seen from the node's root."""
        found = [""]
        for part in pattern.strip("/").split("/"):
            if not any(sign in part for sign in "*?["):
                found = [path + "/" + part for path in found]
            else:
                found = [path + "/" + name for path in found for name in self.list(path or "/") if fnmatch.fnmatchcase(name, part)]
        return [path for path in found if self.exists(path)]

    def exists(self, path):
        return os.path.lexists(self.at(path))

    def target(self, path):
        """Where a symbolic link points to, as written; None for anything else."""
        try:
            return os.readlink(self.at(path))
        except OSError as error:
            return None if error.errno == errno.EINVAL else self._unseen(path, error)

    def stat(self, path):
        try:
            return os.stat(self.at(path))
        except OSError as error:
            return self._unseen(path, error)

    def room(self, path):
        """statvfs of the file system that holds a path."""
        try:
            return os.statvfs(self.at(path))
        except OSError as error:
            return self._unseen(path, error)

    def _unseen(self, path, error):
        if error.errno not in ABSENT:
            self.problem(path, error.strerror.lower(), "denied" if error.errno in DENIED else "error")

    # -- programs ------------------------------------------------------------------------------------------------------

    def program(self, name):
        """The path of an executable, also from a login without the administrator's directories in its PATH."""
        for directory in SEARCH_PATH.split(":"):
            path = directory + "/" + name
            if os.access(self.at(path), os.X_OK) and not os.path.isdir(self.at(path)):
                return path
        return None

    def run(self, argv, deadline=None):
        """Run a program until its deadline; never through a shell, never reading more than the limit."""
        program = argv[0] if "/" in argv[0] else self.program(argv[0])
        if program is None:
            return Answer("absent")
        start = time.monotonic()
        try:
            process = subprocess.Popen(  # pylint: disable=ansible-bad-function
                [self.at(program)] + list(argv[1:]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={"PATH": SEARCH_PATH, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/")},
            )
        except OSError as error:
            if error.errno in ABSENT:
                return Answer("absent")
            self._unseen(program, error)
            return Answer("refused", err=error.strerror)
        limit = self.deadline if deadline is None else deadline
        out, err, done = _read_all(process, start + limit)
        seconds = time.monotonic() - start
        if not done:
            _end(process)
            self.problem(" ".join(argv), "no answer within %g s" % limit, "hung")
            return Answer("hung", out=out, err=err, seconds=seconds)
        return Answer("answered", process.returncode, out, err, seconds)

    def units(self, *patterns):
        """systemd's view of units, by name. All areas share one call: the ``UNITS`` of every probe are asked for at once."""
        with self._asking:
            if self._systemd is None:
                self._systemd = self._ask_systemd()
            units, trouble = self._systemd
        if trouble:
            self.problem("systemctl show", *trouble)
        return {name: unit for name, unit in units.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}

    def unit(self, name):
        """One unit's properties; an empty table where systemd does not know it."""
        return self.units(name).get(name, {})

    UNIT_PROPERTIES = (
        "Id,Names,LoadState,ActiveState,SubState,UnitFileState,FragmentPath,DropInPaths,SourcePath,MainPID,NRestarts,Result,ExecMainStatus,"
        "ActiveEnterTimestamp,ActiveEnterTimestampMonotonic,KillMode,Delegate,Restart,ExecStart,EnvironmentFiles,WantedBy,RequiredBy,"
        "Requires,BindsTo,What,LimitNOFILE,TasksMax"
    )

    def _ask_systemd(self):
        if not self._unit_names:
            return {}, None
        answer = self.run(["systemctl", "show", "--no-pager", "--property=" + self.UNIT_PROPERTIES, "--"] + self._unit_names)
        if answer.state == "hung":
            return {}, ("no answer within %g s" % answer.seconds, "hung")
        units = {}
        for block in answer.out.split("\n\n"):
            unit = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if unit.get("Id") and unit.get("LoadState") != "not-found":
                units[unit["Id"]] = unit
        if answer.ok:
            return units, None
        return units, (answer.err.strip().splitlines()[0] if answer.err.strip() else "systemctl is " + answer.state, "error")

    # -- sockets -------------------------------------------------------------------------------------------------------

    def http(self, address, path, deadline=None):
        """One GET over a unix socket (a path) or TCP (a host and a port): no proxy, no redirect, no TLS."""
        return self._request(address, "GET", path, b"", deadline)

    def command(self, socket_path, verb, path, body=None, deadline=None):
        """One request over a unix socket that changes something, with a table as its body: for repairs, no probe sends any."""
        return self._request(socket_path, verb, path, b"" if body is None else json.dumps(body).encode(), deadline)

    def _request(self, address, verb, path, body, deadline):
        where = address if isinstance(address, str) else "%s:%s" % tuple(address)
        length = "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body) if body else ""
        question = ("%s %s HTTP/1.0\r\nHost: localhost\r\n%s\r\n" % (verb, path, length)).encode() + body
        answer, said = self._converse(address, "%s %s" % (where, path), question, deadline)
        if answer.state != "answered":
            return answer
        head, _blank, body = said.decode("utf-8", "replace").partition("\r\n\r\n")
        words = head.split(None, 2)
        answer.code, answer.out = whole(words[1]) if len(words) > 1 else None, body
        return answer

    def call(self, path, method, message=b"", deadline=None):
        """One gRPC call over a unix socket; ``code`` is the gRPC status and ``out`` the answer's message, as bytes."""
        reply = Reply()

        def enough(chunk):
            reply.feed(chunk)
            return reply.ended

        what = "%s %s" % (path, method.rpartition("/")[2])
        answer, said = self._converse(path, what, request(method, message), deadline, enough, ROOM)
        if answer.state == "hung" and reply.greeted:
            answer.err = "it only greeted"
        if answer.state == "answered":
            answer.code, answer.out = reply.code, reply.message or b""
            if reply.code is None and len(said) >= ROOM:
                answer.code = TOO_LARGE
                self.problem(what, "over %d MiB" % (ROOM >> 20), "error")
            elif reply.code is None:
                self.problem(what, answer.err or "ended the conversation without a status", "error")
        return answer

    def ask(self, path, line, over, deadline=None):
        """One line to a daemon that talks in lines over a unix socket; ``over`` tells from the text so far whether it has said all.

        What it said before it fell silent is in ``out``.
        """
        heard = []

        def enough(chunk):
            heard.append(chunk)
            return over(_text(heard))

        answer, _said = self._converse(path, "%s %s" % (path, line), (line + "\n").encode(), deadline, enough)
        answer.out = _text(heard)
        return answer

    def _converse(self, address, what, question, deadline, enough=lambda chunk: False, room=TEXT_LIMIT):
        """Send, then read until the other side has said enough or hangs up: (an Answer without its content, the bytes)."""
        limit = self.deadline if deadline is None else deadline
        start = time.monotonic()
        unix = isinstance(address, str)
        chunks, size = [], 0
        try:
            # In here too: a kernel without IPv6 refuses the socket itself.
            with socket.socket(socket.AF_UNIX if unix else family(address[0]), socket.SOCK_STREAM) as link:
                link.settimeout(limit)
                link.connect(self.at(address) if unix else tuple(address))
                link.sendall(question)
                while size < room:
                    left = start + limit - time.monotonic()
                    if left <= 0:
                        raise socket.timeout()
                    link.settimeout(left)
                    chunk = link.recv(65536)
                    if not chunk:
                        break
                    chunks.append(chunk)
                    size += len(chunk)
                    if enough(chunk):
                        break
        except ValueError as error:  # what came is not what was asked for
            return Answer("answered", err=str(error), seconds=time.monotonic() - start), b""
        except (socket.timeout, BlockingIOError) as error:  # the latter: a unix socket whose queue is full of clients that wait
            seconds = time.monotonic() - start
            why = "its queue of waiting connections is full" if isinstance(error, BlockingIOError) else "no answer within %g s" % round(limit, 1)
            self.problem(what, why, "hung")
            return Answer("hung", seconds=seconds), b""
        except OSError as error:
            if error.errno in DENIED:
                self._unseen(what, error)
            state = "absent" if error.errno in ABSENT else "denied" if error.errno in DENIED else "refused"
            return Answer(state, err=error.strerror or str(error), seconds=time.monotonic() - start), b""
        return Answer("answered", seconds=time.monotonic() - start), b"".join(chunks)

    # -- other machines ------------------------------------------------------------------------------------------------

    def addresses(self, host, deadline=None):
        """The addresses of a name, those of a literal address at once; none where it has none or nobody tells in time."""
        limit, found = self.deadline if deadline is None else deadline, []
        thread = self.beside(lambda: found.extend(_looked_up(host)))  # the resolver has deadlines of its own, of half a minute
        thread.join(limit)
        if thread.is_alive():
            self.problem(host, "its address was not found within %g s" % limit, "hung")
        return list(found)

    def reach(self, targets, deadline=None):
        """How many TCP ports of other machines answer, side by side: {(address, port): (state, seconds)}."""
        return _wire().connections(targets, self.deadline if deadline is None else deadline)

    def converse(self, address, host, paths, deadline=None, tls=True):
        """One HTTPS conversation with another machine, with the time that each step takes."""
        return _wire().conversation(address, host, paths, self.deadline if deadline is None else deadline, tls)

    def echoes(self, addresses, size=None, deadline=None):
        """How large packets may be on the way to other machines; nothing, and a problem, where this process may not ask."""
        try:
            return _wire().echoes(addresses, size, self.deadline if deadline is None else deadline)
        except PermissionError:
            self.problem("ping", "permission denied", "denied")
            return {}

    def objections(self, targets, deadline=None):
        """Which tunnels' packets other machines send back: {(address, UDP port or "ipip"): state}."""
        return _wire().objections(targets, self.deadline if deadline is None else deadline)

    def holds(self, address):
        """Whether an address is this machine's own; None for what is no address."""
        return _wire().is_own(address)

    def dump(self, message, family=0, limit=50000):
        """The payloads of one rtnetlink dump, in the kernel's own order: Calico's choice depends on that order."""
        for _attempt in range(3):
            payloads, whole = self._dump(message, family, limit)
            if whole or len(payloads) >= limit:
                break
        if not whole:
            self.problem("netlink dump %d" % message, "over %d entries" % limit if len(payloads) >= limit else "changed whenever it was read", "error")
        return payloads

    def _dump(self, message, family, limit):
        """One attempt: (payloads, whether nothing changed meanwhile and nothing is missing)."""
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
            link.settimeout(self.deadline)
            link.bind((0, 0))
            # struct nlmsghdr {length, type, flags = REQUEST | DUMP, sequence, port}, then the family and padding, then for
            # links the attribute IFLA_EXT_MASK = RTEXT_FILTER_SKIP_STATS: counters are most of a dump, and nobody reads them.
            mask = struct.pack("=HHI", 8, 29, 8) if message == 18 else b""
            link.send(struct.pack("=IHHIIB15x", 32 + len(mask), message, 0x301, 0, 0, family) + mask)
            payloads, whole = [], True
            while True:
                packet = link.recv(1 << 20)
                if not packet:
                    raise OSError(errno.EPIPE, "the kernel ended a dump early")
                while len(packet) >= 16:
                    size, kind, flags = struct.unpack_from("=IHH", packet)
                    if kind == 3:  # NLMSG_DONE
                        return payloads, whole and not flags & 0x10
                    if kind == 2:  # NLMSG_ERROR
                        code = -struct.unpack_from("=i", packet, 16)[0]
                        raise OSError(code, os.strerror(code))
                    if size < 16:
                        break
                    whole = whole and not flags & 0x10  # NLM_F_DUMP_INTR
                    payloads.append(packet[16:size])
                    packet = packet[(size + 3) & ~3 :]
                if len(payloads) >= limit:
                    return payloads, False

    # -- time ----------------------------------------------------------------------------------------------------------

    def clock(self):
        return time.time()

    def timex(self):
        """What the kernel thinks of its own clock, whichever daemon keeps it; None where it would not say."""
        import ctypes  # noqa: PLC0415 - not every Python has it

        # struct timex begins with modes (0 reads and sets nothing), offset, freq, maxerror, esterror, status.
        buffer = ctypes.create_string_buffer(512)
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
        if state < 0:
            self.problem("adjtimex", os.strerror(ctypes.get_errno()).lower(), "error")
            return None
        _modes, offset, _freq, most, likely, status = struct.unpack_from("@IllllI", buffer)
        return {"synchronised": not status & 0x40, "offset": offset, "max_error_us": most, "likely_error_us": likely}

    def stopwatch(self):
        """Seconds that only ever go on, for differences."""
        return time.monotonic()

    def sleep(self, seconds):
        time.sleep(seconds)


def _without_waiting(path, flags):
    """A FIFO in place of a file must not hang the probe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _text(chunks):
    return b"".join(chunks).decode("utf-8", "replace")


def whole(text):
    """The whole number that a text is; None where it is none. Not everything that isdigit() takes for digits is a number to int()."""
    digits = text[1:] if text.startswith("-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 30 else None


def _looked_up(host):
    try:
        return list(dict.fromkeys(found[4][0].partition("%")[0] for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))
    except (OSError, UnicodeError):
        return []


def _read_all(process, until):
    """Both streams of a process, side by side: (out, err, ended in time)."""
    texts = {process.stdout: [], process.stderr: []}
    sizes = {process.stdout: 0, process.stderr: 0}
    with selectors.DefaultSelector() as ready:
        for stream in texts:
            ready.register(stream, selectors.EVENT_READ)
        while ready.get_map():
            left = until - time.monotonic()
            if left <= 0:
                break
            for key, _events in ready.select(left):
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    ready.unregister(key.fileobj)
                elif sizes[key.fileobj] < TEXT_LIMIT:
                    texts[key.fileobj].append(chunk)
                    sizes[key.fileobj] += len(chunk)
        done = not ready.get_map()
    try:
        process.wait(max(0.0, until - time.monotonic()) if done else 0)
    except subprocess.TimeoutExpired:
        done = False
    out, err = (b"".join(texts[stream]).decode("utf-8", "replace") for stream in (process.stdout, process.stderr))
    process.stdout.close()
    process.stderr.close()
    return out, err, done


def _end(process):
    """Kill the program and its children. One that sits in an uninterruptible wait is left behind: waiting for it would hang us too."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(0.5)
    except (OSError, subprocess.TimeoutExpired):
        pass
