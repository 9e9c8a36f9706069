# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The way to the API server: which one, and as whom (_client), how it is asked and told (_door), why it does not answer (_why)."""

from __future__ import annotations

from ._why import ClientError, NoAnswerError

__all__ = ["THREADS", "ClientError", "NoAnswerError", "opened"]

THREADS = 12  # that ask: two rounds for all, so that a server that takes 5 s for a handshake and 5 s for an answer can still say everything in 20 s


def opened(options, seconds, environment):
    """The door to the API server that is meant, for a ``with``. Keys that the client has to write to files are gone afterwards."""
    from . import _client  # noqa: PLC0415 - with it comes the kubernetes client, which takes longer to import than all rules, and few runs need it

    return _client.opened(options, seconds, environment)
