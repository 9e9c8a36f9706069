# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empties a node by the Eviction API, from the controller."""

from __future__ import annotations

import re

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _cluster, _drain
from ..plugin_utils._api import ClientError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._evict import DrainError, Draining
from ..plugin_utils._holder import RunError, this_run
from ..plugin_utils._patience import Patience

ARGUMENTS = {
    **ACCESS,
    "node": {"type": "str", "required": True},
    "even_bare": {"type": "bool", "default": False},
    "even_emptydir": {"type": "bool", "default": False},
    "grace_period": {"type": "int"},
    "run": {"type": "str"},
    "within": {"type": "float", "default": 600.0},
    "every": {"type": "float", "default": 5.0},
    "timeout": {"type": "float", "default": 10.0},
}
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class ActionModule(ClusterAction):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        _refuse(arguments)
        patience = Patience(self, arguments["node"], arguments["within"], arguments["every"])
        consent = [name for name in (_drain.BARE, _drain.EMPTYDIR) if arguments[name]]
        try:
            run = this_run(self._task._uuid, task_vars, arguments["run"])
            with self.opened(arguments, arguments["timeout"]) as door:
                return self._drain(Draining(door, run, arguments["node"], patience, arguments["timeout"], consent, arguments["grace_period"]))
        except (ClientError, RunError) as error:
            raise AnsibleActionFail(str(error)) from None

    def _drain(self, draining):
        dry_run, why = self._task.check_mode, ""
        try:
            draining.foresee(dry_run)
            if not dry_run:
                draining.empty()
        except DrainError as error:
            why = str(error)
        result = _result(draining, dry_run, why)
        if self._task.diff and not why:
            result["diff"] = _diff(draining)
        return result


def _refuse(arguments):
    if not NAME.fullmatch(arguments["node"]):
        raise AnsibleActionFail("node is %r, and must be the name of a Node, as kubectl get nodes says it" % arguments["node"][:300])
    for option in ("within", "every", "timeout"):
        if arguments[option] <= 0:
            raise AnsibleActionFail("%s is %s, and has to be more than 0 seconds" % (option, arguments[option]))
    if (arguments["grace_period"] or 0) < 0:
        raise AnsibleActionFail("grace_period is %d; leave it out to give each pod the time that it asks for" % arguments["grace_period"])


def _result(draining, dry_run, why):
    gone = draining.plan.go if dry_run and not why else draining.evicted
    result = {
        "changed": bool(gone),
        "evicted": [_named(one) for one in gone],
        "staying": [_named(one, why=reason) for one, reason in draining.plan.stay],
        "left": [_named(one, why=draining.doing(one)) for one in draining.left] if why or dry_run else [],
        "back": [_named(one) for one in draining.back],
        "seconds": round(draining.patience.seconds, 1),
        "warnings": [_back(draining.back)] if draining.back else [],
    }
    if why:
        return {**result, "failed": True, "msg": "%s: %s%s" % (draining.node, why, _so_far(draining.evicted))}
    return {**result, "msg": _said(draining, dry_run)}


def _named(one, **more):
    return {"namespace": one.namespace, "name": one.name, "uid": one.uid, **more}


def _so_far(evicted):
    return ". Evicted until then: %s" % _cluster.listed([one.title for one in evicted], 8) if evicted else ""


def _back(pods):
    return "%s came onto the node in spite of its cordon, and will end with whatever is done to it" % _cluster.listed([one.title for one in pods], 8)


def _said(draining, dry_run):
    go, stay = draining.plan.go, "%d stay" % len(draining.plan.stay)
    if dry_run:
        held = ["%s is %s" % (one.title, draining.why_held(one)) for one in go if one.uid in draining.held]
        return "%d pods would be evicted, %s%s" % (len(go), stay, "; to be waited for: %s" % "; ".join(held[:8]) if held else "")
    return "%d pods were evicted and are gone, %s" % (len(draining.evicted), stay)


def _diff(draining):
    stay = [one.title for one, _why in draining.plan.stay]
    everything = stay + [one.title for one in draining.plan.go + draining.plan.leaving]
    before, after = ("".join("%s\n" % title for title in sorted(titles)) for titles in (everything, stay))
    return {"before_header": "pods on %s" % draining.node, "after_header": "pods on %s" % draining.node, "before": before, "after": after}
