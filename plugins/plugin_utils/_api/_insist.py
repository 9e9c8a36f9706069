# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. To try again what an API server was too busy for, or what somebody else has changed in the same moment."""

from __future__ import annotations

import time

from ._why import NoAnswerError

FINAL = (400, 401, 403, 404, 405, 415, 422)  # it has understood the question, and its answer will be the same
EACH = 10.0  # seconds for one answer, so that after one that hangs there is still time for another
PAUSE = 1.0


def insisting(attempt, seconds):
    """What an attempt gives that is told how long an answer may take; it has to look anew at what it decides by."""
    end = time.monotonic() + seconds
    while True:
        try:
            return attempt(max(0.1, min(EACH, end - time.monotonic())))
        except NoAnswerError as error:
            if error.status in FINAL or time.monotonic() + PAUSE >= end:
                raise
        time.sleep(PAUSE)
