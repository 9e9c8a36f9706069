# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report for a terminal of 100 columns."""

from __future__ import annotations


def text(report):
    lines = []
    for one in report["findings"]:
        if one["status"] in ("fail", "warn"):
            lines.append("%(node)s: %(status)s %(id)s: %(message)s" % one)
    return "\n".join(lines)
