# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The part of YAML that configuration files of nodes are written in: block mappings, lists and plain scalars.

A node has no YAML library. What is outside that part is never guessed: a document with it reads as None, and a scalar
with it as UNREAD.
"""

from __future__ import annotations

import json
import re

DEPTH = 30


class _Unread:
    """Something is there, but not in the part of YAML that is read here."""


UNREAD = _Unread()
_KEY = r"(?:[A-Za-z_][A-Za-z0-9_./+-]*|\"[^\"\\]*\"|'[^']*')"
_FLOW_SCALAR = r"(?:\"[^\"\\]*\"|'[^']*'|[A-Za-z0-9_./%+-]+)"
_WORDS = {"~": None}
for _word, _value in (("null", None), ("true", True), ("yes", True), ("on", True), ("false", False), ("no", False), ("off", False)):
    for _spelling in (_word, _word.capitalize(), _word.upper()):
        _WORDS[_spelling] = _value


class _Beyond(ValueError):
    """The document uses more of YAML than is read here."""


def read(text):
    """A document as dictionaries, lists and scalars; None where it is not a mapping, or more YAML than is read here."""
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None
    try:
        lines = _lines(text)
        if not lines:
            return {}
        found, end = _node(lines, 0, 0)
    except _Beyond:
        return None
    return found if end == len(lines) and isinstance(found, dict) else None


def at(document, *path):
    """The value at a path of keys; None where there is none."""
    for key in path:
        if document is UNREAD:
            return UNREAD
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def _lines(text):
    """[(indentation, content)] without blank lines, comments and the document's start."""
    text = text.replace("\r\n", "\n")
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u2028\u2029\ud800-\udfff\ufffe\uffff]", text):
        raise _Beyond
    lines = []
    for line in text.split("\n"):
        content = line.strip(" ")
        if not content or content.startswith("#"):
            continue
        if "\t" in content:
            raise _Beyond
        if not line.startswith(" ") and (line.startswith(("---", "...", "%"))):
            if lines or not re.match(r"--- *(#.*)?$", line):
                raise _Beyond
            continue
        lines.append((len(line) - len(line.lstrip(" ")), content))
    return lines


def _node(lines, i, depth):
    """A mapping or a list that starts at a line: (value, the line behind it)."""
    if depth > DEPTH:
        raise _Beyond
    indent, content = lines[i]
    return (_list if content == "-" or content.startswith("- ") else _mapping)(lines, i, indent, depth)


def _mapping(lines, i, indent, depth):
    found = {}
    while i < len(lines) and lines[i][0] == indent:
        match = re.match(r"(%s) *:(?: +(.*))?$" % _KEY, lines[i][1])
        if not match:
            raise _Beyond
        key = _scalar(match.group(1))
        if not isinstance(key, str) or key in found:
            raise _Beyond
        found[key], i = _value(lines, i, indent, match.group(2) or "", depth, in_mapping=True)
    if i < len(lines) and lines[i][0] > indent:
        raise _Beyond
    return found, i


def _list(lines, i, indent, depth):
    found = []
    while i < len(lines) and lines[i][0] == indent and (lines[i][1] == "-" or lines[i][1].startswith("- ")):
        content = lines[i][1][1:].lstrip(" ")
        if re.match(r"%s *:( |$)|-( |$)" % _KEY, content):
            lines[i] = (indent + len(lines[i][1]) - len(content), content)
            one, i = _node(lines, i, depth + 1)
            if i < len(lines) and lines[i][0] > indent:
                raise _Beyond
        else:
            one, i = _value(lines, i, indent, content, depth)
        found.append(one)
    return found, i


def _value(lines, i, indent, text, depth, in_mapping=False):
    """What follows a key or a dash: (value, the line behind it)."""
    below = lines[i + 1] if i + 1 < len(lines) else (-1, "")
    if not text or text.startswith("#"):
        if below[0] > indent or (in_mapping and below[0] == indent and (below[1] == "-" or below[1].startswith("- "))):
            return _node(lines, i + 1, depth + 1)
        return None, i + 1
    if re.match(r"[|>][-+0-9]*( +#.*)?$", text):
        i += 1
        while i < len(lines) and lines[i][0] > indent:
            i += 1
        return UNREAD, i
    if below[0] > indent:  # a scalar that goes on in the next line
        raise _Beyond
    return _inline(text), i + 1


def _inline(text):
    """A value that begins and ends on one line."""
    first = text[0]
    comment = r" *(?: #.*)?$"
    if first in "\"'":
        quoted = re.match(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*')" + comment, text)
        return _scalar(_found(quoted))
    if first in "{[":
        value, end = _flow(text, 0, 0)
        _found(re.match("()" + comment, text[end:]))
        return value
    if first in "&*!%@`,]}|>?" or re.match(r"-( |$)", text):
        raise _Beyond
    text = re.split(r" +#", text)[0]
    if re.search(r":( |$)", text):
        raise _Beyond
    return _scalar(text)


def _flow(text, i, depth):
    """A value within braces or brackets, which may nest: (value, where it ends)."""
    if depth > DEPTH:
        raise _Beyond
    if text[i : i + 1] not in ("{", "["):
        scalar = re.compile(_FLOW_SCALAR).match(text, i) or _beyond()
        return _scalar(scalar.group()), scalar.end()
    mapping, found, i = text[i] == "{", [], i + 1
    closing = "}" if mapping else "]"
    while True:
        i = _blanks(text, i)
        if text[i : i + 1] == closing and not found:
            break
        key = None
        if mapping:
            match = re.compile(r"(%s):(?= )" % _KEY).match(text, i) or _beyond()
            key, i = _scalar(match.group(1)), _blanks(text, match.end())
        value, i = _flow(text, i, depth + 1)
        found.append((key, value))
        i = _blanks(text, i)
        if text[i : i + 1] != ",":
            break
        i += 1
    if text[i : i + 1] != closing:
        raise _Beyond
    if not mapping:
        return [value for _key, value in found], i + 1
    if len({key for key, _value in found}) < len(found) or not all(isinstance(key, str) for key, _value in found):
        raise _Beyond
    return dict(found), i + 1


def _blanks(text, i):
    return i + len(text[i:]) - len(text[i:].lstrip(" "))


def _beyond():
    raise _Beyond


def _found(match):
    if not match:
        raise _Beyond
    return match.group(1)


# Words, quantities, percentages, durations and addresses are text; what else begins like a number might be one.
_TEXT = r"[A-Za-z_/]|(\d+(\.\d+)?(%|[KMGTP]i?|k)|(\d+(\.\d+)?(h|m|s|ms|us|ns))+|\d+(\.\d+){3}(/\d+)?)$"


def _scalar(text):
    """One scalar, as YAML 1.1 types it; UNREAD where that takes more than a glance (dates, octal numbers, escapes)."""
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if text[0] == '"':
        return UNREAD if "\\" in text else text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    if re.match(r"[-+]?(0|[1-9][0-9]{0,17})$", text):
        return int(text)
    return text if re.match(_TEXT, text) else UNREAD
