# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The cluster: which nodes are not ready and why, whether services are reached, and whether the API server could be asked."""

from __future__ import annotations

import re

from .. import _cluster
from .._policy import threshold
from ._asked import causes
from ._rule import by_hand, fail, of_cluster, passed, proven, rule, skip, unknown, warn

YOUNG = threshold("node_young_s", 300.0, "Seconds after a node has joined within which it need not be ready yet.")
NOT_READY = threshold("not_ready_percent", 30.0, "Percent of the nodes from which on their being NotReady has a common cause.")
GONE = threshold("node_gone_s", 86400.0, "Seconds after which a Node that is NotReady, and whose machine was not read, may be one that is gone.")

# -- nodes that are not ready ------------------------------------------------------------------------------------------

# What keeps a kubelet from telling that it is well, the surest first.
ON_THE_NODE = (
    "kubelet.refuses_swap",
    "kubelet.certificate",
    "runtime.unresponsive",
    "runtime.docker_cannot_reach_containerd",
    "runtime.cri_disabled",
    "runtime.blocked_tasks",
    "kubelet.down",
    "load.memory",
    "load.disk",
    "load.saturated",
)
NO_NETWORK = re.compile(r"NetworkPluginNotReady|cni (plugin|config)|network plugin", re.IGNORECASE)
REMEDIES = {
    "machine": by_hand(
        "ping -c 3 %(address)s; ssh %(address)s systemctl status kubelet  # or its console; if it is gone: kubectl delete node %(kubernetes_node)s"
    ),
    "api_path": by_hand("on %(node)s: curl -k -m 5 https://%(server)s/healthz; journalctl -u kubelet --since -15min --no-pager | grep -iE 'error|fail' | tail"),
    "calico": by_hand(
        "kubectl get pods -A -o wide --field-selector spec.nodeName=%(kubernetes_node)s | grep calico; see calico.init_stuck and calico.crashing"
    ),
}


@rule(
    "cluster.node_not_ready",
    "The node is not ready",
    needs="cluster.node",
    uses=("cluster", "swap", "kubelet", "runtime", "load", "path.api", "taken"),
    remedy=REMEDIES["api_path"],
)
def node_not_ready(node, cluster, swap, kubelet, runtime, load, api, taken, policy):
    """A node that is NotReady takes no pods, its pods get no requests, and after five minutes they are moved away.

    "Kubelet stopped posting node status" has many causes: a kubelet that refuses swap or whose certificate has expired, a runtime
    that hangs, an overload, a machine that is off. What is found on the node itself is named.
    """
    evidence = _about(node, cluster)
    if _cluster.is_ready(node) is not False or _cluster.younger(cluster, node.get("created"), policy[YOUNG]):
        return _ready_or_young(node, cluster, evidence, policy)
    said = _cluster.condition(node, "Ready")
    words = "NotReady%s (%s)" % (_since(cluster, said), said.get("message") or said.get("reason") or "without a reason")
    if node.get("unschedulable"):
        words += "; it is cordoned: perhaps somebody is at work on it"
    if NO_NETWORK.search("%s %s" % (said.get("reason"), said.get("message"))):
        return fail("%s: %s" % (words, _calico_on(node)), REMEDIES["calico"], because="calico", **evidence)
    facts = {"swap": swap or {}, "kubelet": kubelet or {}, "runtime": runtime or {}, "load": load or {}}
    found, silent = causes(ON_THE_NODE, facts, policy), _no_server(api)
    if found:
        first = found[0]
        return fail("%s: %s" % (words, first.verdict.message), first.remedy, **{**first.verdict.evidence, **evidence, "because": first.rule_id})
    if silent:
        return fail("%s: its kubelet does not reach the API server: %s" % (words, silent), because="api_path", **evidence)
    return _unexplained(node, cluster, said, words, evidence, taken, policy)


def _ready_or_young(node, cluster, evidence, policy):
    if _cluster.is_ready(node):
        return _without_network(node, cluster, evidence, policy) or proven("it is Ready")
    if _cluster.younger(cluster, node.get("created"), policy[YOUNG]):
        return skip("it joined %s ago" % _cluster.span(_cluster.age(cluster, node["created"])))
    return unknown("its Node says nothing about being ready")


def _about(node, cluster):
    said = _cluster.condition(node, "Ready")
    address = next(iter(node.get("internal_ips") or []), node["name"])
    server = (cluster.get("taken") or {}).get("server")
    return {"kubernetes_node": node["name"], "address": address, "server": server, **{key: said.get(key) for key in ("reason", "since", "heartbeat")}}


def _since(cluster, condition):
    passed_s = _cluster.age(cluster, condition.get("since"))
    return "" if passed_s is None else " for %s" % _cluster.span(passed_s)


def _unexplained(node, cluster, said, words, evidence, taken, policy):
    silent, lasts = said.get("status") == "Unknown", _cluster.age(cluster, said.get("since"))
    verdict = warn if node.get("unschedulable") else fail
    if taken is not None:
        where = (
            "nothing that was read on the node explains it; its way to the API server is left" if silent else "nothing that was read on the node explains it"
        )
        return verdict("%s: %s" % (words, where), because="api_path" if silent else "unknown", **evidence)
    if lasts is not None and lasts >= policy[GONE]:
        return verdict("%s: its machine was not read in this run, and may be gone" % words, REMEDIES["machine"], because="gone", **evidence)
    where = "the machine is off or cut off, or its kubelet is down; it was not read in this run" if silent else "the node itself was not read in this run"
    return verdict("%s: %s" % (words, where), REMEDIES["machine"], because="machine", **evidence)


def _no_server(api):
    """How the API server that the kubelet is told to use does not answer this node."""
    met = [one for one in api or [] if one.get("state") != "answered" and one.get("from") != "targets"]
    return _failed(met[0]) if met else ""


def _failed(one):
    return "%s fails at the step %s%s" % (
        one["target"],
        one.get("at"),
        " (%s)" % (one.get("why") or one.get("how")) if one.get("why") or one.get("how") else "",
    )


def service_silent(cluster, api):
    """How the service address of the API server does not answer this node although a server itself does; empty where it does, or nobody asked."""
    service, measured = _service(cluster), {one["target"]: one for one in api or []}
    silent = measured.get(service)
    others = [target for target, one in measured.items() if target != service and one.get("state") == "answered"]
    if silent is None or silent.get("state") == "answered" or not others:
        return ""
    return "%s, while %s answers" % (_failed(silent), others[0])


def _service(cluster):
    """The address and port under which pods find the API server."""
    kubernetes = (cluster.get("services") or {}).get("kubernetes") or {}
    address = _cluster.address(kubernetes.get("ip"))
    if address is None:
        return None
    return "%s:%s" % ("[%s]" % address if address.version == 6 else address, kubernetes.get("port") or 443)


def _without_network(node, cluster, evidence, policy):
    """A node that is Ready, and still tainted because Calico has not said that its network is up."""
    said = _cluster.condition(node, "NetworkUnavailable")
    if said.get("status") != "True" or _cluster.younger(cluster, said.get("since"), policy[YOUNG]):
        return None
    words = "it is Ready, but takes no pods: its network is unavailable%s (%s): %s" % (_since(cluster, said), said.get("reason"), _calico_on(node))
    return fail(words, REMEDIES["calico"], because="calico", **evidence)


def _calico_on(node):
    pod = _cluster.pod_of(node)
    if pod is None:
        return "no calico-node runs on it"
    return "%s is %s" % (pod["name"], "ready" if pod.get("ready") else "in %s" % _cluster.doing(pod))


@of_cluster(
    "cluster.too_many_not_ready",
    "So many nodes are not ready that the cause is none of them",
    needs="cluster.nodes",
    uses="cluster",
    remedy=by_hand(
        "repair no single node; look at what they share: kubectl get --raw '/readyz?verbose'; the load balancer before the API servers, the network,"
        " time, certificates, and what was changed last"
    ),
)
def too_many_not_ready(nodes, cluster, policy):
    """Where many nodes become NotReady the fault is common: the API server, its load balancer, the network, an update.

    Draining or rebooting nodes one by one then makes it worse.
    """
    grown = [one for one in nodes if not _cluster.younger(cluster, one.get("created"), policy[YOUNG])]
    ill = [one for one in grown if _cluster.is_ready(one) is False]
    percent = 100 * len(ill) / max(1, len(grown))
    if len(ill) < 2 or percent < policy[NOT_READY]:
        return passed("%d of %d nodes are NotReady" % (len(ill), len(grown)))
    names = sorted(one["name"] for one in ill)
    since = sorted(when for when in (_cluster.condition(one, "Ready").get("since") for one in ill) if _cluster.is_number(when))
    together = "; it began within %s" % _cluster.span(since[-1] - since[0]) if len(since) == len(ill) else ""
    words = "%d of %d nodes are NotReady (%.0f %%; from %g %% on the cause is common): %s%s"
    return fail(words % (len(ill), len(grown), percent, policy[NOT_READY], _cluster.listed(names), together), nodes=names[:20], count=len(ill), of=len(grown))


# -- services ----------------------------------------------------------------------------------------------------------

PROXY_LOGS = by_hand("kubectl -n %(namespace)s describe pod %(pod)s; kubectl -n %(namespace)s logs %(pod)s --tail=30")
NEW_PROXY = by_hand("kubectl -n %(namespace)s delete pod %(pod)s  # it programs the node's services anew")
WITHOUT_PROXY = {"kubernetes.io/os": ("windows",), "type": ("virtual-kubelet",), "eks.amazonaws.com/compute-type": ("fargate",)}
FULL = 50  # so many services on port 443 are told


@rule("cluster.service_path", "Services are not reached from this node", needs="cluster.node", uses=("cluster", "host.ipvs", "path.api", "taken"))
def service_path(node, cluster, ipvs, api, taken, policy):
    """Pods, and calico-node's init containers before them, reach the API server through its service address, which kube-proxy programs on each node.

    Where kube-proxy does not run, that address, all services and all NodePorts of the node keep the state of its last hour of life.
    """
    if node.get("pods") is None:
        return unknown("the cluster's pods were not read")
    if not _cluster.runs(cluster, _cluster.PROXY):
        return skip("no kube-proxy pod runs in this cluster: something else serves its services")
    labels = node.get("labels") or {}
    if any(labels.get(name) in values for name, values in WITHOUT_PROXY.items()):
        return skip("kube-proxy for Linux does not run on such a node")
    pod = _cluster.pod_of(node, _cluster.PROXY)
    return _proxy(pod, node, cluster, policy) or _virtual(pod, cluster, ipvs, taken) or _measured(pod, cluster, api) or passed("kube-proxy is ready")


def _measured(pod, cluster, api):
    """The service address as it answers this node, whatever kube-proxy says of itself."""
    silent = service_silent(cluster, api)
    if not silent:
        return None
    return fail("kube-proxy is ready, but %s" % silent, NEW_PROXY, because="silent", pod=pod["name"], namespace=pod["namespace"], service=_service(cluster))


def _proxy(pod, node, cluster, policy):
    if pod is None:
        if _cluster.younger(cluster, node.get("created"), policy[YOUNG]):
            return skip("it joined %s ago" % _cluster.span(_cluster.age(cluster, node["created"])))
        said = "no kube-proxy runs on it, but on other nodes: from here the addresses of services lead nowhere"
        return fail(
            said, by_hand("kubectl get daemonsets -A -o wide | grep kube-proxy; kubectl describe node %(kubernetes_node)s"), kubernetes_node=node["name"]
        )
    main = _cluster.container(pod) or {}
    if pod.get("ready") or _cluster.younger(cluster, pod.get("created"), policy[YOUNG]):
        return None
    evidence = {"pod": pod["name"], "namespace": pod["namespace"], "restarts": main.get("restarts"), "kubernetes_node": node["name"]}
    silent = _cluster.condition(node, "Ready").get("status") == "Unknown"
    if silent or (_cluster.is_ready(node) is False and main.get("state") == "running"):
        words = "the node is NotReady: %s is no longer watched, so its services and NodePorts may not answer or lead to pods that are gone" % pod["name"]
        return warn(words, by_hand("put cluster.node_not_ready of %(node)s right"), because="node_not_ready", **evidence)
    ended = main.get("last") or {}
    how = "; it ended with exit code %s" % ended["exit_code"] if ended.get("exit_code") is not None else ""
    words = "%s is in %s after %d restarts%s: services that change are not followed here, and after a boot none is reached"
    return fail(words % (pod["name"], _cluster.doing(pod), main.get("restarts") or 0, how), PROXY_LOGS, because="kube_proxy", **evidence)


def _virtual(pod, cluster, ipvs, taken):
    """In mode ipvs the kernel's own table tells whether the API server's address leads anywhere."""
    if taken is None or (cluster.get("kube_proxy") or {}).get("mode") != "ipvs":
        return None
    evidence = {"pod": pod["name"], "namespace": pod["namespace"], "mode": "ipvs"}
    if ipvs is None:
        return warn(
            "kube-proxy is set to ipvs, but this kernel has no table of virtual services", by_hand("modprobe ip_vs && " + NEW_PROXY["manual"]), **evidence
        )
    if _service(cluster) is None:
        return None
    service = "tcp " + _service(cluster)
    servers = ipvs["https"].get(service)
    about = {**evidence, "service": service, "services": ipvs["count"], "without_servers": ipvs["empty_count"]}
    if servers == 0:
        many = "; so it is with %d of %d services" % (ipvs["empty_count"], ipvs["count"])
        return fail("the API server's address %s has no server behind it in this node's IPVS%s" % (service, many), NEW_PROXY, because="no_servers", **about)
    if servers is None and len(ipvs["https"]) < FULL:
        words = "the API server's address %s is not among the %d services of this node's IPVS" % (service, ipvs["count"])
        return fail(words, NEW_PROXY, because="no_entry", **about)
    empty = (
        "; %d of %d services have no server, as a service without a ready pod has none" % (ipvs["empty_count"], ipvs["count"]) if ipvs["empty_count"] else ""
    )
    return passed("kube-proxy is ready, and %s leads to %s servers%s" % (service, servers or "its", empty))


# -- the API server itself ---------------------------------------------------------------------------------------------

ASK = {
    "denied": by_hand("kubectl auth whoami; kubectl auth can-i list nodes  # with the same kubeconfig or token as this run"),
    "hung": by_hand("kubectl get --raw '/readyz?verbose' --request-timeout=10s; on a control plane node: crictl ps -a | grep -E 'kube-apiserver|etcd'"),
}
GIVE = by_hand("kubectl auth can-i --list  # and give this account the ClusterRole in docs/nodecare-reader.yml")


@of_cluster("cluster.unreachable", "The API server gave nothing", needs="cluster.problems", uses=("cluster.nodes", "cluster.pods", "cluster.taken"))
def unreachable(problems, nodes, pods, taken, policy):
    """An API server that is down, too slow or refuses the credentials is a finding by itself; the nodes are judged by their own facts then."""
    if nodes is not None or pods is not None:
        return proven("it answered%s" % (" (%s)" % taken["server"] if (taken or {}).get("server") else ""))
    met = [one for one in problems if one["fact"] in ("cluster", "cluster.nodes")] or problems
    kind = next((one["kind"] for one in met), "error")
    why = "; ".join(dict.fromkeys(str(one["why"]) for one in met[:3])) or "nobody knows why"
    server = (taken or {}).get("server")
    return fail("%s: %s" % (server or "the cluster", why), ASK.get(kind, ASK["hung"]), kind=kind, server=server)


@of_cluster(
    "cluster.unread", "A part of what the API server knows was not read", severity="warning", needs="cluster.problems", uses=("cluster.nodes", "cluster.pods")
)
def unread(problems, nodes, pods, policy):
    """What was not read cannot be judged: the rules that need it answer "unknown", and a fault may hide there."""
    if nodes is None and pods is None:
        return skip("nothing was read: see cluster.unreachable")
    found, kinds = [], {}
    for one in problems:
        kinds.setdefault(one["kind"], []).append(one)
    for kind, met in kinds.items():
        parts = list(dict.fromkeys(one["fact"].partition(".")[2] or one["fact"] for one in met))
        how = {"denied": "this account may not read", "hung": "the API server gave no answer for", "late": "time ran out before"}.get(
            kind, "could not be read:"
        )
        why = "; ".join(dict.fromkeys(str(one["why"]) for one in met[:2]))
        found.append(warn("%s %s (%s)" % (how, _cluster.listed(parts), why), GIVE if kind == "denied" else ASK["hung"], kind=kind, parts=parts))
    return found or proven("all that was asked for was read")
