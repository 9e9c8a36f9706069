# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Have calico-node's probes enough time for themselves?"""

from __future__ import annotations

import re

from ... import _cluster
from ..._outliers import load_per_cpu
from ..._policy import threshold
from .._rule import by_hand, fail, passed, repaired_by, rule, skip, warn
from .budget import is_changeable

SHORT = threshold("calico_probe_timeout_s", 5.0, "Seconds that a probe of calico-node that runs a program should have at least.")
LATE = threshold("calico_probes_late", 3, "Probes of calico-node that got no answer in time within a quarter of an hour, from which on they are reported.")
LATELY = 900.0  # seconds for which an event counts
STARTING = 60.0  # seconds for which a new container may be slow
OUT_OF_TIME = re.compile(r"(Liveness|Readiness|Startup) probe (?:failed|errored)\W*(?:\Z|.*(?:timed out|Client\.Timeout|deadline ?exceeded))", re.DOTALL | re.I)
SET = "set timeoutSeconds: 10 for the probes of calico-node, as Calico's manifest does since 3.20; load.saturated tells what makes a node slow"
BY_HAND, REPAIRED = by_hand(SET), repaired_by("repair_probes", SET, disruptive=True)
ENFORCED = (1, 20)  # before, the kubelet let a probe that runs a program take as long as it liked


@rule(
    "calico.probe_timeout",
    "calico-node's probes run out of time",
    severity="warning",
    needs=("cluster.calico", "cluster.node"),
    uses=("cluster", "load.averages", "load.cpus"),
    remedy=BY_HAND,
)
def probe_timeout(calico, node, cluster, averages, cpus, policy):
    """A probe of calico-node runs a program that asks Felix and BIRD; on a loaded node that takes longer than the one second that is Kubernetes' default.

    A kubelet since 1.20 counts that as a failure, "Liveness probe failed:" with nothing behind it, and after some of them a
    healthy calico-node is killed. Calico's manifests give ten seconds since 3.20.
    """
    probes = {kind: one for kind, one in (calico.get("probes") or {}).items() if one}
    if not probes:
        return skip("calico-node has no probes")
    load = load_per_cpu({"averages": averages, "cpus": cpus}) if averages and cpus else None
    busy = "" if load is None else "; the node's load is %.1f per CPU" % load
    evidence = {"timeouts": {kind: one.get("timeout_s") for kind, one in probes.items()}, **({} if load is None else {"load_per_cpu": round(load, 2)})}
    timeouts = [value for value in evidence["timeouts"].values() if _cluster.is_number(value)]
    remedy = REPAIRED if is_changeable(calico) and timeouts and min(timeouts) < policy[SHORT] else None
    late = _late(node, cluster)
    if _times(late) >= policy[LATE]:
        return _ran_out(late, busy, evidence, remedy)
    short = ["%s %g s" % (kind, one["timeout_s"]) for kind, one in sorted(probes.items()) if one.get("how") == "exec" and _below(one, policy[SHORT])]
    if not short:
        return passed("none of its probes has run out of time lately, or hardly any", **evidence)
    if not _enforces(node.get("kubelet")):
        return passed("its probes have little time (%s), but this kubelet does not mind" % ", ".join(short), **evidence)
    return warn("a program has to start and to answer in the time of its probe: %s%s" % (", ".join(short), busy), remedy, **evidence)


def _late(node, cluster):
    """What the kubelet said lately of probes that got no answer in time; while the container starts, that is calico.liveness_budget's."""
    pod = _cluster.pod_of(node)
    if pod is None:
        return []
    started = ((_cluster.container(pod) or {}).get("since") or 0) + STARTING
    said = [one for one in _cluster.events(node, pod) if OUT_OF_TIME.match(one.get("message") or "")]
    return [one for one in said if _cluster.younger(cluster, one.get("last"), LATELY) and one["last"] > started]


def _times(late):
    return sum(one.get("count") or 1 for one in late)


def _ran_out(late, busy, evidence, remedy):
    kinds = sorted({OUT_OF_TIME.match(one["message"]).group(1).lower() for one in late})
    times = _times(late)
    has = ", ".join("%s has %g s" % (kind, evidence["timeouts"][kind]) for kind in kinds if _cluster.is_number(evidence["timeouts"].get(kind)))
    words = "the %s probe of %s got no answer in time, %d times, lately" % (" and the ".join(kinds), late[0]["name"], times)
    verdict = fail if "liveness" in kinds else warn
    return verdict("%s%s%s" % (words, " (%s)" % has if has else "", busy), remedy, count=times, says=late[0]["message"], pod=late[0]["name"], **evidence)


def _below(probe, least):
    return _cluster.is_number(probe.get("timeout_s")) and probe["timeout_s"] < least


def _enforces(kubelet):
    return tuple(int(part) for part in re.findall(r"\d{1,9}", str(kubelet or ""))[:2] or (9,)) >= ENFORCED
