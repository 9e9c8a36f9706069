# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico: what it will do on a node before it joins, and why it fails where it does."""

from __future__ import annotations

from . import (
    address,
    bgp,
    budget,
    complaints,
    daemons,
    datastore,
    files,
    filters,
    init,
    method,
    overlap,
    paths,
    pods,
    probes,
    registered,
    slow,
    typha,
    version,
)

__all__ = [
    "address",
    "bgp",
    "budget",
    "complaints",
    "daemons",
    "datastore",
    "files",
    "filters",
    "init",
    "method",
    "overlap",
    "paths",
    "pods",
    "probes",
    "registered",
    "slow",
    "typha",
    "version",
]
