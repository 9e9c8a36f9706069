# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which address a detection method will give each node, foreseen before it is set, and why it must not be set."""

from __future__ import annotations

import re
from typing import NamedTuple

from .. import _cluster
from .._calico import _recommend
from .._report.words import clip, pad, safe, width

HEADS = {"node": "node", "registered": "registered", "now": "now it takes", "then": "then it takes", "wrong": ""}
WIDEST = 44


class Row(NamedTuple):
    """One node and one family: what is registered, what its next start takes now, what it takes with the method; ``wrong`` says why not."""

    node: str
    family: int
    registered: str
    now: str
    then: str
    link: str
    wanted: str
    by: str
    ready: bool
    wrong: str = ""

    @property
    def moves(self):
        """Whether its registered address becomes another one."""
        return bool(self.registered) and _cluster.address(self.registered) != _cluster.address(self.then)

    def shown(self):
        return {**self._asdict(), "right": not self.wrong}


def table(heres, family, method, others):
    """The rows of a method for all nodes (``{name of the Node: Here}``); ``others`` are registered addresses of Nodes that were not read."""
    rows = [_row(name, here, family, method) for name, here in heres.items()]
    taken = {}
    for row in rows:
        taken.setdefault(_cluster.address(row.then), []).append(row.node)
    for name, address in others.items():
        taken.setdefault(_cluster.address(address), []).append(name)
    left = {_cluster.address(row.registered): row for row in rows if row.moves}
    return [row._replace(wrong=row.wrong or _taken(row, taken, left)) for row in rows]


def _row(name, here, family, method):
    setting = here.setting(family)
    now = here.would(setting) if not setting.unknown else {"address": "", "unknown": setting.unknown}
    asked = re.sub(r"\$\([^()]*\)", str((here.internal or [""])[0]), method)
    then = here.would(setting._replace(method=asked, said="autodetect", unknown=""))
    wanted = here.wanted(family)
    pod = _cluster.pod_of(here.node)
    row = Row(
        node=name,
        family=family,
        registered=here.stored(family),
        now="" if now["unknown"] else now["address"],
        then=then["detected"],
        link=(then["link"] or "") if then["detected"] else "",
        wanted=str(wanted.ip or ""),
        by=wanted.by,
        ready=bool(pod and pod.get("ready")),
    )
    return row._replace(wrong=_wrong(row, then, wanted, here))


def _wrong(row, then, wanted, here):
    if then["unknown"]:
        return "cannot be told: %s" % then["unknown"]
    if not then["detected"]:
        return "it finds no address there%s" % ("; calico-node would log: %s" % then["log"][0] if then["log"] else "")
    if wanted.has(row.then):
        return ""
    if wanted.ip:
        return "that is not its own: by %s it is %s" % (wanted.by, wanted.ip)
    if not row.moves and row.registered:
        return ""
    kind = next((link for link in here.host.links if link.name == row.link), None)
    return "%s%s" % (wanted.why or "nothing tells which is its own", ", and %s is a virtual link" % row.link if kind and kind.virtual else "")


def _taken(row, taken, left):
    """Whose an address is, or still is while the pods are replaced one after the other."""
    ip = _cluster.address(row.then)
    twins = [name for name in taken.get(ip, ()) if name != row.node]
    if twins:
        return "%s has it too" % ", ".join(twins[:3])
    holder = left.get(ip)
    if holder and holder.node != row.node:
        words = "it is registered for %s until that one is started anew: kubectl annotate node %s projectcalico.org/IPv%dAddress-"
        return words % (holder.node, holder.node, row.family)
    return ""


def fits(method, machines, version, family):
    """Whether a method is right and steady on all nodes as it is."""
    row = _recommend.tried(method, machines, version, family)
    return not row.refused and not row.unsteady


def text(rows):
    """The table for a terminal."""
    cells = [HEADS, *({**row.shown(), "then": "%s%s" % (row.then or "-", " on " + row.link if row.link else "")} for row in rows)]
    lines = []
    widths = {name: min(WIDEST, max(width(safe(str(one[name] or "-"))) for one in cells)) for name in HEADS}
    for one in cells:
        shown = [pad(clip(safe(str(one[name] or ("-" if name != "wrong" else ""))), widths[name]), widths[name]) for name in HEADS if name != "wrong"]
        lines.append("  ".join([*shown, safe(str(one["wrong"]))]).rstrip())
    return "\n".join(lines)
