# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Values out of the API server's objects; what is missing there, or of another form than it should be, is None or empty."""

from __future__ import annotations

from datetime import datetime, timezone


def at(thing, *path):
    for step in path:
        if not isinstance(thing, dict):
            return None
        thing = thing.get(step)
    return thing


def mapping(thing, *path):
    found = at(thing, *path)
    return found if isinstance(found, dict) else {}


def entries(thing, *path):
    """The objects of a list."""
    found = at(thing, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts(thing, *path):
    found = at(thing, *path)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def text(thing, *path):
    found = at(thing, *path)
    return found if isinstance(found, str) else ""


def number(thing, *path):
    found = at(thing, *path)
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def time(thing, *path):
    """Epoch seconds of a time as Kubernetes writes it."""
    found = at(thing, *path)
    try:
        moment = datetime.fromisoformat(found)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def version(thing, *path):
    """Without the v that Kubernetes and Calico write before it."""
    return text(thing, *path).removeprefix("v")
