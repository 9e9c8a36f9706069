# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Numbers as the kernel writes them; None for what is none."""

from __future__ import annotations


def sized(lines):
    """{name: number} of lines such as ``MemTotal: 16384 kB`` or ``oom_kill 0``."""
    rows = (line.split(None, 2) for line in lines)
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and number(row[1]) is not None}


def number(text):
    return int(text) if text.isdigit() and text.isascii() and len(text) < 30 else None


def hexadecimal(text):
    return int(text, 16) if text and len(text) < 30 and not set(text) - set("0123456789abcdefABCDEF") else None


def decimal(text):
    whole, _point, part = text.partition(".")
    return number(whole) is not None and (not part or number(part) is not None)
