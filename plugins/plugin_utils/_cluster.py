# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The cluster's document read as an operator reads it: which pod is the node's, since when, and what was said about it."""

from __future__ import annotations

import functools

from ._addresses import interface_of, once
from ._same import Same

NODE, TYPHA, PROXY = "calico-node", "calico-typha", "kube-proxy"


def now(cluster):
    """The API server's clock, by which most of the document's times were written; else the controller's."""
    taken = cluster.get("taken") or {}
    return next((taken[name] for name in ("server_time", "at") if is_number(taken.get(name))), None)


def age(cluster, when):
    """Seconds since then, None where either is not known."""
    at = now(cluster)
    return max(0.0, at - when) if is_number(at) and is_number(when) else None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def younger(cluster, when, seconds):
    """Whether something is known to have happened within so many seconds."""
    passed = age(cluster, when)
    return passed is not None and passed < seconds


def pods(holder, component):
    """The pods of a component, of the cluster or of one Node, the newest first; those that are being deleted are no longer its."""
    found = [pod for pod in holder.get("pods") or [] if pod["component"] == component and not pod.get("deleting")]
    return sorted(found, key=lambda pod: -(pod.get("created") or 0))


def runs(cluster, component):
    """Whether any pod of a component is in the cluster."""
    return component in _components(Same((cluster.get("pods"),)))


@functools.lru_cache(4)
def _components(same):
    return {pod["component"] for pod in same[0] or [] if not pod.get("deleting")}


def pod_of(node, component=NODE):
    return next(iter(pods(node, component)), None)


def container(pod):
    """The container that the pod is about; others help it."""
    named = [one for one in pod.get("containers") or [] if one["name"] == pod["component"]]
    return (named or pod.get("containers") or [None])[0]


def ended_at(main):
    """When a container, or the one before it, has ended at the latest; None where that is not known.

    Of the one before it nothing may be left: where a start takes long, the kubelet clears the dead one away, since the new one
    that is created and does not run yet is newer.
    """
    if main.get("state") == "terminated":
        return main.get("since")
    ended = (main.get("last") or {}).get("until")
    return main.get("since") if ended is None and main.get("restarts") else ended


def ended_lately(cluster, main, seconds):
    """Whether a container has ended within so many seconds: one that waits to run again just has."""
    waits = main.get("state") == "waiting" and (main.get("restarts") or main.get("reason") == "CrashLoopBackOff")
    return bool(waits) or younger(cluster, ended_at(main), seconds)


def events(holder, pod):
    """What was said about a pod, the latest first."""
    found = [one for one in holder.get("events") or [] if (one["kind"], one.get("namespace"), one["name"]) == ("Pod", pod["namespace"], pod["name"])]
    return sorted(found, key=lambda one: -(one.get("last") or 0))


def condition(node, name):
    return (node.get("conditions") or {}).get(name) or {}


def is_ready(node):
    """True, False, or None where the Node has no such condition yet."""
    status = condition(node, "Ready").get("status")
    return None if status is None else status == "True"


@once
def address(text):
    """An address as Python knows it, of ``10.0.0.1/24`` or ``fd00::1``; None for anything else."""
    try:
        return interface_of(str(text)).ip if text else None
    except ValueError:
        return None


def registered(node):
    """The addresses that Calico keeps for a Node, by family."""
    held = node.get("calico") or {}
    return {one.version: one for one in (address(held.get("ipv4")), address(held.get("ipv6"))) if one}


def internal(node):
    return [one for one in map(address, node.get("internal_ips") or []) if one]


def held_by(links):
    """{address: link name} of what a machine's links hold; nothing where they were not read."""
    found = {}
    for link in (links or {}).get("links", []):
        for held in link["addresses"]:
            one = address(held["ip"])
            if one:
                found[one] = link["name"]
    return found


def span(seconds):
    for size, name in ((86400, "days"), (3600, "hours"), (60, "min")):
        if seconds >= 2 * size:
            return "%d %s" % (seconds // size, name)
    return "%d s" % seconds


def listed(names, most=4):
    """``n1, n2 and 5 more``"""
    names = [str(name) for name in names]
    more = len(names) - most
    if more > 0:
        return "%s and %d more" % (", ".join(names[:most]), more)
    return " and ".join(part for part in (", ".join(names[:-1]), "".join(names[-1:])) if part)


def doing(pod):
    """What kubectl shows as the pod's status: ``Init:0/3``, ``CrashLoopBackOff``, ``Running``."""
    init = pod.get("init") or []
    for number, one in enumerate(init):
        if one.get("state") == "terminated" and not one.get("exit_code"):
            continue
        reason = one.get("reason") or ""
        if one.get("state") in ("terminated", "waiting") and reason not in ("", "PodInitializing"):
            return "Init:" + reason
        return "Init:%d/%d" % (number, len(init))
    stopped = [one for one in pod.get("containers") or [] if one.get("state") in ("waiting", "terminated")]
    return next((one["reason"] for one in stopped if one.get("reason")), pod.get("phase") or "")
