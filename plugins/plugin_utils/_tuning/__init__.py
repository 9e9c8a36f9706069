# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's settings changed where they belong: who owns them (_owners), how they are written and taken back (_written), what a method will give
each node (_table), how the pods follow (_rollout), and which of them (_pods)."""

from __future__ import annotations
