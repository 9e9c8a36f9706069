# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap: what is on now, and everything that can bring it back at the next boot."""

from __future__ import annotations

import functools
import re

from ..._node import whole
from ._boot import Boot, container
from ._fstab import unescape
from ._sources import MECHANISMS
from ._suspects import SUSPECTS


def active(node):
    """The swap areas in use. A kernel without swap has no such file: nothing is on."""
    rows = [line.split() for line in (node.read("/proc/swaps") or "").split("\n")[1:]]
    found = [(unescape(row[0]), row[1], *map(whole, row[2:])) for row in rows if len(row) == 5]
    return [dict(zip(("device", "kind", "size_kib", "used_kib", "priority"), area)) for area in found if None not in area]


def memory(node):
    """What swapoff has to fit into."""
    rows = dict(re.findall(r"^(MemTotal|MemAvailable): +(\d{1,15}) kB", node.read("/proc/meminfo") or "", re.M))
    return {name: int(rows[key]) for name, key in (("total_kib", "MemTotal"), ("available_kib", "MemAvailable")) if key in rows}


def boot(node):
    """What all mechanisms depend on: systemd and its version, the mask of swap.target, a container, a declarative system."""
    found = at_boot(node)
    return {
        "systemd": found.version,
        "running": found.systemd,
        "target_masked": found.masked("swap.target") if found.systemd else None,
        "container": container(node),
        "declared_by": declared_by(node),
    }


def declared_by(node):
    """What builds this system from a description, and takes changes back that were made elsewhere."""
    return "NixOS" if node.exists("/etc/NIXOS") else "ostree" if node.exists("/run/ostree-booted") else None


def sources(node):
    """Each mechanism that would turn swap on at the next boot, with what it would turn on."""
    return node.each([_with_boot(look) for look in MECHANISMS])


def suspects(node):
    """What else could turn swap on, some day."""
    return node.each([_with_boot(look) for look in SUSPECTS])


def _with_boot(look):
    return functools.update_wrapper(lambda node: look(node, at_boot(node)), look)


@functools.lru_cache(maxsize=1)
def at_boot(node):
    """One look for all of them."""
    return Boot(node)


FACTS = {"active": active, "memory": memory, "boot": boot, "sources": sources, "suspects": suspects}
WAITING = {}
UNITS = ()
