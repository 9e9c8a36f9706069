# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of node_check: chooses what to read, sends the probe, judges what comes back."""

from __future__ import annotations

import functools
import platform
import time

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils import _judge, _targets
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._rules import RULES

SCHEMA = '"nodecare.node/1"'
ARGUMENTS = {
    "checks": {"type": "list", "elements": "str", "default": ["*"]},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "dict", "default": {}},
    "targets": {"type": "dict", "default": {}},
    "peers": {"type": "bool", "default": False},
    "cluster_results": {"type": "str", "default": "nodecare_cluster_check"},
    "timeout": {"type": "float", "default": 5.0},
    "return_facts": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        return self.look(arguments, task_vars)

    def look(self, arguments, task_vars):
        """Read the node once and judge it."""
        try:
            checked = policy(arguments["policy"], known_rules=list(RULES))
            chosen = _judge.select(arguments["checks"], arguments["exclude"], checked)
        except (_judge.SelectionError, PolicyError) as error:
            raise AnsibleActionFail(str(error)) from None
        node = task_vars["inventory_hostname"]
        areas = _judge.areas(chosen, checked)
        cluster = _cluster(arguments, task_vars)
        targets = _whom(arguments, checked, cluster, task_vars) if "path" in areas else {}
        answer, sent, received = self._read({"checks": areas, "timeout": arguments["timeout"], "targets": targets}, task_vars)
        facts = answer.get("facts")
        if answer.get("failed") or not isinstance(facts, dict):
            why = _reason(answer)
            findings = [_judge.judge_lost(node, "node.unreadable", why, checked)]
            return {"failed": True, "changed": False, "msg": why, "findings": findings, "summary": _judge.summary(findings)}
        facts["taken"].update(sent=sent, received=received, clock=_whose_clock())
        # Each finding costs the controller its way back from the worker: those of which the report has the last word are not made twice.
        alone = _judge.left_without(cluster, {node: facts}, chosen) if arguments["return_facts"] else chosen
        findings = _judge.judge_node(node, facts, checked, alone)
        result = {"changed": False, "findings": findings, "summary": _judge.summary(findings), "policy": arguments["policy"]}
        return {**result, "facts": facts} if arguments["return_facts"] else result

    def _read(self, wanted, task_vars):
        """One round trip, with the controller's clock on both sides of it."""
        self.span = None
        sent = time.time()
        answer = self._execute_module(module_name="nodecare.kubernetes.node_check", module_args=wanted, task_vars=task_vars)
        return answer, *(self.span or (sent, time.time()))

    def _low_level_execute_command(self, *arguments, **options):
        """Packing the module takes the controller longer than reading the node: only the command that brings the facts counts for the clocks."""
        sent = time.time()
        said = super()._low_level_execute_command(*arguments, **options)
        if SCHEMA in said.get("stdout", ""):
            self.span = sent, time.time()
        return said


def _cluster(arguments, task_vars):
    """What was read of the cluster before, if anything was."""
    result = task_vars.get(arguments.get("cluster_results") or "")
    return (result.get("cluster") or None) if isinstance(result, dict) else None


def _whom(arguments, checked, cluster, task_vars):
    """Which other machines this one asks: those that are given, else those that the cluster, or the play where it is asked for, knows."""
    own = task_vars["inventory_hostname"]
    known = {}
    if cluster:
        known = _targets.of_cluster(own, [str(task_vars.get("ansible_host") or own)], cluster, bool(checked.networks.get("calico")))
    elif arguments.get("peers"):
        hosts = task_vars["hostvars"]
        known = _targets.of_play(own, {name: hosts.raw_get(name).get("ansible_host", name) for name in task_vars["ansible_play_hosts_all"]})
    return {**known, **{name: value for name, value in (arguments.get("targets") or {}).items() if value}}


@functools.lru_cache(maxsize=None)
def _whose_clock():
    """What tells this controller's clock from that of another controller: containers on one machine share it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return platform.node()


def _reason(answer):
    """The one line of a failed module's output that says why."""
    said = str(answer.get("module_stderr") or answer.get("msg") or "no facts came back").strip().splitlines()
    return said[-1] if said else "no facts came back"
