# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The path from this node: to the API server, to Calico's etcd, and to other nodes.

Who is to be asked comes with the module's argument ``targets``; without it only the kubelet's own API server is.
"""

from __future__ import annotations

from ._peers import peers
from ._servers import api, etcd

FACTS = {}
WAITING = {"api": api, "etcd": etcd, "peers": peers}
UNITS = ()
