# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of unstick_ipam: tells stuck from slow, has the directory moved away, and frees Calico's datastore."""

from __future__ import annotations

import time

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _cluster, _ipam, _judge, _sweep
from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._patience import Patience
from ..plugin_utils._policy import policy
from ..plugin_utils._rules._rule import CLUSTER
from ..plugin_utils._with_cluster import joined
from .node_check import ARGUMENTS as CHECK
from .node_check import ActionModule as NodeCheck

ARGUMENTS = {
    **ACCESS,
    "state": {"type": "str", "choices": ["absent"], "default": "absent"},
    "even_if_locked_by_hand": {"type": "bool", "default": False},
    "wait": {"type": "float", "default": 300.0},
    **{name: CHECK[name] for name in ("policy", "timeout")},
}
SWEEP_S, ANSWER_S, EVERY_S = 20.0, 10.0, 3.0
NOTHING = "Nothing was changed: "
MOVED = "The directory was moved away, but the datastore is still locked; run this again. "
UNHEARD = "Whether the datastore was freed is not known; run this again. "


class ActionModule(NodeCheck, ClusterAction):
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        ActionBase.run(self, tmp, task_vars)  # not the look of node_check
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        answer = {"changed": False, "diff": [], "moved": None, "unlocked": False, "left_alone": None, "undo": []}
        try:
            return self._freed(answer, arguments, task_vars)
        except AnsibleActionFail as why:  # by itself it would not tell what was changed before
            so_far = NOTHING if self._task.check_mode else _so_far(answer)
            return {**answer, "changed": so_far != NOTHING, "failed": True, "refused": so_far == NOTHING, "msg": so_far + str(why)}

    def _freed(self, answer, arguments, task_vars):
        decision = self._decided(arguments, task_vars)
        if decision.refused:
            return {**answer, "failed": True, "refused": True, "msg": NOTHING + decision.refused}
        if decision.left_alone:
            return {**answer, "left_alone": decision.left_alone, "msg": "left alone: " + decision.left_alone}
        if decision.unlock:
            self._may_unlock(arguments, decision.move, task_vars)
        if decision.move:
            done = self._moved(arguments, task_vars)
            if done.get("failed"):
                return done
            answer.update(changed=bool(done["changed"]), diff=done.get("diff") or [])
            if done["changed"]:
                answer["moved"] = {name: done[name] for name in ("path", "moved_to", "entries", "journal")}
        return self._unlock(answer, arguments, task_vars) if decision.unlock else {**answer, "msg": _said(answer)}

    def _decided(self, arguments, task_vars):
        """What the node and the cluster say, judged together."""
        node = task_vars["inventory_hostname"]
        looking = {"checks": list(_ipam.CHECKS), "exclude": [], "policy": arguments["policy"], "timeout": arguments["timeout"], "return_facts": True}
        looked = self.look(looking, task_vars)
        if looked.get("failed"):
            raise AnsibleActionFail(looked["msg"])
        cluster = self._cluster(arguments)
        checked = policy(arguments["policy"])
        nodes = {node: looked["facts"]}
        findings = _judge.judge(nodes, {node: checked}, list(_ipam.CHECKS), checked, cluster)
        view = joined(nodes, cluster)[node]
        self.own = (view[CLUSTER]["node"] or {}).get("name")
        return _ipam.decide([one for one in findings if one["node"] in (node, CLUSTER)], view[CLUSTER], checked)

    def _cluster(self, arguments):
        try:
            cluster = _sweep.read({name: arguments.get(name) for name in ACCESS}, SWEEP_S, self.environment())
        except ClientError as error:
            raise AnsibleActionFail(str(error)) from None
        lost = next((one for one in cluster["problems"] if one["fact"] in ("cluster", "cluster.pods", "cluster.calico.cluster_information")), None)
        if lost:
            raise AnsibleActionFail("what decides could not be read from the API server: %(what)s: %(why)s" % lost)
        return cluster

    def _moved(self, arguments, task_vars):
        """What the node's half says of what it has done."""
        return self._execute_module("nodecare.kubernetes.ipam_leftovers", {"state": "absent", "timeout": arguments["timeout"]}, task_vars=task_vars)

    def _earlier(self, arguments, task_vars):
        """Whether it has done so in an earlier run. That is only a question: also a node that would refuse it answers, and none does it."""
        as_told, self._task.check_mode = self._task.check_mode, True
        try:
            said = self._moved(arguments, task_vars)
        finally:
            self._task.check_mode = as_told
        if "earlier" not in said:
            raise AnsibleActionFail(str(said["msg"]))
        return said["earlier"]

    def _may_unlock(self, arguments, moves, task_vars):
        """Asked before anything is changed."""
        _path, found = self._asked(arguments, lambda door: _ipam.information(door, ANSWER_S, NoAnswerError))
        if found and not arguments["even_if_locked_by_hand"]:
            by_hand = _ipam.locked_by_hand(found, moves or self._earlier(arguments, task_vars))
            if by_hand:
                raise AnsibleActionFail(by_hand)

    def _unlock(self, answer, arguments, task_vars):
        """Once no migration is at work any more: with its directory gone, the one of this node ends by itself."""
        patience = Patience(self, task_vars["inventory_hostname"], 0 if self._task.check_mode else arguments["wait"], EVERY_S)
        while True:
            running = [node for node, _container in _ipam.migrating(self._cluster(arguments))]
            if answer["moved"] and self._task.check_mode:
                running = [node for node in running if node != self.own]
            if self.own not in running or patience.is_over():
                break
            patience.wait("upgrade-ipam to end on %s" % self.own)
        if running:
            left = "the datastore stays locked, for upgrade-ipam still runs on %s: repair that too" % _cluster.listed(running)
            return {**answer, "left_alone": left, "msg": "; ".join(part for part in (_said(answer), left) if part)}
        path, found = self._asked(arguments, lambda door: _ipam.information(door, ANSWER_S, NoAnswerError))
        if found is None or (found.get("spec") or {}).get("datastoreReady") is not False:
            return {**answer, "msg": _said(answer)}
        patch = _ipam.unlocked(found, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        self._asked(arguments, lambda door: self._free(door, path, patch, answer))
        answer["diff"].append({"before": "datastoreReady: false\n", "after": "datastoreReady: true\n", "before_header": path, "after_header": path})
        answer.update(changed=True, unlocked=True, undo=[_ipam.undo(path)])
        return {**answer, "msg": _said(answer)}

    def _free(self, door, path, patch, answer):
        try:
            door.patch(path, patch, ANSWER_S, dry_run=self._task.check_mode)
        except NoAnswerError as error:
            answer["unlocked"] = False if error.status else None  # it may have been heard all the same
            raise

    def _asked(self, arguments, question):
        try:
            with self.opened(arguments, ANSWER_S) as door:
                return question(door)
        except (ClientError, NoAnswerError) as error:
            raise AnsibleActionFail("The API server was asked about ClusterInformation default: %s" % error) from None


def _so_far(answer):
    """What was changed until it failed."""
    if answer["unlocked"] is None:
        return ("The directory was moved away. " if answer["moved"] else "") + UNHEARD
    return MOVED if answer["moved"] else NOTHING


def _said(answer):
    done = ["%(path)s is now %(moved_to)s" % answer["moved"]] if answer["moved"] else []
    done += ["Calico's datastore is free"] if answer["unlocked"] else []
    return "; ".join(done) or "nothing keeps upgrade-ipam from its end"
