# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The way to the API server: which one, and as whom (_client), how it is asked and told (_door), and how an action goes about it (_action)."""

from __future__ import annotations

from ._client import ClientError, opened
from ._door import NoAnswerError

__all__ = ["ClientError", "NoAnswerError", "opened"]
