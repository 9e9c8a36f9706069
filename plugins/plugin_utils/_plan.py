# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The plan: which repair on which node, in which order, what has to be agreed to before, and what is left to people."""

from __future__ import annotations

import hashlib
import json
import re
from collections import namedtuple

from ._cluster import is_number, listed
from ._diagnosis import diagnose
from ._report import groups
from ._report.words import natural
from ._rules._rule import CLUSTER, COLLECTION, EVERYWHERE
from ._rules.calico.method import VARIABLES
from ._with_cluster import joined

SCHEMA = "nodecare.plan/1"
Repair = namedtuple("Repair", "role everywhere takes")
# {playbook: its role}, in the order in which they are made: what lets the kubelet and the runtime work comes first, a node's reboot last.
ROLES = {
    "repair_swap": "disable_swap",
    "repair_runtime": "restart_runtime",
    "repair_bridges": "remove_bridges",
    "repair_ipam": "unstick_ipam",
    "restart_calico": "restart_calico",
    "repair_overload": "recycle_node",
    "repair_autodetection": "set_autodetection",
    "repair_probes": "tune_probes",
}
# {playbook: the variables that its remedies carry}. A report takes no others along: it may be a file of somebody else's, and with what a role
# takes it could call a gate passed, or name a program that the controller runs.
TAKES = {"repair_autodetection": tuple(VARIABLES.values())}
TEMPLATE = re.compile("{[{%#]")
# {playbook: its role, whether it changes all nodes of the cluster at once, and the variables that a finding may give it}
REPAIRS = {playbook: Repair(role, playbook in EVERYWHERE, TAKES.get(playbook, ())) for playbook, role in ROLES.items()}
COMMON = "cluster.too_many_not_ready"
SAME_PERCENT = 34.0  # of the nodes: where more of them need the same disruptive repair, the cause is none of them
RENEWED = ("restart_calico",)  # what a setting of all nodes brings with it: it starts every calico-node anew
LOST = ("node.unreachable", "node.unreadable")
# {playbook: what has to be put right before it, where nothing but a person can}
FIRST = {"repair_ipam": ("calico.init_stuck", "cluster.service_path", "links.ipam_leftovers")}
CONTROL_PLANE_ROLES = {"control-plane", "controlplane", "master", "etcd"}
CONTROL_PLANE_PODS = {"kube-apiserver", "etcd"}

Node = namedtuple("Node", "control_plane pods")  # each None where it is not known
Consent = namedtuple("Consent", "allow_disruption reboot_ok")
CONSENTS = {"disruptive": ("allow_disruption", "-e nodecare_allow_disruption=true"), "reboot": ("reboot_ok", "-e nodecare_reboot_ok=true")}
NOBODY = Node(None, None)
NONE_GIVEN = Consent(False, None)


def plan(findings, hosts, nodes=None, others=(), consent=NONE_GIVEN, percent=SAME_PERCENT):
    """The plan for the hosts of a run, which is never widened.

    ``nodes`` maps names to what is known of them, ``others`` are the nodes of the cluster that are no hosts of this run. The answer is
    {schema, id, stop: [reasons], turns: [{node, control_plane, pods, steps}], by_hand: [], outside: []}. A turn is one node with its repairs
    in order, and the next one comes when it is well. The last one is the cluster's, with what changes all nodes at once. A step is
    {number, node, playbook, role, why: [rule ids], disruptive, reboot, vars, everywhere, needs: [options], held: reason or None, command}.
    """
    nodes = {host: (nodes or {}).get(host, NOBODY) for host in hosts}
    wanted, by_hand = _wanted(findings)
    order = sorted(nodes, key=lambda name: _importance(name, nodes[name]))
    steps, outside = _placed(wanted, order)
    _hold(steps, findings, others, consent, by_hand)
    known_of = {**nodes, CLUSTER: Node(False, None)}
    turns = [{"node": name, **known_of[name]._asdict(), "steps": [one for one in steps if one["node"] == name]} for name in [*order, CLUSTER]]
    turns = [one for one in turns if one["steps"]]
    for number, step in enumerate((step for turn in turns for step in turn["steps"]), 1):
        step["number"] = number
    stop = list(_common_causes(findings, wanted, len({*hosts, *others}), percent))
    return {"schema": SCHEMA, "id": _identity(turns), "stop": stop, "turns": turns, "by_hand": by_hand, "outside": outside}


def _identity(turns):
    """What tells plans apart: what is done to which node. Neither the order, which follows the pods, nor who has agreed to what."""
    steps = sorted(json.dumps([step["node"], step["playbook"], step["vars"]], sort_keys=True, default=str) for turn in turns for step in turn["steps"])
    return hashlib.sha256("\n".join(steps).encode()).hexdigest()[:12]


def can_begin(made):
    """The turns of a plan of which something can be carried out now, each with only that."""
    turns = [{**turn, "steps": [step for step in turn["steps"] if not step["held"]]} for turn in made["turns"]]
    return [] if made["stop"] else [turn for turn in turns if turn["steps"]]


# -- what is known of the nodes ------------------------------------------------------------------------------------------


def known(machines, cluster=None, control_plane=()):
    """({name: Node}, the Nodes of the cluster that are none of these machines). ``control_plane`` are names that an inventory calls so."""
    views = joined(machines, cluster) if cluster else machines
    found = {name: Node(_is_control_plane(view, name in control_plane), _pods(view)) for name, view in views.items()}
    return found, sorted(set(found) - set(machines), key=natural)


def _is_control_plane(view, said):
    entry = (view.get(CLUSTER) or {}).get("node")
    role = (view.get("host") or {}).get("role")
    if said or CONTROL_PLANE_ROLES.intersection((entry or {}).get("roles") or []) or CONTROL_PLANE_PODS.intersection((role or {}).get("manifests") or []):
        return True
    return False if entry or role else None


def _pods(view):
    """How many pods run there, as its runtime says."""
    counts = [(one.get("pods") or {}).get("ready") for one in ((view.get("runtime") or {}).get("answers") or {}).values() if isinstance(one, dict)]
    return max((one for one in counts if is_number(one)), default=None)


def _importance(name, node):
    """The canary first: a worker with few pods; what belongs to the control plane last, what is not known in between."""
    return {False: 0, None: 1, True: 2}[node.control_plane], node.pods is None, node.pods or 0, natural(name), name


# -- what is to be done ----------------------------------------------------------------------------------------------------


def _wanted(findings):
    """The findings that a playbook puts right, and what only people can; what another finding explains gets no repair of its own."""
    repaired, by_hand = {}, {}
    for answer in diagnose(findings):
        mine = {(one["id"], one["node"]) for one in answer["repair"]}
        steps = [answer["cause"], *(one for one in answer["explains"] if (one["id"], one["node"]) in mine)]
        for one in (*steps, *answer["for_good"]):
            if playbook_of(one["remedy"]):
                repaired.setdefault(id(one), one)
            else:
                hand = _by_hand(one)
                by_hand.setdefault((one["node"], hand["command"] or one["id"]), hand)
    return list(repaired.values()), list(by_hand.values())


def _by_hand(finding):
    remedy = finding["remedy"] or {"manual": None, **dict.fromkeys(CONSENTS, False)}
    command = groups.command({**remedy, "playbook": None}, [])
    return {"node": finding["node"], "id": finding["id"], "title": finding["title"], "command": command, "see": finding["see"], **_cautions(remedy)}


def playbook_of(remedy):
    """The name of a playbook that is known here, and that takes what the remedy gives it; else None."""
    if not remedy:
        return None
    name = str(remedy["playbook"] or "").removeprefix(COLLECTION)
    return name if name in REPAIRS and _takes(REPAIRS[name], remedy["vars"]) else None


def _takes(repair, variables):
    return all(name in repair.takes and isinstance(value, str) and not TEMPLATE.search(value) for name, value in variables.items())


def _cautions(remedy):
    return {name: bool(remedy[name]) for name in CONSENTS}


def _placed(wanted, order):
    """The steps in the order of the nodes and of each one's repairs; and those of nodes that are not in this run."""
    steps, outside = [], []
    of_all = [one for one in wanted if REPAIRS[playbook_of(one["remedy"])].everywhere]
    places = {name: number for number, name in enumerate([*order, CLUSTER] if order else [])}
    renewed = [one for one in wanted if of_all and playbook_of(one["remedy"]) in RENEWED]
    for playbook, repair in REPAIRS.items():
        mine = [one for one in wanted if playbook_of(one["remedy"]) == playbook and one not in renewed]
        for node, ones in _by_carrier(mine, repair, order).items():
            for variables, them in _by_variables(ones):
                step = _step(playbook, repair, node, variables, them + (renewed if repair.everywhere else []))
                (steps if node in places else outside).append(step)
    outside = [{"node": one["node"], "why": one["why"], "command": one["command"]} for one in outside]
    return sorted(steps, key=lambda one: places[one["node"]]), sorted(outside, key=lambda one: natural(one["node"]))


def _by_carrier(findings, repair, order):
    """{the node in whose turn it is done: findings}. What concerns the cluster is done once, by the last node that has it done anyway, else by the first."""
    if repair.everywhere:
        return {CLUSTER: findings} if findings else {}
    own = {}
    for one in findings:
        if one["node"] != CLUSTER:
            own.setdefault(one["node"], []).append(one)
    carriers = [name for name in order if name in own]
    of_cluster = [one for one in findings if one["node"] == CLUSTER]
    if of_cluster:
        own.setdefault(carriers[-1] if carriers else (order or [CLUSTER])[0], []).extend(of_cluster)
    return own


def _by_variables(findings):
    """Findings that give their repair the same are repaired together."""
    done = {}
    for one in findings:
        done.setdefault(tuple(sorted(one["remedy"]["vars"].items())), []).append(one)
    return [(dict(given), them) for given, them in done.items()]


def _step(playbook, repair, node, variables, findings):
    remedy = {"playbook": COLLECTION + playbook, "vars": variables, "manual": None, **{name: any(one["remedy"][name] for one in findings) for name in CONSENTS}}
    return {
        "number": None,
        "node": node,
        "playbook": remedy["playbook"],
        "role": COLLECTION + repair.role,
        "why": list(dict.fromkeys(one["id"] for one in findings)),
        **_cautions(remedy),
        "vars": variables,
        "everywhere": repair.everywhere,
        "needs": [],
        "held": None,
        "command": groups.command(remedy, [node]),
    }


# -- what keeps a step from being carried out ------------------------------------------------------------------------------


def _hold(steps, findings, others, consent, by_hand):
    lost = {one["node"] for one in findings if one["id"] in LOST and one["status"] == "fail"}
    first = {(one["node"], one["id"]) for one in by_hand}
    held = set()
    for step in steps:
        step["needs"] = [option for caution, (name, option) in CONSENTS.items() if step[caution] and not getattr(consent, name)]
        step["held"] = _why_not(step, lost, first, others, held)
        if step["held"]:
            held.add(step["node"])


def _why_not(step, lost, first, others, held):
    if step["node"] in lost:
        return "it cannot be reached"
    if step["everywhere"] and (others or lost):
        return "it changes all nodes of the cluster, and this run does not have %s" % listed(sorted({*others, *lost}, key=natural))
    for rule_id in FIRST.get(step["playbook"].removeprefix(COLLECTION), ()):
        if (step["node"], rule_id) in first:
            return "%s has to be put right by hand first" % rule_id
    if step["needs"]:
        return "needs your consent: " + " ".join(step["needs"])
    return "it comes after what is held back" if held and (step["node"] in held or step["everywhere"]) else None


def _common_causes(findings, wanted, count, percent):
    """Why no node is to be repaired: what is wrong is wrong with many."""
    for one in findings:
        if one["id"] == COMMON and one["status"] == "fail":
            yield one["message"]
    for playbook in (name for name, repair in REPAIRS.items() if not repair.everywhere):
        nodes = {one["node"] for one in wanted if playbook_of(one["remedy"]) == playbook and one["remedy"]["disruptive"]}
        if len(nodes) > 1 and 100 * len(nodes) > percent * count:
            yield "%s would be needed on %d of %d nodes (beyond %g %% the cause is common): %s" % (
                playbook,
                len(nodes),
                count,
                percent,
                listed(sorted(nodes, key=natural)),
            )
