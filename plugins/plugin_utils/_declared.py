# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What rules declare about themselves for users to change."""

from __future__ import annotations

from dataclasses import dataclass

THRESHOLDS = {}


@dataclass(frozen=True)
class Threshold:
    name: str
    default: object
    meaning: str


def threshold(name, default, meaning):
    """Declare a number, text, truth value or list of texts that users may change; answers its name."""
    THRESHOLDS[name] = Threshold(name, default, meaning)
    return name
