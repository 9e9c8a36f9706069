# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes, renews and gives back the lock of a cluster, from the controller."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _lease
from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._api._insist import insisting
from ..plugin_utils._holder import RunError, this_run
from ..plugin_utils._patience import Patience

EVERY = 5  # seconds between two looks at a Lease that another run holds
ARGUMENTS = {
    **ACCESS,
    "state": {"type": "str", "choices": ["held", "free"], "default": "held"},
    "repair": {"type": "str", "default": ""},
    "run": {"type": "str"},
    "duration": {"type": "int", "default": 1800},
    "within": {"type": "float", "default": 0.0},
    "timeout": {"type": "float", "default": 20.0},
}
LEAST = 60  # seconds of a Lease; less than that, and a busy controller would lose it while it works
FREED = {_lease.FREED: "the cluster's lock was given back", _lease.NOTHING: "this run did not hold the cluster's lock"}
WHAT_TO_DO = "Without it nothing on a node of this cluster is changed. %s, then run again"
RIGHTS = "See that the API server answers (kubectl get --raw /readyz), and that whoever asks has the rights in the collection's docs/nodecare-repairer.yml"


class ActionModule(ClusterAction):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        if arguments["duration"] < LEAST:
            raise AnsibleActionFail("duration is %d s and must be %d or more" % (arguments["duration"], LEAST))
        if arguments["timeout"] <= 0:
            raise AnsibleActionFail("timeout is %g s and must be more than 0" % arguments["timeout"])
        try:
            run = this_run(self._task._uuid, task_vars, arguments["run"])
            with self.opened(arguments, arguments["timeout"]) as door:
                lock = _lease.Lock(door, run, dry_run=self._task.check_mode)
                found = (self._held if arguments["state"] == "held" else self._freed)(lock, arguments, task_vars["inventory_hostname"])
        except (ClientError, RunError) as error:
            raise AnsibleActionFail(str(error)) from None
        return {"run": run.id, "holder": run.holder, **found}

    def _held(self, lock, arguments, node):
        patience = Patience(self, node, arguments["within"], EVERY)
        while True:
            try:
                how, lease, before = insisting(lambda seconds: lock.take(arguments["repair"], arguments["duration"], seconds), arguments["timeout"])
                return {**_result(how, lease, before), "held": True, "msg": _said(how, lease, before)}
            except _lease.HeldError as error:
                if patience.is_over() or isinstance(error, _lease.LostError):
                    return _failed(str(error), error.lease)
                patience.wait(str(error).partition(". ")[0])
            except NoAnswerError as error:
                return _failed("the cluster's lock could not be taken: %s. %s" % (error.why, WHAT_TO_DO % RIGHTS))

    def _freed(self, lock, arguments, _node):
        try:
            how, before = insisting(lock.free, arguments["timeout"])
        except NoAnswerError as error:
            return _failed("the cluster's lock could not be given back: %s. It is over by itself; before that: %s" % (error.why, _lease.BY_HAND))
        others = ", and leaves it to %s" % before.said(lock.door.now) if how == _lease.NOTHING and before else ""
        return {**_result(how, None if how == _lease.FREED else before, before), "held": False, "msg": FREED[how] + others}


def _result(how, lease, before):
    found = {"changed": how not in (_lease.RENEWED, _lease.NOTHING), "how": how, "lease": lease.facts() if lease else None}
    if not found["changed"]:
        return found
    diff = {"before_header": _lease.WHERE, "after_header": _lease.WHERE, "before": before.facts() if before else {}, "after": found["lease"] or {}}
    return {**found, "before": before.facts() if before else None, "diff": diff}


def _said(how, lease, before):
    until = "this run holds the cluster's lock until %s, and longer when it renews it" % lease.facts()["until"]
    if how == _lease.TAKEN_OVER:
        earlier = before.facts()
        return "%s; it was taken over from %s, who has not renewed it since %s" % (until, earlier["holder"] or earlier["run"], earlier["renewed"])
    return until


def _failed(why, lease=None):
    return {"failed": True, "changed": False, "held": False, "how": _lease.NOTHING, "lease": lease.facts() if lease else None, "msg": why}
