# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. As much of HTTP/2, gRPC and protobuf as it takes to ask a daemon one question and to notice that it does not answer.

Container runtimes speak gRPC on a unix socket. Asking them here, without crictl or ctr, costs no process, works where
neither is installed, and shows the difference between a kernel that accepts for a stopped daemon and a daemon that speaks.
"""

from __future__ import annotations

import re

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 7, 8, 9
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
FRAME_LIMIT = 1 << 14  # what a server may send to a client that asks for no more
ROOM = 1 << 22  # how much it may send before it has to wait for us
TOO_LARGE, UNIMPLEMENTED = 8, 12  # the former is what a client says itself of an answer that it has no room for

# The header's name, plain or in HPACK's Huffman code, then the length of its value and the value. A status has one or two
# digits, which Huffman coding cannot shorten, so that they are always sent as they are.
STATUS = re.compile(rb"(?:\x0bgrpc-status|\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f)(?:\x01([0-9])|\x02([0-9]{2}))")


def request(method, message=b""):
    """All bytes that a client has to send for one call."""
    headers = b"\x83\x86" + b"".join(  # :method POST, :scheme http
        b"\x00" + _text(name) + _text(value)
        for name, value in ((":path", "/" + method), (":authority", "localhost"), ("content-type", "application/grpc"), ("te", "trailers"))
    )
    return b"".join(
        (
            PREFACE,
            frame(SETTINGS, 0, 0, b"\x00\x04" + ROOM.to_bytes(4, "big")),
            frame(WINDOW, 0, 0, ROOM.to_bytes(4, "big")),
            frame(HEADERS, END_HEADERS, 1, headers),
            frame(DATA, END_STREAM, 1, b"\x00" + len(message).to_bytes(4, "big") + message),
        )
    )


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _text(text):
    return bytes((len(text),)) + text.encode("ascii")


class Reply:
    """What a server has said so far. Feeding raises ValueError for whatever is no HTTP/2."""

    def __init__(self):
        self.greeted = self.ended = False
        self.code = None
        self._rest, self._body = b"", b""

    def feed(self, data):
        self._rest += data
        while len(self._rest) >= 9:
            size = int.from_bytes(self._rest[:3], "big")
            if size > FRAME_LIMIT or not (self.greeted or self._rest[3] == SETTINGS):
                raise ValueError("does not speak HTTP/2")
            if len(self._rest) < 9 + size:
                return
            head, payload, self._rest = self._rest[:9], self._rest[9 : 9 + size], self._rest[9 + size :]
            self._take(head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, payload)

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS:
            self.greeted = True
        if kind == GOAWAY or (kind == RESET and stream == 1):
            self.ended = True
        if stream != 1:
            return
        if kind == DATA:
            self._body += payload[1 : len(payload) - payload[0]] if flags & PADDED and payload else payload
        if kind in (HEADERS, CONTINUATION):
            status = STATUS.search(payload)
            self.code = int(status.group(1) or status.group(2)) if status else self.code
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            self.ended = True

    @property
    def message(self):
        """The answer's message; None where there is none, or it is cut or compressed."""
        size = int.from_bytes(self._body[1:5], "big")
        whole = len(self._body) >= 5 + size and self._body[:1] == b"\x00"
        return self._body[5 : 5 + size] if whole else None


def fields(data):
    """{number: [values]} of a protobuf message: numbers as they are, everything else as bytes."""
    found, at = {}, 0
    if not isinstance(data, bytes):
        raise ValueError("a number where a protobuf message should be")
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 2, 5):
            size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise ValueError("a protobuf message is cut")
        else:
            raise ValueError("no protobuf message")
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data, at):
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("a protobuf message is cut")


def text(found, number):
    """One text field, at most as long as a reader would want it."""
    values = found.get(number) or [b""]
    return values[-1][:200].decode("utf-8", "replace") if isinstance(values[-1], bytes) else str(values[-1])
