# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The calico-node pods as a roll-out sees them: on which node, ready or not, and what one that is not ready is at."""

from __future__ import annotations

from urllib.parse import quote

from .. import _cluster
from .._api import NoAnswerError
from .._sweep._pods import COMPONENTS, event, pod
from .._sweep._values import at, entries, mapping, text

SELECTOR = "k8s-app in (%s)" % ",".join(label for label, name in COMPONENTS.items() if name == _cluster.NODE)
# What its init containers do while nothing is wrong with them.
AT_WORK = {
    "upgrade-ipam": "looks for addresses of an earlier network to move",
    "install-cni": "puts the CNI plugin in place",
    "flexvol-driver": "puts a driver in place",
    "mount-bpffs": "mounts the BPF file system",
    "ebpf-bootstrap": "prepares eBPF",
}
GIVEN_UP = "CrashLoopBackOff"


def on_node(door, node, seconds):
    """The calico-node pods on a node, also those that are being deleted."""
    found = door.get("/api/v1/pods", {"labelSelector": SELECTOR, "fieldSelector": "spec.nodeName=%s" % node}, seconds)
    return entries(found, "items")


def of_daemonset(door, daemonset, seconds):
    """{node: its newest pod} of those that this DaemonSet has made and that are not being deleted."""
    metadata = daemonset["metadata"]
    labels = ",".join("%s=%s" % one for one in mapping(daemonset, "spec", "selector", "matchLabels").items())
    found = door.get("/api/v1/namespaces/%s/pods" % quote(metadata["namespace"], safe=""), {"labelSelector": labels}, seconds)
    mine = [one for one in entries(found, "items") if metadata["uid"] in [text(owner, "uid") for owner in entries(one, "metadata", "ownerReferences")]]
    living = [one for one in mine if text(one, "spec", "nodeName") and not is_going(one)]
    return {text(one, "spec", "nodeName"): one for one in sorted(living, key=lambda one: text(one, "metadata", "creationTimestamp"))}


def name(thing):
    return text(thing, "metadata", "name")


def uid(thing):
    return text(thing, "metadata", "uid")


def is_going(thing):
    return bool(at(thing, "metadata", "deletionTimestamp"))


def is_ready(thing):
    return not is_going(thing) and any(text(one, "type") == "Ready" and text(one, "status") == "True" for one in entries(thing, "status", "conditions"))


def crashes(thing):
    """Whether the kubelet already waits longer and longer before it starts one of the pod's containers again."""
    known = pod(thing)
    return any(one["reason"] == GIVEN_UP for one in (*known["init"], *known["containers"]))


def path(thing):
    return "/api/v1/namespaces/%s/pods/%s" % (quote(text(thing, "metadata", "namespace"), safe=""), quote(name(thing), safe=""))


def delete(door, thing, seconds, dry_run=False):
    """This very pod, and not one that has taken its name."""
    door.delete(path(thing), seconds, {"preconditions": {"uid": uid(thing)}}, dry_run=dry_run)


def doing(door, thing, seconds):
    """What a pod is at, and whether that is as it should be: ``Init:1/3, install-cni puts the CNI plugin in place``."""
    known = pod(thing)
    state = _cluster.doing(known)
    event_said = _last_event(door, thing, seconds)
    if event_said and event_said["reason"] == "Pulling":
        return "%s, its image is being pulled" % state
    current = next((one for one in known["init"] if one["state"] != "terminated" or one["exit_code"]), None)
    if current and current["state"] == "running":
        return "%s, %s %s" % (state, current["name"], AT_WORK.get(current["name"], "is at work"))
    ended = next((one["last"] for one in known["containers"] if one["last"] and one["last"]["exit_code"]), None)
    if ended and state != "Running":
        return "%s, it ended with exit code %s" % (state, ended["exit_code"])
    if event_said and event_said["type"] == "Warning":
        return "%s, %s" % (state, event_said["message"].strip()[:200])
    return "%s, it starts" % state if state == "Running" else state


def _last_event(door, thing, seconds):
    """The latest that was said about it; nothing where that cannot be read."""
    query = {"fieldSelector": "involvedObject.kind=Pod,involvedObject.name=%s" % name(thing)}
    try:
        found = door.get("/api/v1/namespaces/%s/events" % quote(text(thing, "metadata", "namespace"), safe=""), query, seconds)
    except NoAnswerError:
        return None
    return max(map(event, entries(found, "items")), key=lambda one: one["last"] or 0, default=None)
