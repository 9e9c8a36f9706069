# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico on this node: its programs, their words and answers, and what they left in files and in the kernel.

Where no sign of Calico is found, every other fact is empty and nothing is asked.
"""

from __future__ import annotations

import copy

from ._files import mtu, nodename, shutdown, token
from ._processes import processes
from ._signs import here, signs

NOTHING = {"sockets": {"tcp": [], "udp": []}, "logs": [], "bird": {"sockets": [], "others": []}, "felix": {}, "filters": {}, "ipsets": []}


def _where_it_is(name):
    def look(node):
        if not here(node):
            return copy.deepcopy(NOTHING[name])
        from . import _present  # noqa: PLC0415 - each reading compiles anew what it loads, and that is most of what a node without Calico would do

        return getattr(_present, name)(node)

    look.__name__ = name
    return look


FACTS = {
    "signs": signs,
    "processes": processes,
    "nodename": nodename,
    "mtu": mtu,
    "shutdown": shutdown,
    "token": token,
    **{name: _where_it_is(name) for name in ("sockets", "logs")},
}
WAITING = {name: _where_it_is(name) for name in ("bird", "felix", "filters", "ipsets")}
UNITS = ()
