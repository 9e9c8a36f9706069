# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico on this node: its programs, their words and answers, and what they left in files and in the kernel.

Where no sign of Calico is found, every other fact is empty and nothing is asked.
"""

from __future__ import annotations

from ._bird import bird
from ._felix import felix
from ._files import mtu, nodename, shutdown, token
from ._filters import filters, ipsets
from ._logs import logs
from ._processes import processes
from ._signs import signs
from ._sockets import sockets

FACTS = {
    "signs": signs,
    "processes": processes,
    "nodename": nodename,
    "mtu": mtu,
    "shutdown": shutdown,
    "token": token,
    "sockets": sockets,
    "logs": logs,
}
WAITING = {"bird": bird, "felix": felix, "filters": filters, "ipsets": ipsets}
UNITS = ()
