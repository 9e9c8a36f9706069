# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What all modules that only read have in common."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: It only reads, so check mode does the same.
  diff_mode:
    support: none
    description: Nothing is changed, so there is nothing to compare.
options: {}
"""
