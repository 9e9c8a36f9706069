# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The rules, by area. Importing an area registers its rules."""

from __future__ import annotations

from . import calico, cluster, host, kubelet, links, load, node, runtime, swap
from ._rule import RULES

__all__ = ["RULES", "calico", "cluster", "host", "kubelet", "links", "load", "node", "runtime", "swap"]
