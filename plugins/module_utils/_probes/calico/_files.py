# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What calico-node leaves on the node for the CNI plugin and for itself: the node's name, the MTU, the plugin's token."""

from __future__ import annotations

import base64
import binascii
import json
import re

from ..._node import whole

HOME = "/var/lib/calico"
KUBECONFIGS = (
    "/etc/cni/net.d/calico-kubeconfig",
    "/var/lib/rancher/k3s/agent/etc/cni/net.d/calico-kubeconfig",
    "/var/snap/microk8s/current/args/cni-network/calico-kubeconfig",
)
MOST_LINKS = 1000


def nodename(node):
    """{name, exact, age_s}: the node's name as start-up wrote it, whether the file holds nothing else, and how long ago; empty where there is none."""
    text = node.read(HOME + "/nodename", 4096)
    if text is None:
        return nothing(node)
    return {"name": text.strip()[:253], "exact": text == text.strip(), "age_s": age(node, HOME + "/nodename")}


def shutdown(node):
    """{said, age_s}: calico-node writes this file when it is told to end, and removes it when it has started again."""
    text = node.read(HOME + "/shutdownTS", 4096)
    return nothing(node) if text is None else {"said": text.strip()[:60], "age_s": age(node, HOME + "/shutdownTS")}


def mtu(node):
    """{file, age_s, pods: {"1480": links of pods with it}, examples: {"1480": one of them}}: new pods get what the file says, running ones keep theirs."""
    pods, examples = {}, {}
    for name in [one for one in node.list("/sys/class/net") if one.startswith("cali")][:MOST_LINKS]:
        found = (node.glance("/sys/class/net/%s/mtu" % name, 32) or b"").decode("ascii", "replace").strip()
        if whole(found) is not None:
            pods[found] = pods.get(found, 0) + 1
            examples.setdefault(found, name)
    there = node.exists(HOME + "/mtu")
    return {"file": node.number(HOME + "/mtu") if there else None, "age_s": age(node, HOME + "/mtu") if there else None, "pods": pods, "examples": examples}


def token(node):
    """{path, age_s, server, kind, issued, expires, left_s, subject, pod} of the CNI plugin's kubeconfig, and never the token itself.

    ``kind`` is token, file, certificate or none; ``expires`` is None for a token that lives as long as its Secret.
    """
    path = next((one for one in KUBECONFIGS if node.exists(one)), None)
    text = node.read(path, 1 << 17) if path else None
    if text is None:
        return nothing(node)
    said = dict(re.findall(r"(?m)^[ -]*(server|token|tokenFile|client-certificate(?:-data)?):[ \"']*([^\s\"'#]+)", text))
    kinds = {"token": "token", "tokenFile": "file", "client-certificate": "certificate", "client-certificate-data": "certificate"}
    kind = next((kinds[key] for key in kinds if key in said), "none")
    server = re.sub(r"://[^/@\s]+@", "://…@", said.get("server", ""))[:200]
    found = {"path": path, "age_s": age(node, path), "server": server, "kind": kind}
    return {**found, **(claims(node, said["token"]) if kind == "token" else {})}


def claims(node, text):
    """What a token says of itself between its two points. Nobody here checks its signature."""
    try:
        middle = text.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (IndexError, ValueError, RecursionError, binascii.Error):
        said = None
    if not isinstance(said, dict):
        node.problem("the CNI plugin's token", "is not a JSON Web Token", "error")
        return {}
    issued, expires = (said.get(name) if isinstance(said.get(name), int) else None for name in ("iat", "exp"))
    bound = said.get("kubernetes.io") if isinstance(said.get("kubernetes.io"), dict) else {}
    pod = bound.get("pod") if isinstance(bound.get("pod"), dict) else {}
    found = {
        "issued": issued,
        "expires": expires,
        "left_s": None if expires is None else round(expires - node.clock()),
        "subject": str(said.get("sub", ""))[:200],
    }
    return {**found, "pod": str(pod["name"])[:253]} if pod.get("name") else found


def age(node, path):
    """Seconds since a file was written."""
    found = node.stat(path)
    return None if found is None else round(node.clock() - found.st_mtime)


def nothing(node):
    """Empty where there is nothing; None where nobody may look."""
    return None if any(one["fact"] == ".".join(node.path) for one in node.problems) else {}
