# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. CNI: which configuration files there are, and which addresses host-local keeps."""

from __future__ import annotations

import re
import socket

from ..._bridges import MULTUS
from ..kubelet._settings import kubeconfigs
from . import _netlink

DIRECTORIES = ("/etc/cni/net.d", "/var/lib/rancher/k3s/agent/etc/cni/net.d", "/var/snap/microk8s/current/args/cni-network")
LOADED = (".conf", ".conflist", ".json")
MOST = 30


def cni(node):
    """The files from which a runtime takes the first that is valid, and what else lies beside them."""
    found = {"joined": kubeconfigs(node), "directories": [_directory(node, path) for path in DIRECTORIES if node.exists(path)]}
    # What was denied is neither absent nor broken, and everything that is concluded from the order of the files hangs on it.
    if any(one["fact"] == ".".join(node.path) and one["kind"] == "denied" for one in node.problems):
        found["unread"] = True
    return found


def _directory(node, path):
    names = node.list(path)
    loaded = [name for name in names if name.endswith(LOADED)]
    others = [name for name in names if name not in loaded]
    return {"path": path, "files": [_file(node, path, name) for name in loaded[:MOST]], "others": others[:MOST]}


def _file(node, path, name):
    said = node.json(path + "/" + name)
    plugins = list(_plugins(said))
    if not plugins:
        return {"file": name, "broken": True}
    delegate = next((one["clusterNetwork"] for one in plugins if str(one.get("type")) in MULTUS and one.get("clusterNetwork")), None)
    return {
        "file": name,
        "name": str(said.get("name") or "")[:128],
        "types": _texts(one.get("type") for one in plugins),
        "ipam": _texts(one["ipam"].get("type") for one in plugins if isinstance(one.get("ipam"), dict)),
        "bridges": _texts(one.get("bridge") for one in plugins),
        **({"delegate": str(delegate)[:256]} if delegate else {}),
    }


def _plugins(said, depth=0):
    """The plugins of a list, of a single configuration, and those that multus delegates to."""
    if not isinstance(said, dict) or depth > 3:
        return
    if said.get("type"):
        yield said
    for part in ("plugins", "delegates"):
        for one in said.get(part) if isinstance(said.get(part), list) else []:
            yield from _plugins(one, depth + 1)


def _texts(values):
    return sorted({str(value)[:64] for value in values if value})[:MOST]


def ipam(node):
    """The addresses that host-local keeps for each network, and how many of them a route still leads to."""
    networks = []
    for name in node.list("/var/lib/cni/networks")[:MOST]:
        kept = [one for one in node.list("/var/lib/cni/networks/" + name) if re.match(r"[0-9a-f]*[.:][0-9a-f.:]+$", one)]
        networks.append({"network": name, "entries": len(kept), "examples": kept[:3], "routed": len(_routed(node).intersection(kept)) if kept else 0})
    return networks


def _routed(node):
    """Single addresses that a route leads to: those of running pods."""
    routes = _netlink.routes(node.dump(_netlink.ROUTE, socket.AF_INET))
    return {route["to"][:-3] for route in routes if route["to"].endswith("/32")}
