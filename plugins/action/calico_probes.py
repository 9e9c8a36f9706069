# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives calico-node's probes the time that its start-up is foreseen to take, or what is asked for, and watches the nodes take it over."""

from __future__ import annotations

from ..plugin_utils import _cluster, _judge
from ..plugin_utils._calico._startup_time import setting
from ..plugin_utils._rules.calico.probes import SHORT
from ..plugin_utils._tuning import _action
from ..plugin_utils._tuning._written import RefusedError

BUDGET = "calico.liveness_budget"
ENOUGH = 10  # seconds, as in Calico's own manifest since 3.20
FIELDS = {"delay": "initialDelaySeconds", "period": "periodSeconds", "failures": "failureThreshold", "timeout": "timeoutSeconds"}
PROBES = ("liveness", "readiness", "startup")
KUBESPRAY = {"livenessProbe": "calico_node_livenessprobe_timeout", "readinessProbe": "calico_node_readinessprobe_timeout"}
UNTOLD = "how long calico-node's start-up takes is not known: %s. Nothing was changed: read the nodes with the area path, or say which values are wanted"


ARGUMENTS = {
    **_action.ARGUMENTS,
    **{name: {"type": "dict", "options": {field: {"type": "int"} for field in FIELDS}} for name in PROBES},
}


class ActionModule(_action.SettingAction):
    repair, kind = "probes", "probes"
    arguments = ARGUMENTS

    def wanted(self, known, arguments):
        """{probe: {field: number}} of what differs from what is set."""
        given = {name + "Probe": _fields(name, arguments[name]) for name in PROBES if arguments[name]}
        said = {probe: fields for probe, fields in given.items() if fields} or self._foreseen(known)
        self.answer["probes"] = said
        self.answer.setdefault("msg", "the probes say so already")
        return said

    def inventory(self, wanted):
        return {KUBESPRAY[probe]: fields["timeoutSeconds"] for probe, fields in wanted.items() if probe in KUBESPRAY and "timeoutSeconds" in fields}

    def _foreseen(self, known):
        """By the node whose start takes longest; and more time for probes that run a program and have less than that needs."""
        findings = _judge.judge(known.read, dict.fromkeys(known.read, known.policy), [BUDGET], known.policy, known.cluster)
        findings = [one for one in findings if one["id"] == BUDGET]
        told = [one for one in findings if "failures" in one["evidence"]]
        hopeless = next((one for one in findings if one["evidence"].get("ends") or (one["status"] == "fail" and one not in told)), None)
        if hopeless:
            raise RefusedError("%s: %s. Nothing was changed: no setting of the probes helps against that" % (hopeless["node"], hopeless["message"]))
        short = [one["evidence"] for one in told if one["status"] in ("fail", "warn")]
        if not told:
            raise RefusedError(UNTOLD % (findings[0]["message"] if findings else "no Node of the cluster was read in this play"))
        wanted = setting(short[0]["by"], max(one["failures"] for one in short), max(one["delay"] for one in short)) if short else {}
        programs = {kind: one for kind, one in (known.calico.get("probes") or {}).items() if one and one["how"] == "exec"}
        for kind in (kind for kind, one in programs.items() if _cluster.is_number(one["timeout_s"]) and one["timeout_s"] < known.policy[SHORT]):
            wanted.setdefault(kind + "Probe", {})["timeoutSeconds"] = ENOUGH
        slowest = max(told, key=lambda one: one["evidence"]["predicted_s"])
        self.answer["msg"] = "%s: %s" % (slowest["node"], slowest["message"])
        return wanted


def _fields(name, given):
    fields = {FIELDS[field]: value for field, value in given.items() if value is not None}
    bad = next((field for field, value in given.items() if value is not None and value < (0 if field == "delay" else 1)), None)
    if bad:
        raise RefusedError("%s.%s is %d: it has to be %d or more" % (name, bad, given[bad], 0 if bad == "delay" else 1))
    return fields
