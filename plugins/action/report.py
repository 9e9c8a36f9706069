# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects what node_check found on all nodes of the play, compares the nodes, writes the reports, and decides the outcome."""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.color import ANSIBLE_COLOR

from ..plugin_utils import _artifacts, _diagnosis, _judge, _merge, _registered, _report
from ..plugin_utils._collected import collected
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._report import diagnosis, words
from ..plugin_utils._rules import RULES
from ..plugin_utils._rules._rule import CLUSTER
from ..plugin_utils._with_cluster import joined

ARGUMENTS = {
    "results": {"type": "str", "default": "nodecare_check"},
    "cluster_results": {"type": "str", "default": "nodecare_cluster_check"},
    "saved": {"type": "list", "elements": "path", "default": []},
    "checks": {"type": "list", "elements": "str", "default": ["*"]},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "dict", "default": {}},
    "path": {"type": "path", "default": "nodecare-report"},
    "formats": {"type": "list", "elements": "str", "default": list(_report.WRITERS), "choices": list(_report.WRITERS)},
    "save_facts": {"type": "bool", "default": False},
    "fail_on": {"type": "str", "choices": ["error", "warning", "never"]},
    "diagnose": {"type": "bool", "default": False},
    "pod": {"type": "str"},
    "node": {"type": "str"},
}
FAILING = {"error": ("error",), "warning": ("error", "warning"), "never": ()}


class ActionModule(ActionBase):
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        try:
            found = _saved(arguments, task_vars) if arguments["saved"] else _registered_here(arguments, task_vars)
        except (_judge.SelectionError, _merge.MergeError, PolicyError) as error:
            raise AnsibleActionFail(str(error)) from None
        report = _report.document(found.nodes, found.findings)
        told = {}
        if arguments["diagnose"]:
            told["causes"] = self._diagnosed(found.findings, _symptom(arguments, found))
        else:
            self._display.display(_report.terminal_text(report, colour=ANSIBLE_COLOR))
        saved = _report.bundle(found.nodes, found.policy, found.cluster, **found.beside) if arguments["save_facts"] else None
        paths, broken = _report.write(report, os.path.abspath(arguments["path"]), arguments["formats"], saved)
        self._display.display("\n" + "\n".join("Report: %s" % path for path in paths.values()))
        fail_on = arguments["fail_on"] or ("never" if arguments["diagnose"] else "error")
        return {**told, **_outcome(report, found.nodes, paths, broken, FAILING[fail_on])}

    def _diagnosed(self, findings, symptom):
        causes = _diagnosis.diagnose(findings, symptom)
        self._display.display(diagnosis.text(causes, symptom, _diagnosis.untold(findings, symptom), colour=ANSIBLE_COLOR))
        return causes


def _registered_here(arguments, task_vars):
    """What the nodes and the cluster of this play were found to be."""
    checked = policy(arguments["policy"], known_rules=list(RULES))
    chosen = _judge.select(arguments["checks"], arguments["exclude"], checked)
    results = list(_registered.results(task_vars, arguments["results"]))
    nodes, policies, alone = collected(results, checked)
    cluster = _registered.cluster(task_vars, arguments["cluster_results"])
    read = {name: facts for name, facts in nodes.items() if facts}
    findings = _judge.judge_together(alone, read, policies, chosen, checked, cluster)
    beside = _merge.beside(results, alone, nodes, arguments["policy"], arguments["checks"], arguments["exclude"])
    return _merge.Merged(nodes, findings, arguments["policy"], cluster, beside)


def _saved(arguments, task_vars):
    """What other runs have saved; each host of this play has to be in one of them."""
    return _merge.merged(_merge.read(arguments["saved"]), map(str, task_vars["ansible_play_hosts_all"]))


def _symptom(arguments, found):
    """What the user asks about, by the names that findings use; None for everything."""
    pod, node = arguments["pod"], arguments["node"]
    nodes, cluster = {name: facts for name, facts in found.nodes.items() if facts}, found.cluster
    if not pod and not node:
        return None
    place = node or _diagnosis.place_of(pod, cluster)
    if not place:
        raise AnsibleActionFail("pod %s is none of those that were read, which are Calico's and kube-proxy's: name its node too" % pod)
    views = joined(nodes, cluster) if cluster else nodes
    machine = next((name for name, view in views.items() if ((view.get("cluster") or {}).get("node") or {}).get("name") == place), place)
    if machine not in views:
        raise AnsibleActionFail("%s is neither a host of this play nor a node of the cluster" % place)
    return {"pod": pod, "node": machine} if pod else {"node": machine}


def _outcome(report, hosts, paths, broken, failing):
    bad = [one for one in report["findings"] if one["status"] in ("fail", "warn") and one["severity"] in failing]  # what warns is never an error
    result = {"changed": False, "summary": report["summary"], "paths": paths, "artifacts": _artifacts.of_report(report, hosts, paths)}
    reasons = list(broken)
    if bad:
        ill, nodes = {one["node"] for one in bad} - {CLUSTER}, set(report["nodes"]) - {CLUSTER}
        where = "on %d of %s" % (len(ill), words.counted(len(nodes), "node")) if ill else "about the cluster"
        reasons.append("%s %s must be put right before these nodes are used" % (words.counted(len(bad), "finding"), where))
    return {**result, "failed": True, "msg": "; ".join(reasons)} if reasons else result
