# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets how Calico finds the nodes' addresses, once it is foreseen for every node what that gives it, and watches the nodes take it over."""

from __future__ import annotations

from urllib.parse import quote

from ..plugin_utils import _cluster
from ..plugin_utils._calico._commands import ANNOTATIONS, KUBESPRAY
from ..plugin_utils._report.words import safe
from ..plugin_utils._rules.calico._here import Adviser, look_into
from ..plugin_utils._sweep._values import text
from ..plugin_utils._tuning import _action, _table
from ..plugin_utils._tuning._rollout import WorseError
from ..plugin_utils._tuning._written import RefusedError

UNREAD = (
    "%s were not read in this play, so nobody knows what they would get. Nothing was changed: read them as well (without --limit), or, where such a node is"
    " gone or may get whatever it gets, name it in leave_out"
)
CONSENT = (
    "%s would get another address while calico-node is ready there: the traffic of their pods to other nodes breaks for seconds. Nothing was changed: say"
    " allow_disruption where that is meant"
)


ARGUMENTS = {
    **_action.ARGUMENTS,
    "method": {"type": "str", "default": ""},
    "method6": {"type": "str", "default": ""},
    "leave_out": {"type": "list", "elements": "str", "default": []},
    "allow_disruption": {"type": "bool", "default": False},
}


class ActionModule(_action.SettingAction):
    repair, kind = "autodetection", "methods"
    arguments = ARGUMENTS

    def wanted(self, known, arguments):
        """{family: method} of what is to be set, after the table of each was shown and found good."""
        heres = _heres(known, arguments)
        self.elsewhere = any(here.stored_elsewhere for here in heres.values())
        others = {one["name"]: one["calico"] for one in known.cluster["nodes"] if one["name"] not in heres and one.get("calico")}
        given = {4: arguments["method"], 6: arguments["method6"]}
        wanted, rows = {}, []
        for family in _families(heres, given):
            method, keep = _chosen(heres, family, given[family], known.policy)
            held = {name: one.get({4: "ipv4", 6: "ipv6"}[family]) for name, one in others.items()}
            rows += _table.table(heres, family, method, {name: address for name, address in held.items() if address})
            wanted.update({} if keep else {family: method})
        self._show(rows, wanted, arguments["allow_disruption"])
        return wanted

    def inventory(self, wanted):
        return {KUBESPRAY[family]: method for family, method in wanted.items()}

    def compare(self, door, node, seconds):
        rows = [row for row in self.rows if row.node == node and not self.elsewhere]
        annotations = door.get("/api/v1/nodes/%s" % quote(node, safe=""), {}, seconds)["metadata"].get("annotations") if rows else {}
        for row in rows:
            registered = text(annotations, "projectcalico.org/" + ANNOTATIONS[row.family])
            if _cluster.address(registered) != _cluster.address(row.then):
                raise WorseError(node, "Calico has registered %s, and %s was foreseen" % (registered or "no address", row.then))

    def _show(self, rows, wanted, allowed):
        """The table, and why it must not be."""
        self.rows, self.first = rows, [row.node for row in rows if row.moves]
        self.answer.update(table=[row.shown() for row in rows], methods={"IPv%d" % family: method for family, method in wanted.items()})
        if not wanted:
            again = sorted({row.node for row in rows if row.moves})
            more = "; %s keeps another address until its calico-node is started anew (restart_calico)" % ", ".join(again) if again else ""
            self.answer["msg"] = "the method that is set gives every node its own address%s" % more
        self._display.display(safe("With %s:" % ", ".join(wanted.values()) if wanted else "With the method that is set:") + "\n" + _table.text(rows))
        wrong = [row for row in rows if row.wrong]
        if wrong and wanted:
            more = " (and %d more)" % (len(wrong) - 3) if len(wrong) > 3 else ""
            raise RefusedError("not with %s: %s%s. Nothing was changed" % (", ".join(wanted.values()), "; ".join(map(_told, wrong[:3])), more))
        moved = sorted({row.node for row in rows if row.moves and row.ready})
        if moved and wanted and not allowed:
            raise RefusedError(CONSENT % _cluster.listed(moved))


def _heres(known, arguments):
    """{Node: Here} of those that were read with their links."""
    heres = {name: look_into(view, known.policy) for name, view in known.nodes.items() if name not in arguments["leave_out"]}
    unread = sorted({*known.unread, *(name for name, here in heres.items() if not here.present)} - set(arguments["leave_out"]))
    if unread:
        raise RefusedError(UNREAD % _cluster.listed(unread))
    silence = next((here.silence for here in heres.values() if here.silence), None)
    if silence:
        raise RefusedError(silence.why)
    if not heres:
        raise RefusedError("no Node of the cluster was read in this play: run node_check with the area links on its hosts before")
    return heres


def _families(heres, given):
    """Those that are asked for or looked for. One that Calico is told to leave alone stays so; what is stored once, where nothing is said, does not."""
    used = {family: bool(given[family]) or any(_looked_for(here, family) for here in heres.values()) for family in (4, 6)}
    if not any(used.values()):
        used[4] = all(here.setting(4).said != "none" for here in heres.values())
    if not any(used.values()):
        raise RefusedError("calico-node is told to look for no address (IP=none). Nothing was changed: say which method is to be set, as method or method6")
    return [family for family in (4, 6) if used[family]]


def _looked_for(here, family):
    setting = here.setting(family)
    return bool(setting and setting.detects) or (family == 4 and bool(here.stored(4)))


def _chosen(heres, family, given, policy):
    """(method, whether it is set already): what is asked for, else what is set where that is right, else what is recommended."""
    setting = next(iter(heres.values())).setting(family)
    machines = [here.machine(family, name) for name, here in heres.items()]
    present = setting.method or "first-found"
    if given:
        return given, False
    if setting.detects and not setting.unknown and _table.fits(present, machines, setting.numbers, family):
        return present, True
    advice = Adviser(heres, policy).advice(setting)
    if not advice.method:
        words = "no method is right for all nodes: %s. Nothing was changed: put that right, or name the nodes' network (policy.networks.nodes)"
        raise RefusedError(words % advice.why)
    return advice.method, False


def _told(row):
    return "%s would get %s%s: %s" % (row.node, row.then or "nothing", " on %s" % row.link if row.link else "", row.wrong)
