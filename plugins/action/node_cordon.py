# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons a Node with a mark, or makes it what it was before, from the controller."""

from __future__ import annotations

import re

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _cordon
from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._api._insist import insisting
from ..plugin_utils._holder import RunError, this_run
from ..plugin_utils._lease import Lock

ARGUMENTS = {
    **ACCESS,
    "node": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["cordoned", "as_found"], "default": "cordoned"},
    "repair": {"type": "str", "default": ""},
    "run": {"type": "str"},
    "timeout": {"type": "float", "default": 20.0},
}
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
HELP = "See that the API server answers (kubectl get --raw /readyz), and that whoever asks has the rights in the collection's docs/nodecare-repairer.yml"


class ActionModule(ClusterAction):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        name, dry_run = arguments["node"], self._task.check_mode
        if not NAME.fullmatch(name):
            raise AnsibleActionFail("node is %r, and must be the name of a Node, as kubectl get nodes says it" % name[:300])
        if arguments["timeout"] <= 0:
            raise AnsibleActionFail("timeout is %g s and must be more than 0" % arguments["timeout"])
        try:
            run = this_run(self._task._uuid, task_vars, arguments["run"])
            with self.opened(arguments, arguments["timeout"]) as door:
                before, answer, after = insisting(lambda seconds: _once(door, run, arguments, dry_run, seconds), arguments["timeout"])
        except (ClientError, RunError) as error:
            raise AnsibleActionFail(str(error)) from None
        except _cordon.RefusedError as why:
            return {"failed": True, "changed": False, "refused": True, "node": name, "msg": "Node %s is left as it is: %s" % (name, why)}
        except NoAnswerError as error:
            return {"failed": True, "changed": False, "refused": False, "node": name, "msg": _trouble(name, error)}
        return {"node": name, "run": run.id, "msg": "Node %s: %s" % (name, answer.said), **_result(before, answer, after)}


def _once(door, run, arguments, dry_run, seconds):
    """(the Node before, what was decided, the Node after)"""
    path = "/api/v1/nodes/" + arguments["node"]
    before = _cordon.Node(door.get(path, {}, seconds))
    lease = Lock(door, run).read(seconds)
    if arguments["state"] == "cordoned":
        answer = _cordon.cordoned(before, run, arguments["repair"], lease, door.now)
    else:
        answer = _cordon.as_found(before, run, lease, door.now)
    if answer.patch is None:
        return before, answer, before
    return before, answer, _cordon.Node(door.patch(path, answer.patch, seconds, dry_run=dry_run))


def _result(before, answer, after):
    mark = after.mark
    found = {
        **after.facts(),
        "changed": answer.patch is not None,
        "refused": False,
        "cordoned": bool(mark and mark.cordoned),
        "undo_command": _cordon.way_out(after.name, mark.cordoned) if mark else "",
    }
    if answer.patch is not None:
        header = "Node " + before.name
        found["diff"] = {"before_header": header, "after_header": header, "before": before.facts(), "after": after.facts()}
    return found


def _trouble(name, error):
    if error.missing:
        return "there is no Node %s in this cluster: %s. kubectl get nodes names those that there are" % (name, error.why)
    if error.status == 409:
        return "Node %s was changed by somebody else again and again while it was to be marked: %s. Run again" % (name, error.why)
    return "Node %s could not be read or changed: %s. %s, then run again" % (name, error.why, HELP)
