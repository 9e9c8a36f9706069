# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the cluster anew and judges whether this node may be repaired now, from the controller."""

from __future__ import annotations

from contextlib import suppress

from ansible.errors import AnsibleActionFail

from ..plugin_utils import _cluster, _cordon, _gates, _marks, _proof, _sweep
from ..plugin_utils._api import ClientError, NoAnswerError
from ..plugin_utils._api._action import ACCESS, ClusterAction
from ..plugin_utils._holder import RunError, this_run
from ..plugin_utils._policy import PolicyError, policy
from ..plugin_utils._report.words import safe
from ..plugin_utils._sweep._values import entries
from ..plugin_utils._with_cluster import joined

ARGUMENTS = {
    **ACCESS,
    "results": {"type": "str", "default": "nodecare_check"},
    "node": {"type": "str"},
    "cluster": {"type": "dict"},
    "disruptive": {"type": "bool", "default": True},
    "drains": {"type": "bool", "default": False},
    "min_ready": {"type": "int", "default": 1},
    "skip": {"type": "list", "elements": "str", "default": []},
    "policy": {"type": "dict", "default": {}},
    "run": {"type": "str"},
    "timeout": {"type": "float", "default": 20.0},
}
MOST = 10  # nodes whose pods are read
KNOWN = (_gates.NODE, *_gates.GATES)
RIGHTS = "See that it answers (kubectl get --raw /readyz), and that whoever asks has the rights in the collection's docs/nodecare-reader.yml"


class ActionModule(ClusterAction):
    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(ARGUMENTS)
        _refuse(arguments)
        try:
            checked, run = policy(arguments["policy"]), this_run(self._task._uuid, task_vars, arguments["run"])
            cluster = arguments["cluster"] or _sweep.read(arguments, arguments["timeout"], self.environment())
            if cluster.get("nodes") is None:
                raise AnsibleActionFail("what the cluster has for nodes could not be read, so no node is touched: %s. %s" % (_why(cluster), RIGHTS))
            machines = _machines(arguments, task_vars)
            own, others, entry = _whose(arguments, machines, cluster, task_vars["inventory_hostname"])
            if entry is None:
                return _result(own, cluster, arguments, [_unknown(machines, own, cluster)])
            repair = _gates.Repair(arguments["disruptive"], arguments["drains"], run.id, others, arguments["min_ready"])
            scene = _gates.Scene(cluster, entry, repair, checked)
            if arguments["drains"]:
                self._read_pods(scene, arguments)
        except (ClientError, PolicyError, RunError) as error:
            raise AnsibleActionFail(str(error)) from None
        gates = _gates.judged(scene)
        return _result(own, cluster, arguments, [_known(entry), *gates], entry)

    def _read_pods(self, scene, arguments):
        """Those of the Node, and of so many others as it may take to find room for them; the gates say what was not told."""
        with suppress(NoAnswerError), self.opened(arguments, arguments["timeout"]) as door:
            for one in (scene.node, *scene.able[:MOST]):
                query = {"fieldSelector": "spec.nodeName=%s" % one["name"]}
                scene.pods[one["name"]] = entries(door.get("/api/v1/pods", query, arguments["timeout"]), "items")


def _refuse(arguments):
    strange = [name for name in arguments["skip"] if name not in KNOWN]
    if strange:
        raise AnsibleActionFail("skip names %s, which is no gate; the gates are %s" % (", ".join(map(repr, strange)), ", ".join(KNOWN)))
    if arguments["min_ready"] < 0:
        raise AnsibleActionFail("min_ready is %d; it has to be 0 or more nodes" % arguments["min_ready"])
    if arguments["timeout"] <= 0:
        raise AnsibleActionFail("timeout is %g s; it has to be more than 0" % arguments["timeout"])


def _why(cluster):
    return "; ".join(dict.fromkeys(str(one["why"]) for one in cluster.get("problems") or [])) or "nobody knows why"


# -- which Node this machine is --------------------------------------------------------------------------------------------


def _machines(arguments, task_vars):
    """{host: facts} of those that are repaired at the same time, as far as they were read."""
    hosts, found = task_vars["hostvars"], {}
    for name in task_vars["ansible_play_batch"]:
        result = hosts.raw_get(name).get(arguments["results"])
        if isinstance(result, dict) and isinstance(result.get("facts"), dict):
            found[name] = result["facts"]
    return found


def _whose(arguments, machines, cluster, host):
    """(this host, the Nodes beside it, its own entry among the cluster's nodes)"""
    views = joined(machines, cluster)
    entries_of = {name: view["cluster"]["node"] for name, view in views.items() if name in machines}
    entry = entries_of.get(host)
    if arguments["node"]:
        entry = next((one for one in cluster["nodes"] if one["name"] == arguments["node"]), None)
        if entry is None:
            raise AnsibleActionFail("the cluster has no node %r; it has %s" % (arguments["node"], _cluster.listed(one["name"] for one in cluster["nodes"])))
    elif host not in machines:
        raise AnsibleActionFail("%s was not read: register what node_check says of it as %s, or name its node" % (host, arguments["results"]))
    return host, tuple(one["name"] for name, one in entries_of.items() if one and name != host), entry


def _known(entry):
    return {"gate": _gates.NODE, "verdict": _gates.PASS, "why": "this machine is the Node %s" % entry["name"], "advice": ""}


def _unknown(machines, host, cluster):
    """A kubelet that has never been told about a cluster has not joined one; another that has no Node is to be looked at."""
    installed = (machines[host].get("kubelet") or {}).get("installed")
    if installed is not None and not installed.get("joined"):
        return {"gate": _gates.NODE, "verdict": _gates.PASS, "why": "this machine has not joined a cluster", "advice": ""}
    why = "none of the cluster's %d nodes is this machine, by its kubelet's name, host name and addresses" % len(cluster["nodes"])
    advice = "see that the kubeconfig is that of its cluster; where it is to be repaired without one: -e nodecare_cluster=false"
    return {"gate": _gates.NODE, "verdict": _gates.UNKNOWN, "why": why, "advice": advice}


# -- what is said ----------------------------------------------------------------------------------------------------------


def _result(host, cluster, arguments, gates, entry=None):
    expected = _proof.expected(cluster, entry["name"]) if entry else _proof.Expected()
    mark = _marks.marker(entry["annotations"]) if entry else None
    result = {
        "changed": False,
        "node": entry["name"] if entry else "",
        "gates": gates,
        "marked": bool(mark),
        "undo_command": _cordon.way_out(entry["name"], mark.cordoned) if mark else "",
        "expects": {"calico_node": expected.calico_node, "bgp": expected.bgp},
        "server_time": _cluster.now(cluster),
    }
    # A Node with a mark is given back once it has proven to be well, also where nothing is done on it this time.
    stopping = _gates.stopping(gates, arguments["disruptive"] or result["marked"], arguments["skip"])
    if not stopping:
        return {**result, "msg": "%s may be repaired now" % host}
    reasons = "; ".join("%s: %s%s" % (one["gate"], one["why"], _advised(one)) for one in stopping)
    override = "Who has looked and knows better: -e '{\"nodecare_skip_gates\": [%s]}'" % ", ".join('"%s"' % one["gate"] for one in stopping)
    return {**result, "failed": True, "msg": safe("%s may not be repaired now. %s. %s" % (host, reasons, override))}


def _advised(one):
    can = "; this cannot be told" if one["verdict"] == _gates.UNKNOWN else ""
    return "%s (%s)" % (can, one["advice"]) if one["advice"] else can
