# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The dates of the kubelet's client certificate, read without any program and without a look at the key beside it."""

from __future__ import annotations

import binascii
import datetime
import re

from ._settings import HOMES, found_flags, installed, troubled

USUAL = "/var/lib/kubelet/pki/kubelet-client-current.pem"
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def certificate(node):
    """From when until when it is valid; empty before a node has joined, None where it may not be read."""
    path, text = found(node)
    if not text or BEGIN not in text:
        return None if troubled(node) else {}
    begin, end = validity(binascii.a2b_base64(text.split(BEGIN, 1)[1].split(END, 1)[0]))
    return {"path": path, "not_before": begin, "not_after": end, "left_s": int(end - node.clock())}


def found(node):
    """The kubeconfig names the file, or holds the certificate itself."""
    this = installed(node)
    if this["variant"] is None:
        return None, None
    if this["variant"] in ("k3s", "rke2"):
        path = HOMES[this["variant"]] + "/agent/client-kubelet.crt"
        return path, node.read(path, 1 << 16)
    kubeconfig = found_flags(node, this["variant"], this["unit"])[0].get("kubeconfig") or "/etc/kubernetes/kubelet.conf"
    text = node.read(kubeconfig, 1 << 17) or ""
    inline = re.search(r"^[ -]*client-certificate-data:[ \"']*([A-Za-z0-9+/=]+)", text, re.M)
    if inline:
        return kubeconfig, binascii.a2b_base64(inline.group(1)).decode("ascii", "replace")
    named = re.search(r"^[ -]*client-certificate:[ \"']*([^\s\"'#]+)", text, re.M)
    path = named.group(1) if named else USUAL
    path = path if path.startswith("/") else kubeconfig.rsplit("/", 1)[0] + "/" + path
    return path, node.read(path, 1 << 16)


def validity(der):
    """(not before, not after) of an X.509 certificate, in seconds since 1970. The certificate's fields come in a fixed order."""
    _tag, to_be_signed, _rest = element(element(der)[1])
    tag, _value, rest = element(to_be_signed)
    if tag == 0xA0:  # the optional version
        _tag, _serial, rest = element(rest)
    for _field in ("signature", "issuer"):
        _tag, _value, rest = element(rest)
    _tag, dates, _rest = element(rest)
    tag, begin, rest = element(dates)
    return moment(tag, begin), moment(*element(rest)[:2])


def element(data):
    """(tag, content, what follows) of the first DER element."""
    if len(data) < 2:
        raise ValueError("the certificate ends too early")
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        raise ValueError("the certificate ends too early")
    return data[0], data[start : start + size], data[start + size :]


def moment(tag, text):
    """UTCTime has two digits for the year, GeneralizedTime four."""
    digits = text.decode("ascii", "replace").rstrip("Z")
    if tag == 0x17:
        digits = ("19" if digits[:2] >= "50" else "20") + digits
    if not re.match(r"[0-9]{14}$", digits):
        raise ValueError("the certificate holds no date where one must be")
    parts = [int(digits[:4])] + [int(digits[place : place + 2]) for place in range(4, 14, 2)]
    return int((datetime.datetime(*parts) - datetime.datetime(1970, 1, 1)).total_seconds())
