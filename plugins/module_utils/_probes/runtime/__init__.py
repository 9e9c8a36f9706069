# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Container runtimes: which there are, whether they answer, how they are set up, and what the kernel and the journal say about them."""

from __future__ import annotations

from ._answers import answers
from ._config import config
from ._daemons import UNITS, crictl, daemons, endpoints
from ._journal import journal
from ._processes import processes

FACTS = {"endpoints": endpoints, "crictl": crictl}
WAITING = {"daemons": daemons, "answers": answers, "config": config, "processes": processes, "journal": journal}
__all__ = ["FACTS", "UNITS", "WAITING"]
