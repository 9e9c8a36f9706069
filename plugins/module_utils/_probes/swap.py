# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap: what is on now, and everything that can bring it back at the next boot."""

from __future__ import annotations

import re


def active(node):
    """The swap areas in use. A kernel without swap has no such file: nothing is on."""
    rows = [line.split() for line in node.lines("/proc/swaps")[1:] if line.strip()]
    return [
        {"device": _unescape(row[0]), "kind": row[1], "size_kib": int(row[2]), "used_kib": int(row[3]), "priority": int(row[4])}
        for row in rows
        if len(row) >= 5
    ]


def memory(node):
    """What swapoff has to fit into."""
    rows = dict(line.split(":", 1) for line in node.lines("/proc/meminfo") if ":" in line)
    return {name: int(rows[key].split()[0]) for name, key in (("total_kib", "MemTotal"), ("available_kib", "MemAvailable")) if key in rows}


def sources(node):
    """Each mechanism that would turn swap on at the next boot, with what it would turn on."""
    return node.each(SOURCES)


def fstab(node):
    """An entry counts by its third field alone; the second may be anything."""
    entries = []
    for number, line in enumerate(node.lines("/etc/fstab"), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#") or len(fields) < 3 or fields[2] != "swap":
            continue
        options = fields[3].split(",") if len(fields) > 3 else []
        entries.append({"by": "/etc/fstab line %d" % number, "mechanism": "fstab", "what": _unescape(fields[0]), "activates": "noauto" not in options})
    return entries


def _unescape(text):
    """fstab and /proc/swaps write blanks as octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


SOURCES = [fstab]
FACTS = {"active": active, "memory": memory, "sources": sources}
WAITING = {}
UNITS = ("swap.target",)
