# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. To cordon a Node for a repair, with a mark in the same write, and to undo exactly that. Pure: what was read in, what to write out."""

from __future__ import annotations

from typing import NamedTuple

from ._marks import MARKER, Marker, foreign, marker, written
from ._sweep import _nodes
from ._sweep._values import text

GIVE_BACK = "To take the mark away by hand: %s"


class RefusedError(Exception):
    """Why a Node is left as it is."""


class Node:
    """As it was read."""

    def __init__(self, thing):
        self.entry = _nodes.node(thing)
        self.name, self.version = self.entry["name"], text(thing, "metadata", "resourceVersion")
        self.unschedulable = self.entry["unschedulable"]
        self.mark = marker(self.entry["annotations"])

    def facts(self):
        return {"unschedulable": self.unschedulable, "marker": self.mark.facts() if self.mark else None}


class Answer(NamedTuple):
    said: str
    patch: dict | None = None  # None where all is as it is to be


def cordoned(node, run, repair, lease, now):
    """Ours only where nobody has cordoned it before; ``lease`` is the cluster's lock, None where nobody holds it."""
    _heed_others(node, run, lease, now)
    mark = node.mark
    if mark and mark.run == run.id and node.unschedulable:
        return Answer("this run has marked it already")
    ours = mark.cordoned if mark and node.unschedulable else not node.unschedulable
    patch = _patch(node, Marker(run.id, run.holder, repair, written(now), ours).written())
    if not node.unschedulable:
        patch["spec"] = {"unschedulable": True}
        return Answer("it is cordoned and marked by this run", patch)
    if ours:
        return Answer("it was cordoned by an earlier run that has not ended its repair (%s), and is this run's now" % mark.said(), patch)
    return Answer("it was cordoned before by somebody else, which stays so, and is marked by this run", patch)


def as_found(node, run, lease, now):
    """Only what a repair has marked is undone, and only what it has done."""
    mark = node.mark
    if mark is None:
        return Answer("no repair has marked it" + (", and who has cordoned it is left to undo that" if node.unschedulable else ""))
    _heed_others(node, run, None if mark.run == run.id else lease, now)
    earlier = "" if mark.run == run.id else "; the mark was of an earlier run, which is over: " + mark.said()
    patch = _patch(node, None)
    if mark.cordoned and node.unschedulable:
        patch["spec"] = {"unschedulable": None}
        return Answer("it is schedulable again, as it was before the repair" + earlier, patch)
    stays = "it stays cordoned, as it was before the repair" if node.unschedulable else "it was schedulable already"
    return Answer("%s, and its mark is gone%s" % (stays, earlier), patch)


def way_out(name, cordoned_by_us):
    """The command that makes the Node what it was before, for somebody who has only kubectl."""
    unmark = "kubectl annotate node %s %s-" % (name, MARKER)
    return "kubectl uncordon %s && %s" % (name, unmark) if cordoned_by_us else unmark


def _heed_others(node, run, lease, now):
    if node.mark and node.mark.broken:
        raise RefusedError("it carries %s, which somebody else must have left. %s" % (node.mark.said(), GIVE_BACK % way_out(node.name, False)))
    others = foreign(node.entry)
    if others:
        raise RefusedError("%s. Wait until that is over" % "; ".join(one.said() for one in others))
    if lease and lease.run != run.id and not lease.is_over(now):
        marked = " and has marked this Node" if node.mark and node.mark.run == lease.run else ""
        raise RefusedError("another run holds the cluster's lock%s: %s" % (marked, lease.said(now)))


def _patch(node, mark):
    """With the version that was read, so that whatever somebody else writes in between is seen."""
    return {"metadata": {"resourceVersion": node.version, "annotations": {MARKER: mark}}}
