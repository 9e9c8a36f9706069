# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap: may it be on, is it on, will it come back?"""

from __future__ import annotations

from ._rule import by_hand, fail, rule


@rule("swap.active", "Swap is on", needs="swap.active", remedy=by_hand("swapoff %(device)s"))
def active(areas, policy):
    """A kubelet with its default settings refuses to start while any swap is on; one that already runs notices it only at its next start."""
    return [fail("%(device)s is on (%(size_kib)d KiB, %(used_kib)d KiB in use)" % area, **area) for area in areas]


@rule("swap.returns", "Swap will come back at the next boot", needs="swap.sources", remedy=by_hand("take the entry out of %(by)s"))
def returns(sources, policy):
    """Swap that is off now and back after a reboot keeps the kubelet from starting when nobody expects it."""
    return [fail("%(what)s is activated by %(by)s" % source, **source) for source in sources if source["activates"]]
