# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report as JSON: the canonical form, for programs and for judging again."""

from __future__ import annotations

import json


def write(report):
    return json.dumps(report, indent=1, ensure_ascii=False, default=str) + "\n"
