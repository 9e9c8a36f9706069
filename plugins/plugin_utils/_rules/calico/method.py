# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A detection method that is set, but does not count, or not everywhere."""

from __future__ import annotations

import shlex

from ... import _cluster
from ..._calico._commands import FIELDS, daemonset, set_method
from ..._calico._host import network
from ..._calico._settings import settings
from ..._calico._startup import NAMES
from ..._calico._versions import masks_the_internal_ip
from .._rule import across, by_hand, fail, of_cluster, passed, repaired_by, skip, unknown, warn
from ._here import CHANGEABLE

WORDS = {"interface": "interface=%s", "skipInterface": "skip-interface=%s", "canReach": "can-reach=%s"}
VARIABLES = {4: "nodecare_calico_method", 6: "nodecare_calico_method6"}
SHOWN = 10


@of_cluster(
    "calico.method_not_effective",
    "The address detection that is set does not take effect",
    needs=("cluster.calico", "cluster.nodes"),
    uses=("cluster.node", "calico.processes"),
)
def method_not_effective(calico, nodes, _node, _processes, policy):
    known, silence = settings(policy, calico, nodes, internal=lambda: ["its InternalIP"])
    if silence or known[4].by != "the cluster":
        return (unknown if silence and silence.unread else skip)(silence.why if silence else "the cluster has no Calico")
    found, looked_for = [], [setting for setting in known.values() if setting.detects]
    for setting in known.values():
        if setting.unknown:
            found.append(unknown(setting.unknown))
        else:
            found += [*_by_operator(calico, setting), *([] if _is_off(setting, looked_for) else _by_ip(calico, nodes, setting))]
    found += _not_rolled_out(calico)
    return found or passed("calico-node looks for the address by %s" % (known[4].method or "first-found") if known[4].detects else "no method is set")


def _is_off(setting, looked_for):
    """Whether this family is not wanted and the other one is: a template such as kubespray's writes the method for both all the same."""
    return setting.said == "none" and bool(looked_for)


@across("calico.method_not_effective")
def runs_with_another(nodes, policy):
    """A method counts only with IP=autodetect: with IP unset an address is looked for once and then kept, with IP=none or an address
    it is not looked for at all.

    The operator puts back what somebody sets on the DaemonSet, and refuses an Installation that names two methods, as a merge patch
    leaves it. A calico-node that is not replaced goes on with the old method.
    """
    return {name: _runs_with(*facts, policy) for name, facts in nodes.items()}


def _runs_with(calico, nodes, node, processes, policy):
    """Whether the calico-node of this machine was started with what the DaemonSet says now."""
    running = (processes or {}).get("env")
    known, silence = settings(policy, calico, nodes, node, internal=lambda: (node or {}).get("internal_ips") or ())
    if silence or not node or not running:
        return skip(silence.why if silence else "no calico-node of this Node was seen running")
    for setting in known.values() if not any(one.unknown for one in known.values()) else ():
        name = NAMES[setting.family]
        said = {name: setting.said, name + "_AUTODETECTION_METHOD": setting.method}
        old = {key: running.get(key, "") for key, value in said.items() if running.get(key, "") != value}
        if old:
            shown = ", ".join("%s=%s" % (key, value) for key, value in sorted(old.items()))
            message = "calico-node runs with %s, and the DaemonSet says %s" % (shown, ", ".join("%s=%s" % (key, said[key]) for key in sorted(old)))
            return warn(message, repaired_by("restart_calico", _text(_restart(calico, node["name"])), disruptive=True), running=old, daemonset=said)
    return passed("calico-node runs with what the DaemonSet says")


def _restart(calico, name):
    namespace, label = daemonset(calico)
    return "kubectl -n %s delete pod -l k8s-app=%s --field-selector spec.nodeName=%s" % (namespace, label, shlex.quote(name))


def _by_operator(calico, setting):
    """Where the Installation and the DaemonSet differ, the Installation wins."""
    installation = calico.get("installation")
    if not installation:
        return
    field = _field(installation, setting.family)
    named = [key for key, value in field.items() if value]
    degraded = (installation.get("conditions") or {}).get("Degraded") or {}
    said = {"installation": field, "daemonset": setting.method or None, "degraded": str(degraded.get("message") or "")[:300] or None}
    if len(named) > 1:
        meant = next((key for key in named if key != "firstFound"), named[0])
        method = _method({meant: field[meant]})
        message = "the Installation names %s in %s: the operator takes one only, and leaves the DaemonSet as it was"
        message %= (" and ".join(named), FIELDS[setting.family])
        yield fail(message, _set(method, setting, calico), **said)
    elif named and setting.said != "none" and _method(field) != (setting.method or "first-found"):
        method = setting.method or "first-found"
        message = "the DaemonSet says %s, the Installation %s: the operator puts its own back" % (method, _method(field))
        yield fail(message, by_hand(_text("where %s is meant: %s" % (method, set_method(method, setting.family, calico)))), **said)


def _field(installation, family):
    """What the operator goes by: the Installation with its defaults filled in."""
    for part in ("spec", "computed"):
        found = ((installation.get(part) or {}).get("calicoNetwork") or {}).get(FIELDS[family])
        if isinstance(found, dict) and any(found.values()):
            return found
    return {}


def _method(field):
    """The environment variable that the operator makes of it."""
    (key, value), *_others = [(key, value) for key, value in field.items() if value]
    if key == "cidrs":
        return "cidr=" + ",".join(map(str, value))
    return {"firstFound": "first-found", "kubernetes": "kubernetes-internal-ip"}.get(key) or WORDS.get(key, key + "=%s") % value


def _by_ip(calico, nodes, setting):
    """What IP or IP6 makes of the method."""
    name, stored = NAMES[setting.family], {4: "ipv4", 6: "ipv6"}[setting.family]
    held = {node["name"]: (node.get("calico") or {}).get(stored) for node in nodes}
    fits = _fits if setting.detects else _is_internal
    other = [node["name"] for node in nodes if held[node["name"]] and not fits(held[node["name"]], setting, node)]
    shown = ", ".join("%s (%s)" % (node, held[node]) for node in other[:SHOWN])
    evidence = {"family": setting.family, "ip": setting.said, "method": setting.method or None, "nodes": other[:SHOWN]}
    if not setting.method:
        return
    if setting.said == "" and setting.family == 4 and other:
        message = "%s is set, but IP is not autodetect: what is registered is kept on %s" % (setting.method, shown)
        yield fail(message, _set(_written(calico, setting), setting, calico), **evidence)
    elif setting.said not in ("", "autodetect"):
        message = "%s is set, but %s=%s: the method is never asked" % (setting.method, name, setting.said)
        yield warn(message, _set(_written(calico, setting), setting, calico), **evidence)
    elif setting.detects and other:
        message = "%s is set, but %s keeps another address: its calico-node runs with the old method, or finds nothing by this one" % (setting.method, shown)
        yield fail(message, by_hand(_text(_restart(calico, other[0])) + "  # one node at a time", disruptive=True), **evidence)


def _written(calico, setting):
    """The method as the environment has it, in which a node's own address is still a variable."""
    said = (calico.get("env") or {}).get(NAMES[setting.family] + "_AUTODETECTION_METHOD")
    return said if isinstance(said, str) else setting.method


def _fits(registered, setting, node):
    """Whether an address can be the method's answer, as far as the method alone tells that."""
    ip = _cluster.address(registered)
    kind, _equals, said = setting.method.partition("=")
    if kind == "cidr":
        networks = [one for one in map(network, said.split(",")) if one]
        return ip is None or not networks or any(ip in one for one in networks)
    exact = kind.startswith("kubernetes-internal-ip") and not masks_the_internal_ip(setting.numbers)
    return not exact or _is_internal(registered, setting, node)


def _is_internal(registered, setting, node):
    internal = [one for one in _cluster.internal(node) if one.version == setting.family]
    return not internal or _cluster.address(registered) in internal


def _not_rolled_out(calico):
    known = calico.get("daemonset") or {}
    desired, updated = known.get("desired"), known.get("updated")
    if not desired or updated is None or updated >= desired:
        return
    waits = known.get("strategy") == "OnDelete"
    more = "; it replaces them only once they are deleted" if waits else ""
    message = "%d of %d calico-node pods run with what the DaemonSet says now%s" % (updated, desired, more)
    namespace, name = daemonset(calico)
    watch = "kubectl -n %s rollout status daemonset/%s" % (namespace, name)
    remedy = _restart(calico, "NODE") + "  # one node at a time" if waits else watch
    yield warn(message, by_hand(_text(remedy), disruptive=waits), desired=desired, updated=updated, strategy=known.get("strategy"))


def _set(method, setting, calico):
    command = _text(set_method(method, setting.family, calico))
    if calico["install"]["kind"] not in CHANGEABLE:
        return by_hand(command, disruptive=True)
    return repaired_by("repair_autodetection", command, disruptive=True, **{VARIABLES[setting.family]: method})


def _text(command):
    return command.replace("%", "%%")
