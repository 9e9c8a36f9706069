"""What kubelets and calico-node would say of Nodes that have no machine; runs inside a lab's network.

For each node the orders (a JSON file, read anew each time) say which address it registers by which method, and with which
method or probe its calico-node does not get ready: {node: {"registers": {method: address}, "sick": method}}.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

EVERY = 0.3
HEARTBEAT = 10  # seconds, well before a Node counts as silent
SELECTOR = "k8s-app=calico-node"


def main(kubeconfig, orders):
    config.load_kube_config(kubeconfig)
    api, beaten = client.CoreV1Api(), 0.0
    while True:
        said = json.loads(Path(orders).read_text())
        try:
            if time.monotonic() - beaten > HEARTBEAT:
                beat(api, said)
                beaten = time.monotonic()
            for pod in api.list_namespaced_pod("kube-system", label_selector=SELECTOR).items:
                start(api, pod, said)
        except (ApiException, HTTPError) as error:
            print(error, file=sys.stderr)  # it was deleted, somebody else wrote, or the API server is away
        time.sleep(EVERY)


def now():
    return datetime.now(timezone.utc).isoformat()


def beat(api, nodes):
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}
    for name in nodes:
        api.patch_node_status(name, {"status": {"conditions": [ready]}})


def start(api, pod, said):
    """Once: a pod that has a status is left as it is."""
    if not pod.spec.node_name or pod.metadata.deletion_timestamp or (pod.status.phase == "Running"):
        return
    (container,) = (one for one in pod.spec.containers if one.name == "calico-node")
    method = {one.name: one.value for one in container.env}.get("IP_AUTODETECTION_METHOD") or "first-found"
    order = said[pod.spec.node_name]
    if method in order.get("registers", {}):
        annotation = {"projectcalico.org/IPv4Address": order["registers"][method]}
        api.patch_node(pod.spec.node_name, {"metadata": {"annotations": annotation}})
    sick = order.get("sick") in (method, str(container.liveness_probe.failure_threshold))
    api.patch_namespaced_pod_status(pod.metadata.name, "kube-system", {"status": crashing() if sick else running()})


def running():
    status = {"name": "calico-node", "ready": True, "restartCount": 0, "image": "x", "imageID": "x", "state": {"running": {"startedAt": now()}}}
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}], "containerStatuses": [status]}


def crashing():
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    last = {"terminated": {"exitCode": 1, "reason": "Error"}}
    status = {"name": "calico-node", "ready": False, "restartCount": 3, "image": "x", "imageID": "x", "state": waiting, "lastState": last}
    return {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now()}], "containerStatuses": [status]}


if __name__ == "__main__":
    main(*sys.argv[1:])
