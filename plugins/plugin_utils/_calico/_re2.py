# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Go's regular expressions (RE2), which Calico matches links' names with: what they refuse, in Go's own words, and what they find.

Python's own differ where it matters here: they accept lookarounds and backreferences, refuse ``(?i)`` in the middle of a
pattern, read ``\\Z``, ``\\z``, ``[[:alpha:]]`` and ``\\pL`` otherwise, and may take for ever over a pattern that Go answers at once.
"""

from __future__ import annotations

import string
import unicodedata

PERL = {"d": string.digits, "s": "\t\n\f\r ", "w": string.ascii_letters + string.digits + "_"}
POSIX = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": "".join(map(chr, range(128))),
    "blank": "\t ",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": "\t\n\v\f\r ",
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
_MINOR = {"C": "cfos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
CATEGORIES = set(_MINOR) | {major + minor for major, minors in _MINOR.items() for minor in minors}
C_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
MOST_REPEATS = 1000


class Refused(ValueError):
    """Go does not compile this pattern; the text is Go's."""

    def __init__(self, what, where):
        super().__init__("error parsing regexp: %s: `%s`" % (what, where))


class Untold(ValueError):
    """What Go makes of this pattern is not known here."""


def compiled(pattern):
    """A function that tells whether the pattern is found anywhere in a text."""
    program = []
    _emit(_Parser(pattern).parsed(), program)
    program.append(("found",))
    return lambda text: _search(program, text)


class _Parser:
    """Go's parser, step by step, because its refusals name the step that it had come to."""

    def __init__(self, pattern):
        self.whole = self.rest = pattern
        self.flags = frozenset()
        self.frames = [_Frame(self.flags)]
        self.last_repeat = ""

    def parsed(self):
        while self.rest:
            before = self.rest
            repeats = self._repeats()
            if not repeats:
                self._step()
            self.last_repeat = before if repeats else ""
        if len(self.frames) > 1:
            raise Refused("missing closing )", self.whole)
        return self.frames[0].node()

    def _take(self, count=1):
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def _push(self, *node):
        self.frames[-1].current.append(node)

    def _literal(self, char):
        self._push("char", _folded(char) if "i" in self.flags else {char}.__contains__)

    def _step(self):
        first = self.rest[0]
        if first == "(" and self.rest[1:2] == "?":
            self._perl_group()
        elif first == "(":
            self._take()
            self.frames.append(_Frame(self.flags))
        elif first == "|":
            self._take()
            self.frames[-1].split()
        elif first == ")":
            self._take()
            if len(self.frames) == 1:
                raise Refused("unexpected )", self.whole)
            closed = self.frames.pop()
            self.flags = closed.flags
            self._push(*closed.node())
        elif first in "^$":
            self._take()
            self._push("at", {"^": "begin", "$": "end"}[first] + (" of line" if "m" in self.flags else ""))
        elif first == ".":
            self._take()
            self._push("char", (lambda _char: True) if "s" in self.flags else (lambda char: char != "\n"))
        elif first == "[":
            self._class()
        elif first == "\\":
            self._escape()
        else:
            self._literal(self._take())

    def _repeats(self):
        """Whether a repetition stood here, and was applied to what came before it."""
        bounds, after = self._bounds()
        if bounds is None:
            return False
        before, self.rest = self.rest, after
        if self.rest.startswith("?"):
            self._take()
        said = before[: len(before) - len(self.rest)]
        if self.last_repeat:
            raise Refused("invalid nested repetition operator", self.last_repeat[: len(self.last_repeat) - len(self.rest)])
        current = self.frames[-1].current
        if not current:
            raise Refused("missing argument to repetition operator", said)
        node = ("repeat", current.pop(), *bounds)
        if before[0] == "{" and max(bounds[0], bounds[1] or 0) >= 2 and not _is_small(node, MOST_REPEATS):
            raise Refused("invalid repeat count", said)
        current.append(node)
        return True

    def _bounds(self):
        """((least, most), the rest after it); most is None without a limit."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.rest[0])
        if simple:
            return simple, self.rest[1:]
        inside, closed, after = self.rest[1:].partition("}")
        least, comma, most = inside.partition(",")
        if self.rest[0] != "{" or not closed or not _is_count(least) or (comma and most and not _is_count(most)):
            return None, self.rest
        low, high = int(least), int(most) if most else None if comma else int(least)
        if low > MOST_REPEATS or (high or 0) > MOST_REPEATS or (high is not None and low > high):
            raise Refused("invalid repeat count", self.rest[: len(self.rest) - len(after)])
        return (low, high), after

    def _perl_group(self):
        """(?P<name>…), (?<name>…), (?flags) and (?flags:…); lookarounds are refused here."""
        start = self.rest
        if start.startswith("(?P<") and len(start) > 4 or start.startswith("(?<") and len(start) > 3:
            return self._named_group(start)
        self._take(2)
        flags, adding, saw = set(self.flags), True, False
        while self.rest:
            char = self._take()
            if char in "imsU":
                (flags.add if adding else flags.discard)(char)
                saw = True
            elif char == "-" and adding:
                adding, saw = False, False
            elif char in ":)" and (adding or saw):
                if char == ":":
                    self.frames.append(_Frame(self.flags))
                self.flags = frozenset(flags)
                return None
            else:
                raise Refused("invalid or unsupported Perl syntax", start[: len(start) - len(self.rest)])
        raise Refused("missing closing )", start)

    def _named_group(self, start):
        head, closed, self.rest = start.partition(">")
        if not closed:
            raise Refused("invalid named capture", start)
        name = head.partition("<")[2]
        if not name or set(name) - set(PERL["w"]):
            raise Refused("invalid named capture", head + ">")
        self.frames.append(_Frame(self.flags))

    def _escape(self):
        second = self.rest[1:2]
        if second and second in "AzbB":
            self._take(2)
            self._push("at", {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}[second])
        elif second == "C":
            raise Refused("invalid escape sequence", "\\C")
        elif second == "Q":
            quoted, _end, self.rest = self.rest[2:].partition("\\E")
            for char in quoted:
                self._literal(char)
        else:
            group = self._group()
            if group:
                self._push("char", group)
            else:
                self._literal(self._escaped())

    def _group(self):
        """\\d, \\pL and their like, as a test of one character; None where no such group stands here."""
        second = self.rest[1:2]
        if self.rest[0] != "\\" or not second:
            return None
        if second in "pP":
            return self._unicode(second)
        if second.lower() not in PERL:
            return None
        self._take(2)
        return _either(PERL[second.lower()], second.isupper(), "i" in self.flags)

    def _unicode(self, letter):
        start = self.rest
        self._take(2)
        name = self._take()
        if name == "{":
            name, closed, self.rest = self.rest.partition("}")
            if not closed:
                raise Refused("invalid character class range", start)
        negated = (letter == "P") != name.startswith("^")
        name = name[1:] if name.startswith("^") else name
        if name == "Any":
            return lambda _char: not negated
        if name in CATEGORIES:
            variants = _variants if "i" in self.flags else _itself
            return lambda char: any(unicodedata.category(one).startswith(name) for one in variants(char)) != negated
        if len(name) > 2 and name.replace("_", "").isalpha():
            raise Untold("the characters of %s" % name)
        raise Refused("invalid character class range", start[: len(start) - len(self.rest)])

    def _class(self):
        start = self.rest
        self._take()
        negated = self.rest.startswith("^")
        if negated:
            self._take()
        tests, first = [], True
        while first or not self.rest.startswith("]"):
            first = False
            tests.append(self._named_class() or self._within_class(start))
        self._take()
        self._push("char", lambda char: any(test(char) for test in tests) != negated)

    def _named_class(self):
        if not self.rest.startswith("[:") or ":]" not in self.rest[2:]:
            return None
        name, _end, self.rest = self.rest[2:].partition(":]")
        if name.lstrip("^") not in POSIX or name.startswith("^^"):
            raise Refused("invalid character class range", "[:%s:]" % name)
        return _either(POSIX[name.lstrip("^")], name.startswith("^"), "i" in self.flags)

    def _within_class(self, start):
        group = self._group() if self.rest else None
        if group:
            return group
        before = self.rest
        low = high = self._class_char(start)
        if self.rest.startswith("-") and len(self.rest) >= 2 and self.rest[1] != "]":
            self._take()
            high = self._class_char(start)
            if high < low:
                raise Refused("invalid character class range", before[: len(before) - len(self.rest)])
        variants = _variants if "i" in self.flags else _itself
        return lambda char: any(low <= one <= high for one in variants(char))

    def _class_char(self, start):
        if not self.rest:
            raise Refused("missing closing ]", start)
        return self._escaped() if self.rest[0] == "\\" else self._take()

    def _escaped(self):
        """The one character that an escape stands for."""
        start = self.rest
        self._take()
        if not self.rest:
            raise Refused("trailing backslash at end of expression", "")
        char = self._take()
        if char in C_ESCAPES:
            return C_ESCAPES[char]
        if char == "0" or (char in "1234567" and self.rest[:1] in tuple("01234567")):
            digits = char
            while len(digits) < 3 and self.rest[:1] in tuple("01234567"):
                digits += self._take()
            return chr(int(digits, 8))
        if char == "x":
            found = self._hexadecimal()
            if found is not None:
                return found
        elif ord(char) < 128 and not char.isalnum():
            return char
        raise Refused("invalid escape sequence", start[: len(start) - len(self.rest)])

    def _hexadecimal(self):
        if not self.rest.startswith("{"):
            digits = self._take(2)
            return chr(int(digits, 16)) if len(digits) == 2 and set(digits) <= set(string.hexdigits) else None
        self._take()
        digits = ""
        while self.rest:
            char = self._take()
            if char == "}":
                return chr(int(digits, 16)) if digits else None
            digits += char
            if char not in string.hexdigits or int(digits, 16) > 0x10FFFF:
                return None
        return None


class _Frame:
    """An open group: the alternatives that are complete, and the one that is being read."""

    def __init__(self, flags):
        self.flags = flags
        self.complete = []
        self.current = []

    def split(self):
        self.complete.append(("all", self.current))
        self.current = []

    def node(self):
        return ("any", [*self.complete, ("all", self.current)])


def _is_count(text):
    return text.isascii() and text.isdigit() and (text == "0" or not text.startswith("0"))


def _is_small(node, limit):
    """Go refuses repetitions of repetitions that come to more than a thousand."""
    if node[0] == "repeat":
        count = node[2] if node[3] is None else node[3]
        if node[3] == 0:
            return True
        if count > limit:
            return False
        return _is_small(node[1], limit // count if count else limit)
    return node[0] not in ("all", "any") or all(_is_small(one, limit) for one in node[1])


def _itself(char):
    return (char,)


def _variants(char):
    """A character in all its cases; two signs have the case of an ASCII letter."""
    more = {"k": "\u212a", "s": "\u017f"}.get(char.lower(), "")
    return {char, char.lower(), char.upper(), char.casefold(), *more}


def _folded(wanted):
    variants = _variants(wanted)
    return lambda char: char in variants or wanted in _variants(char)


def _either(chars, negated, fold):
    variants = _variants if fold else _itself
    return lambda char: any(one in chars for one in variants(char)) != negated


def _emit(node, program):
    """Instructions: a test of one character, an assertion, or a fork to two places."""
    kind = node[0]
    if kind in ("char", "at"):
        program.append(node)
    elif kind == "all":
        for one in node[1]:
            _emit(one, program)
    elif kind == "any":
        ends = []
        for one in node[1][:-1]:
            fork = len(program)
            program.append(None)
            _emit(one, program)
            ends.append(len(program))
            program.append(None)
            program[fork] = ("fork", fork + 1, len(program))
        _emit(node[1][-1], program)
        for end in ends:
            program[end] = ("fork", len(program), len(program))
    else:
        _emit_repeat(*node[1:], program)


def _emit_repeat(node, least, most, program):
    for _time in range(least):
        _emit(node, program)
    if most is None:
        fork = len(program)
        program.append(None)
        _emit(node, program)
        program.append(("fork", fork, fork))
        program[fork] = ("fork", fork + 1, len(program))
        return
    forks = []
    for _time in range(most - least):
        forks.append(len(program))
        program.append(None)
        _emit(node, program)
    for fork in forks:
        program[fork] = ("fork", fork + 1, len(program))


def _search(program, text):
    """All ways at once, so that the time is that of the text and the program, whatever the pattern."""
    ways = set()
    for at in range(len(text) + 1):
        ways.add(0)  # a find may begin anywhere
        ways = _followed(program, ways, text, at)
        if len(program) - 1 in ways:
            return True
        if at < len(text):
            ways = {way + 1 for way in ways if program[way][0] == "char" and program[way][1](text[at])}
    return False


def _followed(program, ways, text, at):
    seen, left = set(), list(ways)
    while left:
        way = left.pop()
        if way in seen:
            continue
        seen.add(way)
        instruction = program[way]
        if instruction[0] == "fork":
            left += instruction[1:]
        elif instruction[0] == "at" and _holds(instruction[1], text, at):
            left.append(way + 1)
    return seen


def _holds(place, text, at):
    if place.startswith("begin"):
        return at == 0 or (place.endswith("line") and text[at - 1] == "\n")
    if place.startswith("end"):
        return at == len(text) or (place.endswith("line") and text[at] == "\n")
    inside = [0 <= one < len(text) and text[one] in PERL["w"] for one in (at - 1, at)]
    return (inside[0] != inside[1]) == (place == "boundary")
