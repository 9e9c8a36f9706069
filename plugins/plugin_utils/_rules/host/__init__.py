# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Host: is the system under Kubernetes fit for it, will it be after the next boot, and does it go together with the other nodes?"""

from __future__ import annotations

from . import _clock, _kernel, _names, _network, _reboot

__all__ = ["_clock", "_kernel", "_names", "_network", "_reboot"]
