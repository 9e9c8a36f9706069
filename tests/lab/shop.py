"""An application as users have them: a Deployment whose pods are spread over the nodes, with a budget that allows one disruption."""

from __future__ import annotations

import json
from pathlib import Path

from labs import eventually

OBJECTS = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: cart, namespace: shop}
  spec:
    replicas: %d
    selector: {matchLabels: {app: cart}}
    template:
      metadata: {labels: {app: cart}}
      spec:
        terminationGracePeriodSeconds: 5
        containers: [{name: main, image: %s, imagePullPolicy: Never}]
        topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: cart}}}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: cart, namespace: shop}
  spec: {maxUnavailable: 1, selector: {matchLabels: {app: cart}}}
"""


def opened(lab, replicas):
    """All its pods are ready."""
    images = json.loads(lab.on("n1", "crictl images -o json"))["images"]
    image = next(tag for one in images for tag in one["repoTags"] if "pause" in tag)
    path = Path(lab.do("kubeconfig")).with_name("shop.yml")
    path.write_text(OBJECTS % (replicas, image))
    lab.kubectl("apply", "-f", path)
    eventually("its pods", lambda: ready_pods(lab) == replicas)


def closed(lab):
    lab.ask("kubectl", "delete", "namespace", "shop", timeout=600)


def ready_pods(lab):
    return int(lab.kubectl("-n", "shop", "get", "deployment", "cart", "-o", "jsonpath={.status.readyReplicas}") or 0)


def pods_on(lab, node):
    """Their uids, which no successor has."""
    found = lab.kubectl("-n", "shop", "get", "pods", "--field-selector", "spec.nodeName=%s" % node, "-o", "json")
    return {one["metadata"]["uid"]: one["metadata"]["name"] for one in json.loads(found)["items"]}
