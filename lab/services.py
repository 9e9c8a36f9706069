"""What a data centre gives its nodes: the time, and names. Runs in the lab's own network, at 10.0.0.1."""

from __future__ import annotations

import socketserver
import struct
import threading
import time

SINCE_1900 = 2208988800
ADDRESSES = {"cp": "10.0.0.1", **{"n%d" % number: "10.0.0.%d" % (10 + number) for number in range(1, 10)}}
A_RECORD, REFUSED_NAME, TTL = 1, 3, 60


def ntp_now() -> int:
    return int((time.time() + SINCE_1900) * 2**32)


class Time(socketserver.DatagramRequestHandler):
    """NTP, as far as a client that asks once needs it. The time is this machine's; nothing sets it."""

    def handle(self) -> None:
        received, question = ntp_now(), self.rfile.read()
        if len(question) < 48:
            return
        version, sent = question[0] >> 3 & 7, question[40:48]
        server, stratum, poll, precision = version << 3 | 4, 1, 4, -20
        self.wfile.write(struct.pack("!BBBb2I4sQ8s2Q", server, stratum, poll, precision, 0, 0, b"LAB\0", received, sent, received, ntp_now()))


class Names(socketserver.DatagramRequestHandler):
    """DNS for the lab's own names, with or without a domain; it knows no others."""

    def handle(self) -> None:
        question = self.rfile.read()
        number, flags, count = struct.unpack_from("!3H", question)
        end = question.index(b"\0", 12)
        kind = struct.unpack_from("!H", question, end + 1)[0]
        address = ADDRESSES.get(first_label(question).lower())
        answers = [address] if address and kind == A_RECORD and count == 1 else []
        code = 0 if address else REFUSED_NAME
        reply = struct.pack("!6H", number, 0x8480 | flags & 0x0100 | code, 1, len(answers), 0, 0) + question[12 : end + 5]
        for one in answers:
            reply += struct.pack("!3HIH", 0xC00C, A_RECORD, 1, TTL, 4) + bytes(int(part) for part in one.split("."))
        self.wfile.write(reply)


def first_label(question: bytes) -> str:
    return question[13 : 13 + question[12]].decode("ascii", "replace")


def main() -> None:
    for port, answers in ((53, Names), (123, Time)):
        threading.Thread(target=socketserver.UDPServer(("", port), answers).serve_forever).start()


if __name__ == "__main__":
    main()
