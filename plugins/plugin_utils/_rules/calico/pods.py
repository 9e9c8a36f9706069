# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Why a pod of Calico's does not come up, or does not stay up: the same picture has several causes, told apart by evidence."""

from __future__ import annotations

import re

from ... import _cluster
from ..._outliers import standings
from ..._policy import threshold
from .._asked import causes
from .._rule import across, by_hand, fail, of_cluster, passed, proven, rule, skip, unknown, warn
from ..cluster import service_silent
from ._sessions import SETTLING
from ._words import ended_early, explained, lines_of, logs_of

INIT = threshold("calico_init_s", 180.0, "Seconds after which calico-node is said to be stuck in one of its init containers.")
PULL = threshold("calico_pull_s", 600.0, "Seconds that pulling an image of Calico's may take.")
LATELY = threshold("calico_restarted_s", 1800.0, "Seconds after a restart of a pod of Calico's within which it counts as still unstable.")
RESTARTS = threshold("calico_restarts", 3, "Restarts of a container from which on a recent one is no single accident.")
UNREADY = threshold("calico_unready_s", 300.0, "Seconds for which a running pod of Calico's may be not ready.")
PER_TYPHA = threshold("nodes_per_typha", 200, "Nodes that one Typha can serve.")

CALICO = ("calico-node", "calico-typha", "calico-kube-controllers", "tigera-operator")
LOGS = "kubectl -n %(namespace)s logs %(pod)s -c %(container)s"

# -- init containers ---------------------------------------------------------------------------------------------------

NO_IMAGE = re.compile("Image|Registry|SignatureValidation")
FROM_RUNTIME = re.compile(
    r"FailedCreatePodSandBox|context deadline exceeded|DeadlineExceeded|failed to reserve (sandbox|container) name|failed to create (shim|containerd)"
    r"|Cannot connect to the Docker daemon|connection error|transport is closing|RunContainerError|CreateContainerError"
)
API_PATH = re.compile(r"dial tcp \S+: (i/o timeout|connect: )|Unable to create token for CNI kubeconfig|TLS handshake timeout|Client\.Timeout exceeded")
LEFT_OVER = "k8s-pod-network"
RUNTIME_RULES = ("runtime.docker_cannot_reach_containerd", "runtime.unresponsive", "runtime.blocked_tasks")
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
    at, current = _initialising(pod)
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
    about = {**_of(pod, current), "init": at, "for_s": lasted and round(lasted), "cause": cause, **_services(cluster)}
    return fail("%s, in %s: %s" % (where, current["name"], words), remedy or INIT_REMEDIES[cause], **{**about, **evidence})


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


def _initialising(pod):
    """(its number, the init container that has not ended well), or none of both."""
    for number, one in enumerate((pod or {}).get("init") or []):
        if one.get("state") != "terminated" or one.get("exit_code"):
            return number, one
    return None, None


def _is_pulling(story):
    pulls = [one for one in story.events if one.get("reason") in ("Pulling", "Pulled", "Failed", "BackOff")]
    return bool(pulls) and pulls[0]["reason"] == "Pulling" and _cluster.younger(story.cluster, pulls[0].get("last"), story.policy[PULL])


def _image(story):
    reason = story.current.get("reason") or ""
    if story.current["state"] == "waiting" and NO_IMAGE.search(reason):
        return "image", "%s: %s" % (reason, story.current.get("message") or "the image cannot be had"), None, {"image": story.current.get("image")}
    return None


def _runtime(story):
    found = causes(RUNTIME_RULES, story.facts, story.policy)
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
    if story.current["name"] != "upgrade-ipam" or story.current["state"] != "running" or (story.ipam is not None and left is None):
        return None
    if left is None:
        words = "its migration of host-local addresses does not end, or the runtime hangs; which of them, only the node itself can tell: read it too"
        return "ipam_migration", words, INIT_REMEDIES["unknown"], {}
    words = "its migration of the %d addresses in /var/lib/cni/networks/%s does not end, and is tried again every second for ever" % (
        left["entries"],
        LEFT_OVER,
    )
    return "ipam_migration", words + explained(story.logs), None, {"entries": left["entries"], "routed": left["routed"]}


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
    if (story.current["name"], story.current["state"]) == ("upgrade-ipam", "running") and story.ipam is not None and _left_over(story.ipam) is None:
        slow = causes(("runtime.slow", "runtime.docker_cannot_reach_containerd"), story.facts, story.policy, statuses=("warn",))
        words = "there is nothing to migrate on %s, so it should have ended at once: look at the container runtime" % story.node["name"]
        return "runtime", words + "".join("; " + one.verdict.message for one in slow[:1]), INIT_REMEDIES["unknown"], {}
    return None


def _unexplained(story):
    words = "nothing that was read explains it" + ("" if story.facts["runtime"] else "; the node itself was not read")
    return "unknown", words, None, {}


CAUSES = (_image, _runtime, _kubelet_silent, _api_path, _migration, _runtime_by_events, _mount, _crash, _started_nothing, _unexplained)


def _services(cluster):
    """Where pods reach the API server, and where it really is."""
    kubernetes = (cluster.get("services") or {}).get("kubernetes") or {}
    found = {"service": "%s:%s" % (kubernetes["ip"], kubernetes.get("port", 443))} if kubernetes.get("ip") else {}
    return {**found, **({"endpoint": kubernetes["endpoints"][0]} if kubernetes.get("endpoints") else {})}


def _of(pod, container):
    return {"pod": pod["name"], "namespace": pod["namespace"], "container": container["name"], "restarts": container.get("restarts")}


# -- killed while it starts --------------------------------------------------------------------------------------------

KILLED = re.compile(r"failed liveness probe|Liveness probe failed")
REFUSED = re.compile(r"9099\S*:? .*(connection refused|Client\.Timeout|deadline exceeded)", re.DOTALL)
DRAIN = by_hand(
    "kubectl drain %(node)s --ignore-daemonsets --delete-emptydir-data  # then reboot it, and: kubectl uncordon %(node)s; what made the load: see load.outlier",
    disruptive=True,
    reboot=True,
)


@across(
    "calico.overloaded_node",
    "calico-node is killed while it starts, because its node is overloaded",
    needs="cluster.node",
    uses=("cluster", "load", "calico.logs"),
    remedy=DRAIN,
)
def overloaded_node(nodes, policy):
    """On a node with many times the others' load calico-node starts too slowly for its liveness probe, and is killed before Felix answers on 9099.

    Its log then simply ends, often after "Using node name:", and equals a healthy node's: a short log is a symptom of being
    killed. Restarting the pod does not help; taking the load away does.
    """
    killed = {name: _killed(node, cluster, policy) for name, (node, cluster, _load, _logs) in nodes.items()}
    if not any(killed.values()):
        return {}
    loads = {name: load for name, (_node, _cluster, load, _logs) in nodes.items() if load}
    found, _left_out = standings(loads, policy)
    said = {}
    for name, (pod, line) in ((name, one) for name, one in killed.items() if one):
        _node, cluster, load, logs = nodes[name]
        why = [one.reason for one in found if one.node == name and one.stands_out]
        why = why or [one.verdict.message for one in causes(("load.saturated",), {"load": load or {}}, policy)]
        if why:
            said[name] = _starved(pod, line, why, cluster, logs_of(logs, pod, _cluster.NODE))
        else:
            said[name] = unknown("its load was not read") if not load else passed("its liveness probe kills it, but the node is not overloaded")
    return said


def _killed(node, cluster, policy):
    """(its calico-node, what the kubelet said) where a liveness probe ended it lately."""
    pod = _cluster.pod_of(node)
    main = _cluster.container(pod) if pod else None
    last = (main or {}).get("last") or {}
    if not main or not (_cluster.younger(cluster, last.get("until"), policy[LATELY]) or main.get("reason") == "CrashLoopBackOff"):
        return None
    said = [one["message"] for one in _cluster.events(node, pod) if KILLED.search(one.get("message") or "")]
    refused = [line for line in said if REFUSED.search(line)]
    return (pod, (refused or said)[0]) if said else None


def _starved(pod, line, why, cluster, logs):
    main = _cluster.container(pod)
    until = _cluster.age(cluster, (main.get("last") or {}).get("until"))
    times = "%s was restarted %d times%s" % (pod["name"], main.get("restarts") or 0, "" if until is None else ", the last time %s ago" % _cluster.span(until))
    words = "%s, because its liveness probe gave up on it%s (%s); %s%s" % (times, _budget(cluster), _one_line(line), "; ".join(why), ended_early(logs))
    return fail(words, **_of(pod, main), says=line, load=why)


def _budget(cluster):
    one = (((cluster.get("calico") or {}).get("probes")) or {}).get("liveness") or {}
    if not all(_cluster.is_number(one.get(name)) for name in ("delay_s", "period_s", "failures")):
        return ""
    return " after %g s + %g × %g s" % (one["delay_s"], one["failures"], one["period_s"])


def _one_line(text):
    return " ".join(text.split())


# -- restarts ----------------------------------------------------------------------------------------------------------

BAD = ("CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ErrImagePull", "ImagePullBackOff", "InvalidImageName")


@rule(
    "calico.crashing",
    "A pod of Calico's does not stay up",
    needs="cluster.node",
    uses=("cluster", "calico.logs"),
    remedy=by_hand("kubectl -n %(namespace)s describe pod %(pod)s; " + LOGS + " --previous --tail=30"),
)
def crashing(node, cluster, logs, policy):
    """A container that ends again and again says why in the last lines of its log and in how it ended; exit code 137 without more words is a kill.

    A restart hours ago, and a pod that has just been made anew, are nothing to act upon.
    """
    if node.get("pods") is None:
        return unknown("the cluster's pods were not read")
    pods = [pod for name in CALICO for pod in _cluster.pods(node, name)]
    found = [_unsteady(pod, node, cluster, logs_of(logs, pod, pod["component"]), policy) for pod in pods]
    return [one for one in found if one] or proven("the pods of Calico's on it stay up")


def _unsteady(pod, node, cluster, logs, policy):
    main = _cluster.container(pod)
    if main is None or _initialising(pod)[1] is not None:
        return None
    last = main if main.get("state") == "terminated" else main.get("last") or {}
    lately = _cluster.younger(cluster, last.get("until"), policy[LATELY])
    evidence = {**_of(pod, main), "exit_code": last.get("exit_code"), "signal": last.get("signal"), "reason": last.get("reason")}
    if main.get("reason") in BAD or (lately and (main.get("restarts") or 0) >= policy[RESTARTS]):
        said = "%s was restarted %d times and is in %s" % (pod["name"], main.get("restarts") or 0, _cluster.doing(pod))
        return fail("%s; %s%s" % (said, _end(last, main, node, pod), explained(logs)), **evidence)
    return _not_ready(pod, main, node, cluster, logs, evidence, policy)


def _end(last, main, node, pod):
    """How it ended, as far as that tells why."""
    killed = next((one["message"] for one in _cluster.events(node, pod) if KILLED.search(one.get("message") or "")), None)
    if last.get("reason") == "OOMKilled":
        return "it was killed for want of memory: raise its memory limit"
    if killed:
        return "its liveness probe ended it (%s)" % _one_line(killed)
    if last.get("exit_code") is not None:
        return "it ended with exit code %s%s" % (last["exit_code"], " (%s)" % last["reason"] if last.get("reason") not in (None, "", "Error") else "")
    return main.get("message") or "nothing tells how it ended"


def _not_ready(pod, main, node, cluster, logs, evidence, policy):
    """One that runs for long and is not ready, for another reason than its peers."""
    if pod.get("ready") or main.get("state") != "running" or _cluster.is_ready(node) is False or _cluster.younger(cluster, main.get("since"), policy[UNREADY]):
        return None
    said = next((one["message"] for one in _cluster.events(node, pod) if one.get("reason") == "Unhealthy"), None)
    if said and "BGP not established" in said:
        return None
    since = _cluster.age(cluster, main.get("since"))
    ran = "" if since is None else " for %s" % _cluster.span(since)
    return warn("%s runs%s and is not ready: %s%s" % (pod["name"], ran, _one_line(said or "nothing tells why"), explained(logs)), says=said, **evidence)


# -- Typha -------------------------------------------------------------------------------------------------------------


@of_cluster(
    "calico.typha",
    "Typha does not serve all nodes",
    needs=("cluster.calico", "cluster.pods", "cluster.nodes"),
    uses="cluster",
    remedy=by_hand("kubectl -n %(namespace)s get pods -l k8s-app=calico-typha -o wide; one that is stuck: kubectl -n %(namespace)s delete pod %(pod)s"),
)
def typha(calico, pods, nodes, cluster, policy):
    """Felix on every node gets all it knows from a Typha; without one calico-node does not become ready, and new pods stay without a network.

    A Typha on a node that is NotReady may hold connections that are dead, so that the nodes behind it learn nothing new.
    """
    deployment = calico.get("typha")
    wanted = (calico.get("env") or {}).get("FELIX_TYPHAK8SSERVICENAME")
    if not deployment or not deployment.get("desired"):
        if isinstance(wanted, str) and wanted not in ("", "none"):
            return fail("calico-node is told to use the service %s, but no Typha is to run" % wanted, _scale(), namespace=_namespace(calico), wanted=wanted)
        return skip("this installation uses no Typha")
    running = _cluster.pods(cluster, _cluster.TYPHA)
    evidence = {"namespace": deployment["namespace"], "desired": deployment["desired"], "ready": deployment.get("ready") or 0}
    lost = _on_lost_nodes(running, nodes)
    waiting = [pod for pod in running if not pod.get("ready") and not _cluster.younger(cluster, pod.get("created"), policy[SETTLING]) and pod not in lost]
    if not evidence["ready"] and (waiting or lost or not running):
        ill = (waiting or lost or [{}])[0]
        shown = "%s is in %s" % (ill["name"], _cluster.doing(ill)) if ill else "there is no pod of it"
        return fail("none of %d is ready: %s" % (evidence["desired"], shown), pod=ill.get("name"), **evidence)
    found = [
        warn("%s is on %s, which is NotReady: nodes connected to it may learn nothing new" % (pod["name"], pod["node"]), pod=pod["name"], **evidence)
        for pod in lost
    ]
    found += [warn(_lacking(pod), pod=pod["name"], **evidence) for pod in waiting]
    if len(nodes) > policy[PER_TYPHA] * max(1, evidence["ready"]):
        said = "%d nodes share %d Typhas; one can serve %d" % (len(nodes), evidence["ready"], policy[PER_TYPHA])
        found.append(warn(said, _scale(), **evidence))
    return found or passed("%d of %d are ready" % (evidence["ready"], evidence["desired"]))


def _on_lost_nodes(pods, nodes):
    ill = {node["name"] for node in nodes if _cluster.is_ready(node) is False}
    return [pod for pod in pods if pod.get("node") in ill]


def _lacking(pod):
    if not pod.get("node"):
        return "%s has no node: two of them cannot share one, so fewer nodes than replicas take it" % pod["name"]
    return "%s on %s is not ready (%s)" % (pod["name"], pod["node"], _cluster.doing(pod))


def _scale():
    return by_hand("kubectl -n %(namespace)s scale deployment calico-typha --replicas=3  # where an operator runs Calico, it does that by itself")


def _namespace(calico):
    return (calico.get("daemonset") or {}).get("namespace") or (calico.get("install") or {}).get("namespace") or "kube-system"
