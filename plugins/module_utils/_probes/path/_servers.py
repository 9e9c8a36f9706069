# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How long the API server and Calico's etcd take to answer this node. No credentials are used: a refusal is an answer."""

from __future__ import annotations

import re

from ..kubelet._certificate import validity
from ..kubelet._settings import HOMES, found_flags, installed

ROUNDS, QUESTIONS = 4, 2  # connections one after the other, and questions over each
NAMES = 0.6  # of the deadline for the server's name
MOST = 5  # servers
VERSION, READY = "/version", "/readyz"
KUBECONFIGS = ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf")


def api(node):
    """Each API server that is known, with the time of its steps: [{target, from, state, connect, tls, answer, code, …}].

    The steps are {n, p50, p90, max} in seconds. Where some or all of the ``talks`` failed, ``at`` is the step at which, ``how`` and ``why`` say more.
    """
    asked = {}
    for url, source in [*own_server(node), *((one, "targets") for one in listed(node.targets.get("api")))]:
        asked.setdefault(place(url, 443), source)
    return _measured(node, asked, lambda node, host, port: _server(node, host, port, tls=True, paths=[VERSION] * QUESTIONS))


def etcd(node):
    """The same of the etcd that Calico keeps its data in, which is asked for nothing: [{target, from, state, connect, tls}]."""
    asked = {}
    for url, source in [*own_etcd(node), *((one, "targets") for one in listed(node.targets.get("etcd")))]:
        asked.setdefault((*place(url, 2379), not url.startswith("http://")), source)
    return _measured(node, asked, lambda node, host, port, tls: _server(node, host, port, tls, paths=[]))


def _measured(node, asked, look):
    """All servers side by side; where a text is no address, that is said."""
    parts, found = {}, {}
    for key in list(asked)[:MOST]:
        target = shown(*key[:2])
        if key[0] is None:
            found[target] = _unasked("%s is no address" % target)
        else:
            parts[target] = lambda node, key=key: look(node, *key)
    node.together(parts, found)
    sources = {shown(*key[:2]): source for key, source in asked.items()}
    return [{"target": target, "from": sources[target], **said} for target, said in found.items() if said]


def _server(node, host, port, tls, paths):
    start = node.stopwatch()
    addresses = node.addresses(host, node.deadline * NAMES)
    if not addresses:
        return _unasked("%s has no address that could be found" % host)
    talks, left, took = [], node.deadline - (node.stopwatch() - start), 0.0
    while len(talks) < ROUNDS and left > 2 * took:
        begun = node.stopwatch()
        talks.append(node.converse((addresses[0], port), host, paths, left, tls))
        took = node.stopwatch() - begun
        left -= took
    ready = _ready(node.converse((addresses[0], port), host, [READY], left, tls)) if paths and talks[-1]["state"] == "answered" and left > took else {}
    return {**_steps(talks), **_failure(talks), **_code(talks), **ready, **_certificate(node, talks[0])}


def _unasked(why):
    return {"state": "failed", "talks": 0, "failed": 1, "at": "address", "how": "failed", "why": why}


def _steps(talks):
    values = {step: [talk[step] for talk in talks if talk[step] is not None] for step in ("connect", "tls")}
    values["answer"] = [answer["seconds"] for talk in talks for answer in talk["answers"]]
    good = any(talk["state"] == "answered" for talk in talks)
    return {"state": "answered" if good else talks[0]["state"], "talks": len(talks), **{step: spread(of) for step, of in values.items() if of}}


def _failure(talks):
    """The first conversation that failed, and how many did."""
    bad = [talk for talk in talks if talk["state"] != "answered"]
    return {"failed": len(bad), "at": bad[0]["at"], "how": bad[0]["state"], "why": bad[0].get("why", "")} if bad else {"failed": 0}


def _code(talks):
    return next(({"code": answer["code"]} for talk in talks for answer in talk["answers"]), {})


def _ready(talk):
    """Which parts the server itself calls not ready; its etcd is one of them."""
    said = {"state": talk["state"]}
    for answer in talk["answers"]:
        said.update(code=answer["code"], seconds=answer["seconds"], failing=re.findall(r"^\[-\](\S{1,80})", answer["out"], re.M)[:10])
    return {"ready": said}


def _certificate(node, conversation):
    """For how long the server's certificate is still valid. Whether it is the right one is for those to say who have the cluster's own."""
    held = conversation.get("certificate")
    if not held:
        return {}
    try:
        begin, end = validity(held)
    except (ValueError, IndexError):
        return {"certificate": {"why": "its dates cannot be read"}}
    return {"certificate": {"left_s": int(end - node.clock()), "since_s": int(node.clock() - begin)}}


def spread(values):
    """Of so many seconds: the middle, nine of ten, and the longest."""
    ordered = sorted(values)
    return {"n": len(ordered), "p50": ordered[(len(ordered) - 1) // 2], "p90": ordered[-(-9 * len(ordered) // 10) - 1], "max": ordered[-1]}


# -- who is to be asked ------------------------------------------------------------------------------------------------


def own_server(node):
    """The API server that the kubelet asks."""
    this = installed(node)
    if this["variant"] in ("k3s", "rke2"):
        paths = (HOMES[this["variant"]] + "/agent/kubelet.kubeconfig",)
    elif this["variant"] == "microk8s":
        paths = (HOMES["microk8s"] + "/credentials/kubelet.config",)
    else:
        told = found_flags(node, this["variant"], this["unit"])[0].get("kubeconfig") if this["variant"] else None
        paths = ((told,) if told else ()) + KUBECONFIGS
    for path in paths:
        found = re.search(r"^[ -]*server:[ \"']*(https?://[^\s\"'#]+)", node.read(path, 1 << 17) or "", re.M)
        if found:
            return [(found.group(1), path)]
    return []


def own_etcd(node):
    """The etcd that Calico's CNI configuration names."""
    found = []
    for path in node.glob("/etc/cni/net.d/*calico*.conf*"):
        whole = node.json(path)
        for plugin in [whole] + list(whole.get("plugins") or []) if isinstance(whole, dict) else []:
            told = plugin.get("etcd_endpoints") if isinstance(plugin, dict) else None
            found += [(one.strip(), path) for one in str(told or "").split(",") if one.strip()]
    return found


def listed(value):
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)] if value else []


def place(url, port):
    """(host, port) of a URL or of ``host:port``; the host is None where it is neither."""
    match = re.match(r"(?:https?://)?(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)|([0-9A-Fa-f:.]+))(?::(\d{1,5}))?(?:/|$)", url)
    if not match or int(match.group(4) or port) > 65535:
        return None, url[:100]
    host = (match.group(1) or match.group(2) or match.group(3)).rstrip(".")
    return host, int(match.group(4) or port)


def shown(host, port):
    return str(port) if host is None else "%s:%s" % ("[%s]" % host if ":" in host else host, port)
