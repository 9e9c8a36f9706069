"""What one sweep of a big cluster takes: cluster.py KUBECONFIG COUNT, with the API server of a lab, such as

    python3 -m lab --id big twins 1
    python3 -m lab --id big exec -- .venv/bin/python tests/bench/cluster.py ~/.cache/nodecare-lab/labs/big/control-plane/admin.conf 1000

It makes so many Nodes with the size of real ones, their leases, and a calico-node pod for each, reads them in a process of its
own, takes them away again and says what the reading took. No kubelet stands behind them: to the API server that makes no difference.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from kubernetes import client, config

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", ".collections"))

from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _sweep  # noqa: E402

NAMESPACE = "nodecare-bench"
IMAGES = 50  # a kubelet reports no more
REPOSITORY = "registry.example/platform/team-%02d/service-%02d"


def main(kubeconfig: str, count: int) -> dict:
    api = Api(kubeconfig)
    numbers = range(count)
    try:
        api.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        api.send("POST", "/api/v1/namespaces/%s/serviceaccounts" % NAMESPACE, {"metadata": {"name": "default"}})
        api.each(fill, numbers)
        again = [sys.executable, __file__, kubeconfig]
        measured = json.loads(subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True).stdout)
    finally:
        api.each(empty, numbers)
        api.send("DELETE", "/api/v1/namespaces/" + NAMESPACE)
    return measured


class Api:
    def __init__(self, kubeconfig: str) -> None:
        configuration = client.Configuration()
        config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        configuration.connection_pool_maxsize = 8
        self.url, self.pool = configuration.host, client.ApiClient(configuration).rest_client.pool_manager

    def send(self, method: str, path: str, body: dict | None = None) -> None:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self.pool.request(method, self.url + path, body=json.dumps(body or {}), headers={"Content-Type": kind})
        assert answer.status < 300 or answer.status in (404, 409), answer.data

    def each(self, act, numbers) -> None:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: act(self, "node-%04d" % number, number), numbers))


def fill(api: Api, name: str, number: int) -> None:
    address = "10.%d.%d.%d" % (100 + number // 62500, number // 250 % 250, number % 250 + 1)
    annotations = {"projectcalico.org/IPv4Address": address + "/8", "projectcalico.org/IPv4IPIPTunnelAddr": "192.168.%d.%d" % (number // 250, number % 250)}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "zone-%d" % (number % 3)}
    api.send("POST", "/api/v1/nodes", {"metadata": {"name": name, "annotations": annotations, "labels": labels}, "spec": {"podCIDR": "192.168.0.0/24"}})
    repositories = [REPOSITORY % (number, i) for i in range(IMAGES)]
    images = [{"names": [one + ":v1.2.3", one + "@sha256:" + "0" * 64], "sizeBytes": 12345678} for one in repositories]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = {"status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    status = {
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "conditions": [{**state, "type": kind} for kind in kinds],
        "images": images,
    }
    api.send("PATCH", "/api/v1/nodes/%s/status" % name, {"status": status})
    lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now.replace("Z", ".000000Z")}}
    api.send("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)
    container = {"name": "calico-node", "image": "quay.io/calico/node:v3.31.0", "env": [{"name": "FELIX_%02d" % i, "value": "x" * 20} for i in range(20)]}
    spec = {"nodeName": name, "hostNetwork": True, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    pods = "/api/v1/namespaces/%s/pods" % NAMESPACE
    api.send("POST", pods, {"metadata": {"name": "calico-node-" + name, "labels": {"k8s-app": "calico-node"}}, "spec": spec})
    told = [{"name": "calico-node", "ready": True, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {"startedAt": now}}}]
    api.send("PATCH", "%s/calico-node-%s/status" % (pods, name), {"status": {"phase": "Running", "hostIP": address, "containerStatuses": told}})


def empty(api: Api, name: str, _number: int) -> None:
    api.send("DELETE", "/api/v1/namespaces/%s/pods/calico-node-%s" % (NAMESPACE, name), {"gracePeriodSeconds": 0})
    api.send("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name)
    api.send("DELETE", "/api/v1/nodes/" + name)


def swept(kubeconfig: str) -> dict:
    before = {"cpu_s": time.process_time(), "memory_mib": memory()}
    found = _sweep.read({"kubeconfig": kubeconfig}, 60, dict(os.environ))
    return {
        "nodes": len(found["nodes"]),
        "pods": len(found["pods"]),
        "problems": found["problems"],
        "requests": found["taken"]["requests"],
        "seconds": found["taken"]["seconds"],
        "cpu_s": time.process_time() - before["cpu_s"],
        "memory_mib": memory(),
        "memory_before_mib": before["memory_mib"],
        "document_kb": len(json.dumps(found)) / 1e3,
    }


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else swept(sys.argv[1])))
