# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report as JSON: the canonical form, for programs and for judging again.

Only ASCII is written, so that no text of a node can act on the terminal of whoever prints the file.
"""

from __future__ import annotations

import json

_one = json.JSONEncoder(default=str).encode


def write(report):
    """One line for each node and finding: quick to write, and kind to grep and diff."""
    return _lines(report, ("nodes", "findings"))


def write_bundle(facts):
    return _lines(facts, ("nodes",))


def write_plan(plan):
    return _lines(plan, ("turns", "by_hand", "outside"))


def _lines(document, long):
    return "{\n%s\n}\n" % ",\n".join(" %s: %s" % (_one(name), _listed(value) if name in long else _one(value)) for name, value in document.items())


def _listed(value):
    if isinstance(value, dict):
        return "{%s\n }" % ",".join("\n  %s: %s" % (_one(str(key)), _one(one)) for key, one in value.items())
    return "[%s\n ]" % ",".join("\n  " + _one(one) for one in value)
