# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Container runtimes: do they answer, how fast, are they set up as the kubelet expects, and what would a restart cost?"""

from __future__ import annotations

from . import answers, settings, symptoms

__all__ = ["answers", "settings", "symptoms"]
