# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. TOML, as runtimes' configuration files use it. What is not understood raises ValueError: no value is ever guessed.

Python has a reader of its own only since 3.11; the tests hold this one against that.
"""

from __future__ import annotations

import re

BLANK = r"(?:[ \t\n]|\r\n|#[^\n]*(?=\n|\Z))*"  # a comment ends in one way only, or a hostile file takes years
KEY = r"[A-Za-z0-9_-]+"
PLAIN = r"[^\s,\]}#]+"
SPACE = r"[ \t]*"
BASIC = r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\n])*)"'
LITERAL = r"'([^'\x00-\x08\x0a-\x1f\x7f]*)'"
LONG_BASIC = r'"""(?:\r?\n)?((?:[^\\]|\\[\s\S])*?"{0,2})"""(?!")'
LONG_LITERAL = r"'''(?:\r?\n)?([\s\S]*?'{0,2})'''(?!')"
INTEGER = r"[+-]?(?:0|[1-9](?:_?[0-9])*)\Z|0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*\Z|0o[0-7](?:_?[0-7])*\Z|0b[01](?:_?[01])*\Z"
FLOAT = r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9](?:_?[0-9])*)?\Z"
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
DEPTH = 40


def loads(text):
    return Reader(text).document()


class Reader:
    def __init__(self, text):
        self.text, self.at = text, 0
        self.closed, self.opened = set(), set()  # tables that were written out in one place, tables that had a heading

    def take(self, pattern):
        """The match at this place, which is then behind us, or None."""
        match = re.compile(pattern).match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def need(self, pattern, what):
        match = self.take(pattern)
        if not match:
            raise ValueError("line %d: no %s" % (self.text.count("\n", 0, self.at) + 1, what))
        return match

    def document(self):
        root = table = {}
        while True:
            self.need(BLANK, "line")
            if self.at == len(self.text):
                return root
            if self.take(r"\["):
                many = self.take(r"\[")
                keys = self.keys()
                self.need(SPACE + (r"\]\]" if many else r"\]"), "end of a heading")
                table = self.listed(root, keys) if many else self.heading(root, keys)
            else:
                self.pair(table, 0)
            self.need(SPACE + r"(?:#[^\n]*)?(?:\r?\n|\Z)", "end of a line")

    def keys(self):
        keys = [self.key()]
        while self.take(SPACE + r"\." + SPACE):
            keys.append(self.key())
        return keys

    def key(self):
        self.take(SPACE)
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self.string(short=True)
        return self.need(KEY, "key").group()

    def pair(self, table, depth):
        keys = self.keys()
        self.need(SPACE + "=" + SPACE, "=")
        for key in keys[:-1]:
            table = self.step(table, key)
            if id(table) in self.opened:
                raise ValueError("a table with a heading of its own is written to from elsewhere")
        if keys[-1] in table:
            raise ValueError("%s is there twice" % keys[-1])
        table[keys[-1]] = self.value(depth)

    def step(self, table, key):
        """The table of that name inside this one; a new one where there is none."""
        inner = table.setdefault(key, {})
        if isinstance(inner, list) and inner and id(inner) not in self.closed:
            inner = inner[-1]
        if not isinstance(inner, dict) or id(inner) in self.closed:
            raise ValueError("%s is no table that can be written to" % key)
        return inner

    def heading(self, root, keys):
        table = root
        for key in keys[:-1]:
            table = self.step(table, key)
        if isinstance(table.get(keys[-1]), list):
            raise ValueError("%s is a list" % keys[-1])
        table = self.step(table, keys[-1])
        if id(table) in self.opened:
            raise ValueError("%s is there twice" % ".".join(keys))
        self.opened.add(id(table))
        return table

    def listed(self, root, keys):
        table = root
        for key in keys[:-1]:
            table = self.step(table, key)
        rows = table.setdefault(keys[-1], [])
        if not isinstance(rows, list) or id(rows) in self.closed:
            raise ValueError("%s is no list of tables" % keys[-1])
        rows.append({})
        return rows[-1]

    def value(self, depth):
        if depth > DEPTH:
            raise ValueError("too deep")
        sign = self.text[self.at : self.at + 1]
        if sign in ("'", '"'):
            return self.string()
        if sign in ("[", "{"):
            found = self.array(depth + 1) if self.take(r"\[") else self.inline(depth + 1)
            self.closed.add(id(found))
            return found
        return plain(self.need(PLAIN, "value").group())

    def array(self, depth):
        rows = []
        self.need(BLANK, "value")
        while not self.take(r"\]"):
            rows.append(self.value(depth))
            self.need(BLANK + r"(?:," + BLANK + r"|(?=\]))", "comma or ]")
        return rows

    def inline(self, depth):
        self.need(r"\{" + SPACE, "{")
        table = {}
        if self.take(r"\}"):
            return table
        while True:
            self.pair(table, depth)
            if self.need(SPACE + r"([,}])", "comma or }").group(1) == "}":
                return table

    def string(self, short=False):
        if not short and self.text.startswith('"""', self.at):
            return unescaped(self.need(LONG_BASIC, "end of a text").group(1), long=True)
        if not short and self.text.startswith("'''", self.at):
            return checked(self.need(LONG_LITERAL, "end of a text").group(1))
        if self.text[self.at] == "'":
            return self.need(LITERAL, "end of a text").group(1)
        return unescaped(self.need(BASIC, "end of a text").group(1))


def plain(word):
    if word in ("true", "false"):
        return word == "true"
    if re.match(INTEGER, word):
        return int(word.replace("_", ""), 0 if word[:1] == "0" else 10)
    if re.match(FLOAT, word):
        return float(word.replace("_", ""))
    raise ValueError("%.40r is no value that is known here" % word)


def checked(text):
    if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)", text):
        raise ValueError("a control character")
    return text.replace("\r\n", "\n")


def unescaped(text, long=False):
    if long:
        text = re.sub(r"(?<!\\)((?:\\\\)*)\\[ \t]*\n[ \t\n]*", r"\1", checked(text))

    def meant(match):
        short, long_, sign = match.groups()
        number = int(short or long_, 16) if short or long_ else -1
        if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            return chr(number)
        if sign not in ESCAPES:
            raise ValueError("an unknown escape")
        return ESCAPES[sign]

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([\s\S]|\Z))", meant, text)
