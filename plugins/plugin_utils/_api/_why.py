# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Why the API server was not asked, or has not answered."""

from __future__ import annotations

DENIED, HUNG, LATE, ERROR = "denied", "hung", "late", "error"  # as in the problems of a node's facts


class ClientError(ValueError):
    """Why there is nobody to ask, and what to do about it."""


class NoAnswerError(Exception):
    """Why something could not be read or done; ``status`` is 0 where nobody has answered, and ``said`` the object that explains a refusal."""

    def __init__(self, why, kind=ERROR, status=0, said=None):
        super().__init__(why)
        self.why, self.kind, self.status, self.said = why, kind, status, said or {}

    @property
    def missing(self):
        """Whether the API server has no such thing."""
        return self.status == 404


def refused(status, said):
    """The API server's own words name user, verb and kind, and nothing secret."""
    words = said.get("message") if isinstance(said, dict) else None
    why = "%s (HTTP status %d)" % (words if isinstance(words, str) and words else "no reason given", status)
    return NoAnswerError(why, DENIED if status in (401, 403) else ERROR, status, said if isinstance(said, dict) else None)
