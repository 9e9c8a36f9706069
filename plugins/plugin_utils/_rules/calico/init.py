# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Why calico-node does not get through its init containers: the same picture has several causes, told apart by evidence."""

from __future__ import annotations

import re

from ... import _cluster
from ..._policy import threshold
from .._asked import causes
from .._rule import by_hand, fail, proven, rule, skip
from ..cluster import service_silent
from ._words import LOGS, about, explained, initialising, lines_of, logs_of
from .datastore import LEFT_OVER

INIT = threshold("calico_init_s", 180.0, "Seconds after which calico-node is said to be stuck in one of its init containers.")
PULL = threshold("calico_pull_s", 600.0, "Seconds that pulling an image of Calico's may take.")

NO_IMAGE = re.compile("Image|Registry|SignatureValidation")
FROM_RUNTIME = re.compile(
    r"FailedCreatePodSandBox|context deadline exceeded|DeadlineExceeded|failed to reserve (sandbox|container) name|failed to create (shim|containerd)"
    r"|Cannot connect to the Docker daemon|connection error|transport is closing|RunContainerError|CreateContainerError"
)
API_PATH = re.compile(r"dial tcp \S+: (i/o timeout|connect: )|Unable to create token for CNI kubeconfig|TLS handshake timeout|Client\.Timeout exceeded")
SILENT = ("runtime.docker_cannot_reach_containerd", "runtime.unresponsive")
BLOCKED = ("runtime.blocked_tasks",)
INIT_REMEDIES = {
    "image": by_hand("kubectl -n %(namespace)s describe pod %(pod)s | tail -n 20; on %(node)s: crictl pull %(image)s"),
    "api_path": by_hand(
        "on %(node)s: curl -k -m 5 https://%(service)s/version; curl -k -m 5 https://%(endpoint)s/version  # where only the first fails, repair kube-proxy"
    ),
    "ipam_migration": by_hand(
        "see calico.ipam_migration of %(node)s before anything is moved away; what it says: " + LOGS + " --tail=20",
    ),
    "not_ready": by_hand("put cluster.node_not_ready of %(node)s right first"),
    "mount": by_hand("kubectl -n %(namespace)s describe pod %(pod)s | grep -A3 FailedMount"),
    "crash": by_hand(LOGS + " --previous --tail=20"),
    "unknown": by_hand("on %(node)s: crictl ps -a | grep %(container)s; journalctl -u kubelet --since -1h | grep %(pod)s; " + LOGS + " --tail=20"),
}


@rule(
    "calico.init_stuck",
    "calico-node is stuck in its init containers",
    needs="cluster.node",
    uses=("cluster", "calico.logs", "runtime", "kubelet", "links.ipam", "path.api"),
)
def init_stuck(node, cluster, logs, runtime, kubelet, ipam, api, policy):
    """Init:0/3 looks the same whether the image cannot be had, the runtime hangs, the API server is not reached or an IPAM migration loops.

    So it is told apart: by what the runtime answers on the node, by the containers' own words, by the left-over directory without
    which upgrade-ipam ends at once, and by the kubelet's events.
    """
    pod = _cluster.pod_of(node)
    at, current = initialising(pod)
    if current is None:
        return proven("its init containers have ended" if pod else "no calico-node is on it")
    lasted = _cluster.age(cluster, current.get("since") if current["state"] == "running" else pod.get("created"))
    if lasted is not None and lasted < policy[INIT]:
        return skip("calico-node has been initialising for %s only" % _cluster.span(lasted))
    story = _Story(
        node,
        cluster,
        pod,
        current,
        logs_of(logs, pod, current["name"]),
        {"runtime": runtime or {}, "kubelet": kubelet or {}},
        ipam,
        service_silent(cluster, api),
        policy,
    )
    if _is_pulling(story):
        return skip("the image of %s is being pulled" % current["name"])
    cause, words, remedy, evidence = next(filter(None, (look(story) for look in CAUSES)))
    where = "%s is at %s" % (pod["name"], _cluster.doing(pod)) + ("" if lasted is None else " for %s" % _cluster.span(lasted))
    known = {**about(pod, current), "init": at, "for_s": lasted and round(lasted), "cause": cause, **_services(cluster)}
    return fail("%s, in %s: %s" % (where, current["name"], words), remedy or INIT_REMEDIES[cause], **{**known, **evidence})


class _Story:
    """What is known about one pod that does not get on."""

    def __init__(self, node, cluster, pod, current, logs, facts, ipam, silent, policy):
        self.node, self.cluster, self.pod, self.current, self.policy = node, cluster, pod, current, policy
        self.logs, self.facts, self.ipam, self.silent = logs, facts, ipam, silent
        self.events = _cluster.events(node, pod)

    def said(self, pattern):
        """The latest event, message or line of a log that matches."""
        last = self.current.get("last") or {}
        texts = [*lines_of(self.logs), *(one.get("message") or "" for one in self.events), self.current.get("message") or "", last.get("message") or ""]
        return next((text for text in texts if pattern.search(text)), None)


def _is_pulling(story):
    pulls = [one for one in story.events if one.get("reason") in ("Pulling", "Pulled", "Failed", "BackOff")]
    return bool(pulls) and pulls[0]["reason"] == "Pulling" and _cluster.younger(story.cluster, pulls[0].get("last"), story.policy[PULL])


def _image(story):
    reason = story.current.get("reason") or ""
    if story.current["state"] == "waiting" and NO_IMAGE.search(reason):
        return "image", "%s: %s" % (reason, story.current.get("message") or "the image cannot be had"), None, {"image": story.current.get("image")}
    return None


def _runtime(story):
    return _runtime_by(SILENT, story)


def _runtime_blocked(story):
    """One of its tasks may wait for the kernel while the others do their work, so that better evidence comes first."""
    return _runtime_by(BLOCKED, story)


def _runtime_by(rules, story):
    found = causes(rules, story.facts, story.policy)
    if not found:
        return None
    evidence = {**found[0].verdict.evidence, "because": found[0].rule_id}
    return "runtime", "the container runtime of %s is stuck: %s" % (story.node["name"], found[0].verdict.message), found[0].remedy, evidence


def _kubelet_silent(story):
    ready = _cluster.condition(story.node, "Ready")
    if ready.get("status") != "Unknown":
        return None
    return "not_ready", "what the API server knows of it is old: %s" % (ready.get("message") or ready.get("reason")), None, {}


def _api_path(story):
    line = story.said(API_PATH) or story.silent
    if not line:
        return None
    more = "; the left-over directory of an earlier network is not the cause, but moves nothing until the API server answers" if _left_over(story.ipam) else ""
    return "api_path", "it does not reach the API server from this node: %s%s" % (line, more), None, {"line": line}


def _migration(story):
    left = _left_over(story.ipam)
    if not left or not _is_upgrading(story):
        return None
    words = "its migration of the %d addresses in /var/lib/cni/networks/%s does not end, and is tried again every second for ever" % (
        left["entries"],
        LEFT_OVER,
    )
    return "ipam_migration", words + explained(story.logs), None, {"entries": left["entries"], "routed": left["routed"]}


def _perhaps_migration(story):
    if story.ipam is not None or not _is_upgrading(story):
        return None
    words = "its migration of host-local addresses does not end, or the runtime hangs; which of them, only the node itself can tell: read it too"
    return "ipam_migration", words, INIT_REMEDIES["unknown"], {}


def _is_upgrading(story):
    return (story.current["name"], story.current["state"]) == ("upgrade-ipam", "running")


def _left_over(ipam):
    return next((one for one in ipam or [] if one["network"] == LEFT_OVER), None)


def _runtime_by_events(story):
    line = story.said(FROM_RUNTIME)
    if not line and not FROM_RUNTIME.search(story.current.get("reason") or ""):
        return None
    return "runtime", "the container runtime does not start it: %s" % (line or story.current["reason"]), INIT_REMEDIES["unknown"], {"line": line}


def _mount(story):
    event = next((one for one in story.events if one.get("reason") in ("FailedMount", "FailedAttachVolume")), None)
    return ("mount", "a volume cannot be mounted: %s" % event.get("message"), None, {}) if event else None


def _crash(story):
    ended = story.current if story.current["state"] == "terminated" else story.current.get("last") or {}
    if not ended.get("exit_code"):
        return None
    words = "it ended with exit code %s, %d times" % (ended["exit_code"], (story.current.get("restarts") or 0) + (story.current["state"] == "terminated"))
    return "crash", words + explained(story.logs), None, {"exit_code": ended["exit_code"]}


def _started_nothing(story):
    """upgrade-ipam that runs without anything to migrate does not run: the kubelet was told so by a runtime that hangs."""
    if _is_upgrading(story) and story.ipam is not None and _left_over(story.ipam) is None:
        slow = causes(("runtime.slow", "runtime.docker_cannot_reach_containerd"), story.facts, story.policy, statuses=("warn",))
        words = "there is nothing to migrate on %s, so it should have ended at once: look at the container runtime" % story.node["name"]
        return "runtime", words + "".join("; " + one.verdict.message for one in slow[:1]), INIT_REMEDIES["unknown"], {}
    return None


def _unexplained(story):
    words = "nothing that was read explains it" + ("" if story.facts["runtime"] else "; the node itself was not read")
    return "unknown", words, None, {}


CAUSES = (
    _image,
    _runtime,
    _kubelet_silent,
    _api_path,
    _migration,
    _runtime_blocked,
    _perhaps_migration,
    _runtime_by_events,
    _mount,
    _crash,
    _started_nothing,
    _unexplained,
)


def _services(cluster):
    """Where pods reach the API server, and where it really is."""
    kubernetes = (cluster.get("services") or {}).get("kubernetes") or {}
    found = {"service": "%s:%s" % (kubernetes["ip"], kubernetes.get("port", 443))} if kubernetes.get("ip") else {}
    return {**found, **({"endpoint": kubernetes["endpoints"][0]} if kubernetes.get("endpoints") else {})}
