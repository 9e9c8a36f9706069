"""The cluster's network: kube-proxy as kubeadm deploys it, and Calico by upstream's manifest, unchanged."""

from __future__ import annotations

import json
import re

from . import autodetect
from .calico import VERSION, Calico
from .control_plane import ADDRESS, PODS, ControlPlane
from .guest import Guest
from .shell import LabError, say, wait_until

NAMESPACE = "kube-system"
# The manifest's pods read this optional ConfigMap into their environment, so what the lab needs goes there and not into the manifest.
SETTINGS = {
    "KUBERNETES_SERVICE_HOST": ADDRESS,  # Calico's start need not wait for kube-proxy
    "KUBERNETES_SERVICE_PORT": "6443",
    "FELIX_IPTABLESBACKEND": "Legacy",  # the guests' kernel has no nf_tables for IPv4
    "FELIX_XDPENABLED": "false",
    "FELIX_DebugSkipCTLBCleanup": "true",  # a build without C has no eBPF; read in exactly this case
    "FELIX_MTUIFACEPATTERN": "^(vec|eth).*",
}
# Without encapsulation, because Debian's BIRD cannot route into Calico's IPIP tunnel. Calico makes a pool only where it finds none.
POOL = {
    "apiVersion": "crd.projectcalico.org/v1",
    "kind": "IPPool",
    "metadata": {"name": "default-ipv4-ippool"},
    "spec": {"cidr": PODS, "ipipMode": "Never", "vxlanMode": "Never", "natOutgoing": True, "blockSize": 26, "nodeSelector": "all()"},
}
DAEMONS = {"calico-node": "k8s-app=calico-node", "kube-proxy": "k8s-app=kube-proxy"}
OLD_PLACE = "/opt/nodecare-lab"
READY_LIMIT = 900  # the probes are upstream's; on a busy machine a node with Calico takes minutes


def apply(plane: ControlPlane, calico: Calico) -> None:
    """Ask the API server for all of it; it can be called before there is a node."""
    plane.add_kube_proxy()
    define(plane, calico)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubernetes-services-endpoint", "namespace": NAMESPACE}, "data": SETTINGS}
    plane.ask(*APPLY, stdin="---\n".join([*_documents(calico, definitions=False), json.dumps(settings) + "\n"]))
    say("Calico v%s is asked for" % VERSION)


def define(plane: ControlPlane, calico: Calico) -> None:
    """Calico's kinds, and the pool of addresses."""
    plane.ask(*APPLY, stdin="---\n".join(_documents(calico, definitions=True)))
    plane.ask("wait", "--for=condition=Established", "--timeout=120s", "crd/ippools.crd.projectcalico.org")
    plane.ask(*APPLY, stdin=json.dumps(POOL))


def _documents(calico: Calico, definitions: bool) -> list[str]:
    documents = [one for one in re.split(r"(?m)^---\n", calico.manifest.read_text()) if one.strip()]
    return [one for one in documents if bool(re.search(r"(?m)^kind: CustomResourceDefinition$", one)) == definitions]


APPLY = ("apply", "--server-side", "--force-conflicts", "--filename=-")


def old_start(plane: ControlPlane, lab: list[Guest]) -> None:
    """Start-up and the address monitor of an older Calico, which still take a docker bridge's address, under its image's name; the rest stays.

    A pod gets it only when it is deleted, so that each node can be made to fall when a story wants it to.
    """
    program = autodetect.calico_node_322()
    image = "quay.io/calico/node:v%s"
    for guest in lab:
        guest.put(program, "%s/calico-node" % OLD_PLACE)
        guest.do("ctr", "-n", "k8s.io", "images", "tag", "--force", image % VERSION, image % autodetect.OLD)
    shell = "sed -i 's#calico-node -startup#%(new)s -startup#' /etc/rc.local; sed -i 's#calico-node -monitor#%(new)s -monitor#' %(monitor)s; exec start_runit"
    container = {
        "name": "calico-node",
        "image": image % autodetect.OLD,
        "command": ["sh", "-c", shell % {"new": OLD_PLACE + "/calico-node", "monitor": "/etc/service/available/monitor-addresses/run"}],
        "volumeMounts": [{"name": "old-start", "mountPath": OLD_PLACE}],
    }
    pod = {"containers": [container], "volumes": [{"name": "old-start", "hostPath": {"path": OLD_PLACE}}]}
    patch = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}, "template": {"spec": pod}}}
    plane.ask("-n", NAMESPACE, "patch", "daemonset", "calico-node", "--patch", json.dumps(patch))
    say("the next calico-node pod on each node starts as Calico v%s did; delete one to see it" % autodetect.OLD)


def wait(plane: ControlPlane, nodes: list[str]) -> float:
    """Until the daemons are ready on all nodes, and Calico's controllers somewhere; tells what it waits for when that changes."""
    told = ""

    def ready() -> bool:
        nonlocal told
        missing = _missing(plane, nodes)
        if missing and missing != told:
            say("waiting for " + missing)
            told = missing
        return not missing

    return wait_until("Calico on %s" % ", ".join(nodes), ready, READY_LIMIT, every=1)


def _missing(plane: ControlPlane, nodes: list[str]) -> str:
    try:
        pods = json.loads(plane.ask("-n", NAMESPACE, "get", "pods", "-o", "json", "--request-timeout=30s"))["items"]
    except LabError:
        return "the API server to answer"
    words = []
    for node in nodes:
        lacking = [name for name, label in DAEMONS.items() if not any(_is_ready(pod) for pod in pods if _labelled(pod, label) and _node_of(pod) == node)]
        words += ["%s on %s" % (" and ".join(lacking), node)] if lacking else []
    if not any(_is_ready(pod) for pod in pods if _labelled(pod, "k8s-app=calico-kube-controllers")):
        words.append("calico-kube-controllers")
    return ", ".join(words)


def _labelled(pod: dict, label: str) -> bool:
    key, value = label.split("=")
    return pod["metadata"]["labels"].get(key) == value


def _node_of(pod: dict) -> str | None:
    return pod["spec"].get("nodeName")


def _is_ready(pod: dict) -> bool:
    gone = pod["metadata"].get("deletionTimestamp")
    return not gone and any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
