# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What is looked at only where there is Calico."""

from __future__ import annotations

from ._bird import bird
from ._felix import felix
from ._filters import filters, ipsets
from ._logs import logs
from ._sockets import sockets

__all__ = ["bird", "felix", "filters", "ipsets", "logs", "sockets"]
