# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whether a node could be reached and read at all. Preflight itself finds these; no facts are needed."""

from __future__ import annotations

from ._rule import by_hand, fail, rule


@rule(
    "node.unreachable",
    "The node cannot be reached",
    remedy=by_hand("ssh to %(node)s with the same user and key; look at its console if that hangs, then run preflight again"),
)
def unreachable(policy):
    """A node that does not answer is the first thing to know about it, and no reason to lose the others' results."""


@rule(
    "node.unreadable",
    "The node cannot be read",
    remedy=by_hand("ansible %(node)s -m ansible.builtin.raw -a 'python3 --version'; Python 3.8 or newer is needed, see ansible_python_interpreter"),
)
def unreadable(policy):
    """The node was reached, but the probe could not run there: no usable Python, no room for temporary files, no permission to become root."""


def lost(status, why):
    """The verdict about a node that gave no facts."""
    return fail("%s: %s" % ({"node.unreachable": "no connection", "node.unreadable": "the probe could not run"}[status], why), reason=why)
