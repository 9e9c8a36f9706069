# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Addresses and networks as Python knows them. Each text is taken apart once, however many rules ask about it."""

from __future__ import annotations

import functools
import ipaddress

once = functools.lru_cache(1 << 14)  # the addresses of a thousand nodes

ip_of = once(ipaddress.ip_address)
interface_of = once(ipaddress.ip_interface)


@once
def network_of(text):
    """The network that an address with its mask is in."""
    return ipaddress.ip_network(text, strict=False)
