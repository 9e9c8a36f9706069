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


class ActionModule(NodeCheck, ClusterAction):
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        ActionBase.run(self, tmp, task_vars)  # not the look of node_check
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        answer = {"changed": False, "diff": [], "moved": None, "unlocked": False, "left_alone": None, "undo": []}
        decision = self._decided(arguments, task_vars)
        if decision.refused:
            return {**answer, "failed": True, "refused": True, "msg": NOTHING + decision.refused}
        if decision.left_alone:
            return {**answer, "left_alone": decision.left_alone, "msg": "left alone: " + decision.left_alone}
        if decision.unlock:
            self._may_unlock(arguments, decision.move or self._moved(arguments, task_vars)["earlier"])
        if decision.move:
            done = self._moved(arguments, task_vars)
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
            raise AnsibleActionFail(NOTHING + looked["msg"])
        cluster = self._cluster(arguments)
        checked = policy(arguments["policy"])
        nodes = {node: looked["facts"]}
        findings = _judge.judge(nodes, {node: checked}, list(_ipam.CHECKS), checked, cluster)
        view = joined(nodes, cluster)[node]
        self.own = (view[CLUSTER]["node"] or {}).get("name")
        return _ipam.decide([one for one in findings if one["node"] in (node, CLUSTER)], view[CLUSTER], checked)

    def _cluster(self, arguments, so_far=NOTHING):
        try:
            cluster = _sweep.read({name: arguments.get(name) for name in ACCESS}, SWEEP_S, self.environment())
        except ClientError as error:
            raise AnsibleActionFail(so_far + str(error)) from None
        lost = next((one for one in cluster["problems"] if one["fact"] in ("cluster", "cluster.pods", "cluster.calico.cluster_information")), None)
        if lost:
            raise AnsibleActionFail(so_far + "what decides could not be read from the API server: %(what)s: %(why)s" % lost)
        return cluster

    def _moved(self, arguments, task_vars):
        """What the node's half has done, and whether it has done so earlier."""
        done = self._execute_module("nodecare.kubernetes.ipam_leftovers", {"state": "absent", "timeout": arguments["timeout"]}, task_vars=task_vars)
        if done.get("failed") or "earlier" not in done:
            raise AnsibleActionFail(str(done.get("msg") or "the node has not answered"))
        return done

    def _may_unlock(self, arguments, migrated):
        """Asked before anything is changed."""
        _path, found = self._asked(arguments, lambda door: _ipam.information(door, ANSWER_S, NoAnswerError))
        by_hand = found and _ipam.locked_by_hand(found, migrated)
        if by_hand and not arguments["even_if_locked_by_hand"]:
            raise AnsibleActionFail(NOTHING + by_hand)

    def _unlock(self, answer, arguments, task_vars):
        """Once no migration is at work any more: with its directory gone, the one of this node ends by itself."""
        patience = Patience(self, task_vars["inventory_hostname"], 0 if self._task.check_mode else arguments["wait"], EVERY_S)
        so_far = MOVED if answer["moved"] and not self._task.check_mode else NOTHING
        while True:
            running = [node for node, _container in _ipam.migrating(self._cluster(arguments, so_far))]
            if answer["moved"] and self._task.check_mode:
                running = [node for node in running if node != self.own]
            if self.own not in running or patience.is_over():
                break
            patience.wait("upgrade-ipam to end on %s" % self.own)
        if running:
            left = "the datastore stays locked, for upgrade-ipam still runs on %s: repair that too" % _cluster.listed(running)
            return {**answer, "left_alone": left, "msg": "; ".join(part for part in (_said(answer), left) if part)}
        path, found = self._asked(arguments, lambda door: _ipam.information(door, ANSWER_S, NoAnswerError), so_far)
        if found is None or (found.get("spec") or {}).get("datastoreReady") is not False:
            return {**answer, "msg": _said(answer)}
        patch = _ipam.unlocked(found, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        self._asked(arguments, lambda door: door.patch(path, patch, ANSWER_S, dry_run=self._task.check_mode), so_far)
        answer["diff"].append({"before": "datastoreReady: false\n", "after": "datastoreReady: true\n", "before_header": path, "after_header": path})
        answer.update(changed=True, unlocked=True, undo=[_ipam.undo(path)])
        return {**answer, "msg": _said(answer)}

    def _asked(self, arguments, question, so_far=NOTHING):
        try:
            with self.opened(arguments, ANSWER_S) as door:
                return question(door)
        except (ClientError, NoAnswerError) as error:
            why = error.why if isinstance(error, NoAnswerError) else str(error)
            raise AnsibleActionFail(so_far + "The API server was asked about ClusterInformation default: " + why) from None


def _said(answer):
    done = ["%(path)s is now %(moved_to)s" % answer["moved"]] if answer["moved"] else []
    done += ["Calico's datastore is free"] if answer["unlocked"] else []
    return "; ".join(done) or "nothing keeps upgrade-ipam from its end"
