# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until a node has proven that it is well again: in the API server, and for BGP on the node itself."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _proof
from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._holder import RunError, this_run
from ..plugin_utils._lease import Keeper, LostError
from ..plugin_utils._patience import Patience
from ..plugin_utils._report.words import safe
from ..plugin_utils._sweep import _nodes, _pods
from ..plugin_utils._sweep._kinds import PAGE
from ..plugin_utils._sweep._values import entries, text

ARGUMENTS = {
    **ACCESS,
    "node": {"type": "str", "required": True},
    "since": {"type": "float"},
    "boot_id": {"type": "str"},
    "calico_node": {"type": "bool", "default": True},
    "bgp": {"type": "bool", "default": True},
    "run": {"type": "str"},
    "within": {"type": "float", "default": 300.0},
    "every": {"type": "float", "default": 5.0},
    "timeout": {"type": "float", "default": 10.0},
}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class ActionModule(ClusterAction):
    _requires_connection = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        for option in ("within", "every", "timeout"):
            if arguments[option] <= 0:
                raise AnsibleActionFail("%s is %g s; it has to be more than 0" % (option, arguments[option]))
        patience = Patience(self, arguments["node"], arguments["within"], arguments["every"])
        try:
            run = this_run(self._task._uuid, task_vars, arguments["run"])
            with self.opened(arguments, arguments["timeout"]) as door:
                return self._wait(Node(door, arguments), Kept(door, run), patience, task_vars)
        except (ClientError, RunError) as error:
            raise AnsibleActionFail(str(error)) from None

    def _wait(self, node, kept, patience, task_vars):
        while True:
            kept.keep()
            missing = node.look() or self._without_session(node, patience, task_vars)
            result = {"changed": False, "node": node.name, "seconds": round(patience.seconds, 1), "missing": missing}
            if not missing:
                return {**result, "msg": "%s is well after %.0f s: %s" % (node.name, patience.seconds, "; ".join(node.proven))}
            if patience.is_over():
                return {**result, "failed": True, "msg": safe("%s is not proven well after %.0f s: %s" % (node.name, patience.seconds, "; ".join(missing)))}
            patience.wait("; ".join(missing))

    def _without_session(self, node, patience, task_vars):
        """What BIRD lacks, which only the node itself knows."""
        if not node.wants["bgp"]:
            return []
        wanted = {"checks": ["calico"], "timeout": 5.0, "targets": {}}
        answer = patience.through(lambda: self._execute_module(module_name="nodecare.kubernetes.node_check", module_args=wanted, task_vars=task_vars), {})
        return node.noted(_proof.session(((answer.get("facts") or {}).get("calico") or {}).get("bird")))


class Node:
    """What the API server says of a node, look by look."""

    def __init__(self, door, wants):
        self.door, self.wants, self.name = door, wants, wants["node"]
        self.first = None  # the heartbeat at the first look
        self.proven = []

    def look(self):
        """What is still missing, in words."""
        self.proven = []
        try:
            thing = self._get("/api/v1/nodes/" + quote(self.name, safe=""))
            renewed = self._renewed()
            pods = self._calico_nodes() if self.wants["calico_node"] else None
        except NoAnswerError as error:
            return ["the cluster to have a Node %s" % self.name] if error.missing else ["an answer of the API server (%s)" % error.why]
        beat = _proof.heartbeat(_nodes.node(thing), renewed)
        self.first = beat if self.first is None else self.first
        said = [
            _proof.ready(_nodes.node(thing)),
            _proof.alive(beat, self.first, self.wants["since"]),
            _proof.booted(text(thing, "status", "nodeInfo", "bootID"), self.wants["boot_id"]),
            _proof.calico(pods),
        ]
        return self.noted(*said)

    def noted(self, *said):
        self.proven += [one.proven for one in said if one.proven]
        return [one.missing for one in said if one.missing]

    def _get(self, path, **query):
        return self.door.get(path, query, self.wants["timeout"])

    def _renewed(self):
        found = self._get(LEASES, fieldSelector="metadata.name=%s" % self.name, limit=1)
        return next((_nodes.lease(one)[1]["renewed"] for one in entries(found, "items")), None)

    def _calico_nodes(self):
        found = self._get("/api/v1/pods", fieldSelector="spec.nodeName=%s" % self.name, labelSelector=_pods.SELECTOR, limit=PAGE)
        return [_pods.pod(one) for one in entries(found, "items")]


class Kept:
    """The run's lock, renewed while it waits. That another run has it by now ends this one later: to look does no harm."""

    def __init__(self, door, run):
        self.door, self.run, self.keeper = door, run, None

    def keep(self):
        with suppress(NoAnswerError, LostError):
            self.keeper = self.keeper or Keeper(self.door, self.run)
            self.keeper.keep()
