# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The DaemonSet of calico-node: its environment, its probes, its roll-out."""

from __future__ import annotations

import re

from ._values import at, entries, mapping, number, text, texts

CONTAINER = "calico-node"
PROBES = {"liveness": "livenessProbe", "readiness": "readinessProbe", "startup": "startupProbe"}
SECRET = re.compile(r"PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL|PRIVATE_?KEY", re.IGNORECASE)
USER = re.compile(r"//[^/@\s,]+@")  # of an URL


def workload(thing):
    """A DaemonSet or Deployment: where it stands with its roll-out, and the containers that it asks for."""
    status, spec = mapping(thing, "status"), mapping(thing, "spec")
    update = mapping(spec, "updateStrategy") or mapping(spec, "strategy")
    desired = number(status, "desiredNumberScheduled")
    return {
        "namespace": text(thing, "metadata", "namespace"),
        "name": text(thing, "metadata", "name"),
        "desired": number(spec, "replicas") if desired is None else desired,
        "current": _first(status, "currentNumberScheduled", "replicas"),
        "ready": _first(status, "numberReady", "readyReplicas"),
        "updated": _first(status, "updatedNumberScheduled", "updatedReplicas"),
        "strategy": text(update, "type"),
        "max_unavailable": at(update, "rollingUpdate", "maxUnavailable"),
    }


def _first(status, *names):
    """Kubernetes leaves a zero out."""
    return next((found for found in (number(status, name) for name in names) if found is not None), 0)


def node_container(daemonset):
    """The container of calico-node, {} where the DaemonSet has none."""
    return next((one for one in entries(daemonset, "spec", "template", "spec", "containers") if text(one, "name") == CONTAINER), {})


def probes(container):
    """With the values that Kubernetes takes where nothing is said."""
    return {name: _probe(mapping(container, key)) if mapping(container, key) else None for name, key in PROBES.items()}


def _probe(thing):
    http = mapping(thing, "httpGet")
    if http:
        scheme, host = text(http, "scheme").lower() or "http", text(http, "host") or "<pod>"
        how, what = "http", "%s://%s:%s%s" % (scheme, host, at(http, "port"), text(http, "path"))
    else:
        how = next((name for name in ("exec", "tcpSocket", "grpc") if name in thing), "")
        what = " ".join(texts(thing, "exec", "command")) or str(at(thing, how, "port") or "")
    return {
        "how": how,
        "what": what,
        "delay_s": number(thing, "initialDelaySeconds") or 0,
        "period_s": number(thing, "periodSeconds") or 10,
        "timeout_s": number(thing, "timeoutSeconds") or 1,
        "failures": number(thing, "failureThreshold") or 3,
    }


def config_maps(container):
    """The names of the ConfigMaps that a container's environment comes from."""
    keys = [text(one, "valueFrom", "configMapKeyRef", "name") for one in entries(container, "env")]
    return sorted({*keys, *(text(one, "configMapRef", "name") for one in entries(container, "envFrom"))} - {""})


def environment(container, maps):
    """({name: value, or {from: where it comes from}}, names that no ConfigMap could be read for).

    ``maps`` has the data of each ConfigMap, {} of one that does not exist, and leaves out those that could not be read.
    """
    found, hidden = {}, []
    for one in entries(container, "envFrom"):
        prefix, name = text(one, "prefix"), text(one, "configMapRef", "name")
        found.update({prefix + key: _shown(prefix + key, value) for key, value in (maps.get(name) or {}).items() if isinstance(value, str)})
        hidden += [name] if name and name not in maps else []
    for one in entries(container, "env"):
        name, source = text(one, "name"), mapping(one, "valueFrom")
        if name:
            found[name] = _from(name, source, maps) if source else _shown(name, text(one, "value"))
            hidden += [name] if _is_hidden(source, maps) else []
    return {name: value for name, value in found.items() if value is not None}, hidden


def _from(name, source, maps):
    """A secret is named and never shown; None for a variable that the container does not get."""
    if "configMapKeyRef" in source:
        wanted = mapping(source, "configMapKeyRef")
        value = at(maps, text(wanted, "name"), text(wanted, "key"))
        if isinstance(value, str):
            return _shown(name, value)
        return None if text(wanted, "name") in maps and at(wanted, "optional") is True else {"from": "configmap %s" % _key(wanted)}
    if "secretKeyRef" in source:
        return {"from": "secret %s" % _key(mapping(source, "secretKeyRef"))}
    if "fieldRef" in source:
        return {"from": "field %s" % text(source, "fieldRef", "fieldPath")}
    return {"from": "resource %s" % text(source, "resourceFieldRef", "resource") if "resourceFieldRef" in source else ", ".join(sorted(source))}


def _is_hidden(source, maps):
    return "configMapKeyRef" in source and text(source, "configMapKeyRef", "name") not in maps


def _key(wanted):
    return "%s key %s" % (text(wanted, "name"), text(wanted, "key"))


def _shown(name, value):
    """Somebody may have written a password where everybody can read it; it goes no further."""
    if SECRET.search(name) and not value.startswith("/"):
        return {"from": "hidden"}
    return USER.sub("//hidden@", value)


def image_version(image):
    """``3.31.0`` of ``quay.io/calico/node:v3.31.0``, also of distributors' tags such as ``v3.29.2-build20250218``; "" where the image has no such tag."""
    tag = re.search(r":v?(\d+\.\d+\.\d+)[^/@]*(?:@|$)", image)
    return tag.group(1) if tag else ""
