# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Text from nodes, made harmless and short: measured, cut, wrapped, folded."""

from __future__ import annotations

import functools
import re
import unicodedata

MORE = "\u2026"
LONGEST_COMMAND = 2000  # on a terminal


def safe(text):
    """One line in which nothing acts on a terminal or a page: control, format and unassigned characters are spelled out."""
    text = str(text)
    return text if text.isprintable() else "".join(one if one.isprintable() else _spelled(one) for one in text)


def _spelled(one):
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(one) or ("\\x%02x" if ord(one) < 256 else "\\u%04x" if ord(one) < 65536 else "\\U%08x") % ord(one)


def width(text):
    """Columns on a terminal."""
    return len(text) if text.isascii() else sum(_columns(one) for one in text)


def _columns(one):
    if unicodedata.category(one) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def clip(text, columns):
    """The beginning of a text that fits, with a mark where something was cut off."""
    text = text[: 4 * columns + 1]  # a letter may carry any number of accents that take no column
    if len(text) <= 4 * columns and width(text) <= columns:
        return text
    kept, used = [], 0
    for one in text[: 4 * columns]:
        used += _columns(one)
        if used > columns - 1:
            break
        kept.append(one)
    return "".join(kept).rstrip() + MORE


def pad(text, columns):
    return text + " " * (columns - width(text))


def wrap(text, columns, most):
    """A sentence in so many lines at most."""
    lines = [""]
    for word in text[: 8 * columns * most].split(" "):
        longer = lines[-1] + " " + word if lines[-1] else word
        if len(lines) == most or width(longer) <= columns or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [clip(line, columns) for line in lines]


def wrap_command(command, columns):
    """A command in lines that can be pasted together: broken only between words that no quotes hold together.

    They fit where no word is longer than a line: half a list of nodes would be another command. What is too long even so is left to the
    other reports. A remark at its end is a remark on each of its lines.
    """
    words = re.findall(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\]|['"\\])+""", command)
    if width(command) <= columns:
        return [command]
    if len(command) > LONGEST_COMMAND:
        return ["# too long for a terminal: see report.html"]
    remark = words.index("#") if "#" in words else len(words)
    lines = _filled(words[:remark], columns - 2)
    return [line + " \\" for line in lines[:-1]] + lines[-1:] + ["# " + line for line in _filled(words[remark + 1 :], columns - 2)]


def _filled(words, columns):
    lines = [""] if words else []
    for word in words:
        if lines[-1] and width(lines[-1]) + 1 + width(word) > columns:
            lines.append(word)
        else:
            lines[-1] = (lines[-1] + " " + word).lstrip()
    return lines


NAMES = 1 << 13  # of nodes: each comes with every rule, and is taken apart once


@functools.lru_cache(NAMES)
def natural(name):
    """The order in which people count: n2 before n10."""
    return [(len(part.lstrip("0")), part.lstrip("0"), part) if part.isdecimal() else (-1, part, "") for part in re.split(r"([0-9]+)", name)]


@functools.lru_cache(NAMES)
def _next(name):
    """What comes after a name that ends in a number, perhaps with a domain: n09.x, n10.x."""
    parts = re.fullmatch(r"(.*?)([0-9]{1,18})([^0-9]*)", name)
    return "%s%0*d%s" % (parts.group(1), len(parts.group(2)), int(parts.group(2)) + 1, parts.group(3)) if parts else None


def fold(names, columns):
    """Names in one line: ``n1..n9, edge-3 and 37 more``. They come in natural order."""
    runs = []
    for name in names:
        if runs and name == _next(runs[-1][-1]):
            runs[-1].append(name)
        else:
            runs.append([name])
    parts = [part for run in runs for part in (run if len(run) < 3 else [run])]
    said, room, shown = [], columns - len(" and %d more" % len(names)), 0
    for part in parts:
        text = safe(part) if isinstance(part, str) else "%s..%s" % (safe(part[0]), safe(part[-1]))
        text = text if said else clip(text, room)
        if said and width(", ".join([*said, text])) > room:
            break
        said.append(text)
        shown += 1 if isinstance(part, str) else len(part)
    return ", ".join(said) + (" and %d more" % (len(names) - shown) if shown < len(names) else "")


def counted(number, word):
    """``1 node``, ``2 nodes``."""
    return "%d %s%s" % (number, word, "" if number == 1 else "s")
