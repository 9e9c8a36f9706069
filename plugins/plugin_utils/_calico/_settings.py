# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How calico-node is told to find a node's address: by the cluster where it was read, else as it runs here, else by the policy."""

from __future__ import annotations

import re
from typing import NamedTuple

from .._declared import threshold
from ._startup import NAMES
from ._versions import VersionError, skips_without_backend
from ._versions import version as numbers

VERSION = threshold(
    "calico_version",
    "",
    "The Calico version that the cluster runs or is to run, such as 3.31, where the cluster itself is not asked. With it, the address that Calico takes is"
    " foreseen.",
)
METHODS = {
    4: threshold(
        "calico_method",
        "",
        "The IPv4 autodetection method of the Calico that is to run, such as cidr=10.0.0.0/24, where the cluster itself is not asked. Without it,"
        " first-found is assumed where calico_version is given.",
    ),
    6: threshold("calico_method6", "", "The IPv6 autodetection method of the Calico that is to run. Without it, it registers no IPv6 addresses."),
}
ENFORCES = "Calico only enforces policies here: without networking of its own no address of it is used"
RUNNING = "the running calico-node"
OTHER = "this node's pod network is %s; only Calico chooses an address in this way"
OF_THE_NODE = re.compile(r"field status\.(hostIP|podIP)s?$")


class Setting(NamedTuple):
    """What counts for one family. ``said`` is IP or IP6, ``by`` who says so; ``unknown`` is what could not be learnt.

    Where Calico does not ``route``, some versions look for an address all the same, and end where another node has it; nobody uses it.
    """

    family: int
    version: str
    method: str
    said: str
    by: str
    assumed: bool = False
    compares: bool = True
    poll: str = ""
    unknown: str = ""
    routes: bool = True

    @property
    def numbers(self):
        return numbers(self.version)

    @property
    def detects(self):
        """Whether an address is looked for at every start, whatever is stored."""
        return self.said == "autodetect"

    @property
    def words(self):
        how = self.method or "first-found" if self.said in ("", "autodetect") else "%s=%s" % (NAMES[self.family], self.said)
        return "Calico%s with %s" % (" " + self.version if self.version else "", how)


class Silence(NamedTuple):
    """Why nothing is said about Calico's choice; ``unread`` where that is a gap in what was read."""

    why: str
    unread: bool = False


def settings(policy, calico=None, nodes=None, node=None, other=None, internal=tuple, running=None):
    """({family: Setting}, None), or (None, Silence).

    ``calico`` and ``nodes`` are those of the cluster facts, ``node`` is this machine's Node, ``other`` the name of another
    pod network that the machine has, ``internal`` gives the InternalIPs that it has or will have, and ``running`` is the
    environment of the calico-node that runs on it.
    """
    if calico and (calico.get("install") or {}).get("kind", "none") != "none":
        return _of_environment("the cluster", calico.get("env"), calico.get("backend"), calico.get("version") or policy[VERSION], node, internal)
    if running and (nodes is None if calico is None else calico.get("install") is None):  # what the cluster says was not read
        backend = running.get("CALICO_NETWORKING_BACKEND")
        return _of_environment(RUNNING, running, backend, policy[VERSION], node, internal)
    silence = _silence(policy, calico, nodes, other)
    return (None, silence) if silence else (_of_policy(policy), None)


def _silence(policy, calico, nodes, other):
    if nodes is not None and (calico or {}).get("install") is None:
        return Silence("what the cluster says about Calico could not be read", unread=True)
    if calico is None and other:
        return Silence(OTHER % other)
    if any(policy[name] for name in (VERSION, *METHODS.values())):
        return None
    if calico is not None:
        return Silence("the cluster has no Calico")
    return Silence("no cluster was read, no calico-node runs here, and the policy names neither calico_version nor calico_method")


def _of_policy(policy):
    version = _checked(policy[VERSION])
    unknown = _version_unknown(version, policy[VERSION])
    first = Setting(4, version, policy[METHODS[4]], "autodetect", "the policy", assumed=not policy[METHODS[4]], unknown=unknown)
    found = {4: first}
    if policy[METHODS[6]]:
        found[6] = first._replace(family=6, method=policy[METHODS[6]], assumed=False)
    return found


def _of_environment(by, env, backend, said, node, internal):
    version = _checked(said)
    if backend == "none" and (not version or skips_without_backend(numbers(version))):
        return None, Silence(ENFORCES)
    if env is None:
        return None, Silence("the environment of calico-node could not be read", unread=True)
    unknown = _version_unknown(version, said)
    found = (_of_family(family, env, version, unknown, node, internal) for family in (4, 6))
    return {one.family: one._replace(by=by, routes=backend != "none") for one in found}, None


def _of_family(family, env, version, unknown, node, internal):
    values, hidden = {}, []
    for name in (NAMES[family], NAMES[family] + "_AUTODETECTION_METHOD", "DISABLE_NODE_IP_CHECK", "AUTODETECT_POLL_INTERVAL"):
        values[name] = expanded(env.get(name, ""), env, node, internal)
        if values[name] is None:
            hidden.append("%s of calico-node comes from %s" % (name, origin(env.get(name), env)))
    said, method, disabled, poll = (value or "" for value in values.values())
    unknown = "; ".join([*hidden, *([unknown] if unknown else [])])
    return Setting(family, version, method, said, "the cluster", compares=disabled != "true", poll=poll, unknown=unknown)


def origin(value, env):
    """Where a value comes from that the environment does not hold itself."""
    if isinstance(value, dict):
        return str(value.get("from"))
    hidden = [env[name] for name in re.findall(r"\$\(([^()]+)\)", str(value)) if isinstance(env.get(name), dict)]
    return ", ".join(str(one.get("from")) for one in hidden) or "elsewhere"


def expanded(value, env, node, internal):
    """A variable as its container gets it: with $(NAME) as the kubelet replaces it. None where that is not known."""
    if value is None or isinstance(value, dict):
        return _of_field(str((value or {}).get("from") or ""), node, internal)
    parts = [_part(text, env, node, internal) for text in re.split(r"(\$\$|\$\([^()]*\))", str(value))]
    return None if None in parts else "".join(parts)


def _part(text, env, node, internal):
    """A name that the environment has not stays as it is written."""
    if text == "$$":
        return "$"
    name = text[2:-1] if text.startswith("$(") else None
    return expanded(env[name], {}, node, internal) if name in env else text


def _of_field(source, node, internal):
    """calico-node is in the host's network: its pod has the host's addresses, and these are the Node's InternalIPs."""
    if OF_THE_NODE.match(source):
        return next(map(str, internal()), None)
    if source == "field spec.nodeName":
        return (node or {}).get("name")
    return None


def host_ip_variable(calico):
    """The variable of calico-node that the kubelet fills with the node's InternalIP, as kubespray's NODEIP."""
    env = (calico or {}).get("env") or {}
    return next((name for name, value in env.items() if isinstance(value, dict) and value.get("from") == "field status.hostIP"), "")


def _checked(text):
    """A version that is known, else none."""
    try:
        numbers(text)
    except VersionError:
        return ""
    return str(text or "").lstrip("v")


def _version_unknown(version, said):
    return "" if version or not said else "%r is no version of Calico whose sources were read" % said
