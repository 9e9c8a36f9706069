# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One sweep of a cluster's API server, read-only: who is asked and how (_client, _door), what for (_kinds), and what is kept of it.

answers = Sweep(door, seconds).run()      # {kind: what was kept of its objects}
facts = document(answers, taken)          # nodecare.cluster/1
"""

from __future__ import annotations
