# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends the calico-node pod of one node, and waits until its DaemonSet's next one is ready there."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail

from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._api._why import DENIED
from ..plugin_utils._patience import Patience
from ..plugin_utils._tuning import _pods
from ..plugin_utils._tuning._written import RIGHTS

ARGUMENTS = {
    **ACCESS,
    "node": {"type": "str", "required": True},
    "within": {"type": "float", "default": 300.0},
    "every": {"type": "float", "default": 5.0},
    "timeout": {"type": "float", "default": 20.0},
}
NONE = "no calico-node pod is on %s. Nothing was changed: does its DaemonSet want one there (kubectl get daemonset -A), and is that the Node's name?"
GONE = "the pod %s was replaced by somebody else at the same time"
NOT_YET = "calico-node on %s is not ready after %.0f s: %s. Its DaemonSet goes on by itself; %s was deleted"


class ActionModule(ClusterAction):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        if not arguments["node"]:
            raise AnsibleActionFail("node is empty: it is the name of a Node of the cluster")
        try:
            with self.opened(arguments, arguments["timeout"]) as door:
                return self._restarted(door, arguments)
        except ClientError as error:
            raise AnsibleActionFail(str(error)) from None

    def _restarted(self, door, arguments):
        node, seconds = arguments["node"], arguments["timeout"]
        try:
            pods = _pods.on_node(door, node, seconds)
        except NoAnswerError as error:
            return _failed("the pods on %s could not be read: %s. Nothing was changed" % (node, error.why))
        living = [one for one in pods if not _pods.is_going(one)] or pods
        if not living:
            return _failed(NONE % node)
        before = max(living, key=lambda one: one["metadata"].get("creationTimestamp") or "")
        answer = {"changed": True, "pod": _pods.name(before), "was_ready": _pods.is_ready(before)}
        refused = None if _pods.is_going(before) else self._delete(door, before, seconds)
        if refused or self._task.check_mode:
            return refused or {**answer, "msg": "%s would be deleted, and its DaemonSet makes a new one" % _pods.name(before)}
        return {**answer, **self._waited(door, before, arguments)}

    def _delete(self, door, pod, seconds):
        try:
            _pods.delete(door, pod, seconds, dry_run=self._task.check_mode)
        except NoAnswerError as error:
            if error.status in (404, 409):
                self._display.display(GONE % _pods.name(pod))
                return None
            return _failed("%s could not be deleted: %s%s" % (_pods.name(pod), error.why, ". " + RIGHTS if error.kind == DENIED else ""))
        return None

    def _waited(self, door, before, arguments):
        node = arguments["node"]
        patience = Patience(self, node, arguments["within"], arguments["every"])
        while True:
            new, what = self._new(door, before, arguments)
            if new and _pods.is_ready(new):
                return {"new_pod": _pods.name(new), "seconds": round(patience.seconds, 1), "msg": "%s is ready on %s" % (_pods.name(new), node)}
            if patience.is_over():
                return _failed(NOT_YET % (node, patience.seconds, what, _pods.name(before)), changed=True)
            patience.wait(what)

    def _new(self, door, before, arguments):
        """(the pod that follows, what is waited for)"""
        try:
            pods = _pods.on_node(door, arguments["node"], arguments["timeout"])
        except NoAnswerError as error:
            return None, "the API server: %s" % error.why
        new = [one for one in pods if _pods.uid(one) != _pods.uid(before) and not _pods.is_going(one)]
        if new:
            return new[0], "%s: %s" % (_pods.name(new[0]), _pods.doing(door, new[0], arguments["timeout"]))
        there = any(_pods.uid(one) == _pods.uid(before) for one in pods)
        return None, "%s to end" % _pods.name(before) if there else "its DaemonSet to make a new pod"


def _failed(words, changed=False):
    return {"failed": True, "changed": changed, "msg": words}
