# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One sweep of a cluster's API server, which only reads: what it asks for (_kinds), how (_sweep), and what it keeps (_document)."""

from __future__ import annotations

import time
from statistics import median

from .._api import opened
from ._document import document
from ._sweep import Sweep

__all__ = ["read"]


def read(options, seconds, environment):
    """The facts of the cluster that the options or the environment name; what does not answer in time is named among their problems."""
    way = opened(options, seconds, environment)  # what is loaded for that takes a busy controller seconds, which are not the server's
    at, began = time.time(), time.monotonic()
    with way as door:
        answers = Sweep(door, seconds - (time.monotonic() - began)).run()
    return document(answers, {"at": at, "seconds": round(time.monotonic() - began, 3), **_asked(door)})


def _asked(door):
    """Whom, how often, and how long an answer took; the first ones bear the cost of their connections."""
    seconds, path = max(door.took, default=(None, ""))
    answers = {"median_s": _rounded(median(one for one, _path in door.took) if door.took else None), "slowest_s": _rounded(seconds), "slowest": path}
    return {"server": door.server, "requests": len(door.asked), "server_time": door.server_time, "answers": answers}


def _rounded(seconds):
    return None if seconds is None else round(seconds, 3)
