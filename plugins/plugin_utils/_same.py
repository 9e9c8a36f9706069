# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Facts as keys: what follows from them is worked out once, however many rules ask."""

from __future__ import annotations


class Same(tuple):
    """These very objects, whatever is in them; while it is kept, so are they."""

    def __eq__(self, other):
        return len(self) == len(other) and all(one is another for one, another in zip(self, other))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(tuple(map(id, self)))
