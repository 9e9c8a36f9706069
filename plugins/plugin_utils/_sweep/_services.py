# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The cluster's service network and its way to the API server, kube-proxy, and what kubeadm was told."""

from __future__ import annotations

import ipaddress

import yaml

from ._values import at, entries, mapping, number, text, texts

PROXY = "kube-proxy"
MODE = "--proxy-mode"


def service(thing):
    """The service of the API server."""
    return {"ip": text(thing, "spec", "clusterIP"), "port": next((number(one, "port") for one in entries(thing, "spec", "ports")), None)}


def endpoints(thing):
    ports = [number(one, "port") for one in entries(thing, "ports")]
    ready = [one for one in entries(thing, "endpoints") if at(one, "conditions", "ready") is not False]
    return ["%s:%s" % ("[%s]" % ip if ":" in ip else ip, port) for one in ready for ip in texts(one, "addresses") for port in ports]


def networks(thing):
    """Of one ServiceCIDR."""
    return texts(thing, "spec", "cidrs")


def kubeadm(data):
    networking = mapping(_yaml(text(data, "ClusterConfiguration")), "networking")
    return {"pod_networks": _cidrs(text(networking, "podSubnet")), "service_networks": _cidrs(text(networking, "serviceSubnet"))}


def kube_proxy(daemonset, data):
    """The mode and where it is written; None where there is no kube-proxy. Who is told of a file does not look at arguments."""
    for container in entries(daemonset, "spec", "template", "spec", "containers"):
        words = texts(container, "command") + texts(container, "args")
        joined = [word.partition("=")[2] for word in words if word.startswith(MODE + "=")]
        apart = [after for word, after in zip(words, words[1:]) if word == MODE]
        if (joined or apart) and not any(word.startswith("--config") for word in words):
            return {"mode": (joined + apart)[0], "from": "argument of DaemonSet %s" % PROXY}
    for key in ("config.conf", "config"):
        if text(data, key):
            return {"mode": text(_yaml(text(data, key)), "mode") or "iptables", "from": "ConfigMap %s" % PROXY}
    return {"mode": "iptables", "from": "default"} if daemonset else None


def _yaml(said):
    try:
        found = yaml.safe_load(said)
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _cidrs(said):
    return [one for one in map(str.strip, said.split(",")) if _is_cidr(one)]


def _is_cidr(one):
    try:
        return bool(ipaddress.ip_network(one, strict=False))
    except ValueError:
        return False
