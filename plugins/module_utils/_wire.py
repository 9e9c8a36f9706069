# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How other machines answer this one: connections, encrypted conversations, and packets that no router may cut.

Everything is asked of many machines at the same time and has one deadline. No name is looked up here: addresses only.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import select
import selectors
import socket
import struct
import time

from ._node import family

AT_ONCE = 64  # connections that wait for an answer at the same time
PATIENCE = 1.5  # seconds for one connection: the kernel asks a second time after one
WANTS_CERTIFICATE = re.compile("ALERT_(BAD_CERTIFICATE|HANDSHAKE_FAILURE|CERTIFICATE_REQUIRED)$")
STATES = {
    0: "open",
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "refused",
    errno.ENOPROTOOPT: "refused",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EHOSTDOWN: "unreachable",
    errno.ETIMEDOUT: "silent",
    errno.EACCES: "unreachable",  # IPv6's "administratively prohibited"
    errno.EPERM: "forbidden",
}


def is_own(address):
    """Whether this machine has an address; None for what is none. To bind would tell nothing where ip_nonlocal_bind allows any address."""
    kind = family(address)
    try:
        number = socket.inet_pton(kind, address)
    except (OSError, ValueError):
        return None
    with socket.socket(kind, socket.SOCK_DGRAM) as link:
        try:
            if kind == socket.AF_INET:  # the kernel looks for the link that has it
                link.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, number)
                return True
            link.connect((address, 9))  # sends nothing; an own address is always reached from itself
            return socket.inet_pton(kind, link.getsockname()[0].partition("%")[0]) == number
        except OSError:
            return False


def state(code):
    return STATES.get(code) or "error: " + os.strerror(code).lower()


# -- connections -------------------------------------------------------------------------------------------------------


def connections(targets, deadline):
    """{(address, port): (state, seconds)} of TCP connections, each closed as soon as it is there.

    ``open``, ``refused`` (a reset came), ``unreachable`` (a router or the other machine's packet filter said so, or nobody has that address),
    ``silent``; a target that the deadline left no time for is not there.
    """
    found, waiting, under_way = {}, list(targets)[::-1], {}
    end = time.monotonic() + deadline
    with selectors.DefaultSelector() as ready:
        try:
            while (waiting or under_way) and time.monotonic() < end:
                while waiting and len(under_way) < AT_ONCE:
                    _begin(waiting.pop(), ready, under_way, found)
                first = min((begun for _link, begun in under_way.values()), default=end)
                for key, _events in ready.select(max(0.0, min(end, first + PATIENCE) - time.monotonic())):
                    _finish(key.data, state(key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)), ready, under_way, found)
                for target in [one for one, (_link, begun) in under_way.items() if time.monotonic() - begun >= PATIENCE]:
                    _finish(target, "silent", ready, under_way, found)
        finally:
            for link, _begun in under_way.values():
                link.close()
    return found


def _begin(target, ready, under_way, found):
    link = socket.socket(family(target[0]), socket.SOCK_STREAM)
    link.setblocking(False)
    begun = time.monotonic()
    try:
        code = link.connect_ex(target)
    except OSError as error:  # what is no address
        code = error.errno or errno.EINVAL
    if code == errno.EINPROGRESS:
        under_way[target] = link, begun
        ready.register(link, selectors.EVENT_WRITE, target)
    else:
        link.close()
        found[target] = state(code), round(time.monotonic() - begun, 4)


def _finish(target, how, ready, under_way, found):
    link, begun = under_way.pop(target)
    ready.unregister(link)
    link.close()
    found[target] = how, round(time.monotonic() - begun, 4)


# -- conversations -----------------------------------------------------------------------------------------------------


def conversation(address, host, paths, deadline, tls=True):
    """How long one connection takes to be made and encrypted, and each GET over it to be answered. Nobody is verified and no secret is shown.

    {state, at, connect, tls, answers: [{path, seconds, code, out}], certificate: bytes}; ``at`` is the step that failed: connect, tls or answer.
    """
    said = {"state": "answered", "at": None, "connect": None, "tls": None, "answers": []}
    end = time.monotonic() + deadline
    link = socket.socket(family(address[0]), socket.SOCK_STREAM)
    try:
        said["at"] = "connect"
        said["connect"] = _timed(link, end, lambda: link.connect(address))
        if tls:
            said["at"] = "tls"
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = _encrypted(link, host)
            said["tls"], encrypted = _handshake(link, end, asks=bool(paths))
            if encrypted:
                said["certificate"] = link.getpeercert(True)
        said["at"] = "answer"
        for path in paths:
            answer = _get(link, host, path, end)
            said["answers"].append(answer)
            if not answer["again"]:
                break
        said["at"] = None
    except socket.timeout:
        said["state"] = "hung"
    except (OSError, ValueError) as error:  # the latter: a host's name that cannot be one
        code = None if hasattr(error, "reason") else getattr(error, "errno", None)  # OpenSSL has numbers of its own
        said.update(state=STATES.get(code, "failed"), why=_words(error))
    finally:
        link.close()
    return said


def _handshake(link, end, asks):
    """(seconds, whether anything can be asked now). Before TLS 1.3 a server that wants a certificate of its clients ends the handshake
    without one: where nothing is to be asked, that is its answer.
    """
    begun = time.monotonic()
    try:
        return _timed(link, end, link.do_handshake), True
    except OSError as error:
        if asks or not WANTS_CERTIFICATE.search(str(getattr(error, "reason", ""))):
            raise
        return round(time.monotonic() - begun, 4), False


def _encrypted(link, host):
    return _context().wrap_socket(link, server_hostname=host or None, do_handshake_on_connect=False)


@functools.lru_cache(maxsize=None)
def _context():
    import ssl  # noqa: PLC0415 - costs a twentieth of a second, and not every Python has it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _timed(link, end, step):
    begun = time.monotonic()
    if end <= begun:
        raise socket.timeout()
    link.settimeout(end - begun)
    step()
    return round(time.monotonic() - begun, 4)


def _get(link, host, path, end):
    """One answer: the time until it begins counts. ``again`` tells whether the connection can be asked once more."""
    begun = time.monotonic()
    name = "[%s]" % host if ":" in host else host
    question = "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: nodecare\r\nAccept: */*\r\n\r\n" % (path, name)
    _timed(link, end, lambda: link.sendall(question.encode()))
    chunks = []
    _timed(link, end, lambda: chunks.append(link.recv(65536)))
    seconds = round(time.monotonic() - begun, 4)
    while chunks[-1] and not _whole(b"".join(chunks)) and sum(map(len, chunks)) < 1 << 18:
        _timed(link, end, lambda: chunks.append(link.recv(65536)))
    text = b"".join(chunks)
    if not text:
        raise OSError(errno.ECONNRESET, "the connection was closed")
    head, _blank, body = text.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    code = int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else None
    again = code is not None and bool(chunks[-1]) and _whole(text) and b"connection: close" not in head.lower()
    return {"path": path, "seconds": seconds, "code": code, "out": body.decode("utf-8", "replace"), "again": again}


def _whole(text):
    """Whether an answer that says how long it is has come to its end; of any other only the beginning is waited for."""
    head, blank, body = text.partition(b"\r\n\r\n")
    if not blank:
        return False
    for line in head.lower().split(b"\r\n")[1:]:
        name, _colon, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return True


def _words(error):
    """What went wrong, without where in OpenSSL's sources that was noticed."""
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)[:200]


# -- packets -----------------------------------------------------------------------------------------------------------

PROBE = 3  # IP_PMTUDISC_PROBE: don't fragment, and mind the link's MTU only, not what was learnt of the path
MTU_DISCOVER = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}
PATH_MTU = {socket.AF_INET: (socket.IPPROTO_IP, 14), socket.AF_INET6: (socket.IPPROTO_IPV6, 24)}
DONT_FRAGMENT = 62  # IPV6_DONTFRAG
HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}  # of IP and ICMP
PROTOCOL = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
ECHO, REPLY, TOO_BIG = {2: 8, 10: 128}, {2: 0, 10: 129}, {2: 3, 10: 2}
SMALL = 84  # bytes, as those of ping
USUAL = (9000, 8950, 1500, 1492, 1480, 1460, 1450, 1440, 1430, 1420, 1400, 1380, 1350, 1300, 1280)
AGAIN = 0.4  # seconds after which what got no answer is sent again: who has to be looked for first answers after one
TIMES = 4


def echoes(addresses, size, deadline):
    """{address: how packets that must not be cut come back from there}.

    {answers, seconds: of the smallest, asked: the size that is wanted, mtu: the largest that came back, told: {mtu, by} where a router or
    this node's own link said how much fits}. ``size`` is that of the whole IP packet; without one it is what the route's link carries.
    Raises PermissionError where this process may send none.
    """
    found, end = {}, time.monotonic() + deadline
    for kind in (socket.AF_INET, socket.AF_INET6):
        mine = [one for one in addresses if family(one) == kind]
        if mine:
            found.update(_Echoes(kind, mine, size).all(end))
    return found


class _Echoes:
    """The echo requests of one family: each is told by its sequence number, which stands for an address and a size."""

    def __init__(self, kind, addresses, size):
        self.kind, self.link, self.raw = kind, *_icmp_socket(kind)
        self.mark = os.getpid() & 0xFFFF
        self.numbers = {}
        self.of = {one: {"answers": False, "seconds": None, "asked": size or _link_mtu(kind, one), "mtu": None, "told": None} for one in addresses}

    def all(self, end):
        with self.link:
            for one, said in self.of.items():
                self._send(one, SMALL)
                self._send(one, said["asked"])
            for _time in range(TIMES):
                self._listen(min(end, time.monotonic() + AGAIN))
                if time.monotonic() >= end or not self._send_more():
                    break
        return self.of

    def _send_more(self):
        """Once more what got no answer, and smaller ones to whom the large one did not come back from; False when nothing is left to ask."""
        asked = len(self.numbers)
        for one, said in self.of.items():
            if not said["answers"]:
                self._send(one, SMALL)
            if said["mtu"] is None or said["mtu"] < said["asked"]:
                self._send(one, said["asked"])
                if said["answers"]:
                    fits = (said["told"] or {}).get("mtu")
                    for size in {fits} if fits else USUAL:
                        if (said["mtu"] or SMALL) < size < said["asked"]:
                            self._send(one, size)
        return len(self.numbers) > asked

    def _send(self, address, size):
        number = len(self.numbers) & 0xFFFF
        self.numbers[number] = address, size, time.monotonic()
        body = bytes(size - HEADERS[self.kind])
        head = struct.pack("!BBHHH", ECHO[self.kind], 0, 0, self.mark, number)
        if self.kind == socket.AF_INET:
            head = struct.pack("!BBHHH", ECHO[self.kind], 0, _checksum(head + body), self.mark, number)
        try:
            self.link.sendto(head + body, (address, 0))
        except OSError as error:
            # Any other is as good as lost: packets to who is not there fill the queue of those that wait for its address.
            if error.errno == errno.EMSGSIZE:
                self.of[address]["told"] = {"mtu": _link_mtu(self.kind, address), "by": "its own link"}

    def _listen(self, until):
        """Until then, or until everybody has sent back all that was asked for."""
        while any(said["mtu"] != said["asked"] for said in self.of.values()):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.link], [], [], left)[0]:
                return
            try:
                packet, (sender, *_more) = self.link.recvfrom(65536)
            except OSError:  # an error of an earlier packet
                continue
            self._take(packet, sender.partition("%")[0])

    def _take(self, packet, sender):
        if self.raw and self.kind == socket.AF_INET:
            packet = packet[(packet[0] & 15) * 4 :]
        if len(packet) < 8:
            return
        kind, code, _sum, mark, number = struct.unpack_from("!BBHHH", packet)
        if kind == REPLY[self.kind] and (mark == self.mark or not self.raw):
            self._came_back(number, sender)
        elif kind == TOO_BIG[self.kind] and (code == 4 or self.kind == socket.AF_INET6):
            self._too_big(packet, sender)

    def _came_back(self, number, sender):
        address, size, when = self.numbers.get(number, (None, 0, 0))
        if address == sender:
            said = self.of[address]
            if not said["answers"]:
                said.update(answers=True, seconds=round(time.monotonic() - when, 4))
            said["mtu"] = max(said["mtu"] or 0, size)

    def _too_big(self, packet, router):
        """A router sends back the beginning of what it would not pass on, and what it would."""
        mtu = struct.unpack_from("!H", packet, 6)[0] if self.kind == socket.AF_INET else struct.unpack_from("!I", packet, 4)[0]
        quoted = packet[8:]
        inner = quoted[(quoted[0] & 15) * 4 :] if self.kind == socket.AF_INET and quoted else quoted[40:]
        if len(inner) >= 8 and mtu:
            kind, _code, _sum, mark, number = struct.unpack_from("!BBHHH", inner)
            if kind == ECHO[self.kind] and mark == self.mark and number in self.numbers:
                self.of[self.numbers[number][0]]["told"] = {"mtu": mtu, "by": router}


def _icmp_socket(kind):
    """(socket, whether it shows whole packets): the kernel's own socket for pings may be allowed where a raw one is not."""
    try:
        link, raw = socket.socket(kind, socket.SOCK_RAW, PROTOCOL[kind]), True
    except PermissionError:
        link, raw = socket.socket(kind, socket.SOCK_DGRAM, PROTOCOL[kind]), False
    level, option = MTU_DISCOVER[kind]
    link.setsockopt(level, option, PROBE)
    if kind == socket.AF_INET6:
        link.setsockopt(level, DONT_FRAGMENT, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    link.setblocking(False)
    return link, raw


def _link_mtu(kind, address):
    """What the route's link carries, as far as the kernel knows; an Ethernet's where there is no route."""
    with socket.socket(kind, socket.SOCK_DGRAM) as link:
        try:
            link.connect((address, 9))
            return max(SMALL, link.getsockopt(*PATH_MTU[kind]))
        except OSError:
            return 1500


def _checksum(data):
    total = sum(struct.unpack("!%dH" % ((len(data) + 1) // 2), data + bytes(len(data) % 2)))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


# -- what only objections are heard of ---------------------------------------------------------------------------------

IPIP = "ipip"


def objections(targets, deadline):
    """{(address, UDP port or ``ipip``): refused or unreachable} where somebody objected; silence, which says nothing, is left out.

    An empty packet of a tunnel is dropped by whoever has that tunnel, and returned as undeliverable by whoever has not.
    """
    found, links = {}, {}
    try:
        for address, port in targets:
            link = _sender(address, port)
            if link:
                links[link] = address, port
        end = time.monotonic() + deadline
        with selectors.DefaultSelector() as ready:
            for link in links:
                ready.register(link, selectors.EVENT_READ)
            while ready.get_map() and time.monotonic() < end:
                for key, _events in ready.select(max(0.0, end - time.monotonic())):
                    code = key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    ready.unregister(key.fileobj)
                    if code:
                        found[links[key.fileobj]] = state(code)
        return found
    finally:
        for link in links:
            link.close()
    return found


def _sender(address, port):
    kind = family(address)
    try:
        link = socket.socket(kind, socket.SOCK_RAW, 4) if port == IPIP else socket.socket(kind, socket.SOCK_DGRAM)
        link.setblocking(False)
        link.connect((address, 0 if port == IPIP else port))
        link.send(bytes(20 if port == IPIP else 8))
    except OSError:
        return None
    return link
