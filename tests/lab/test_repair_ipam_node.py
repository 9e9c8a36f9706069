"""A migration of addresses that does not end, on a real node. What Calico's own upgrade-ipam does without one: test_repair_ipam.py."""

from __future__ import annotations

import json
import time

from diagnoses import finding, first_cause, reported
from labs import BOOT, eventually


def test_a_real_node_comes_out_of_init(cluster, tmp_path):
    """The story itself: an old directory, calico-node anew, Init:0/3 for good; diagnosed, then repaired, and it is Ready.

    The lab gives its nodes no podCIDR, over which upgrade-ipam stumbles before it locks the datastore.
    """
    nodes, path = cluster, "/var/lib/cni/networks/k8s-pod-network"
    nodes.on("n2", "mkdir -p %s && cd %s && echo x >'#old' && echo dead >192.168.77.9 && touch lock" % (path, path))
    mine = ("-n", "kube-system", "get", "pods", "-l", "k8s-app=calico-node", "--field-selector=spec.nodeName=n2", "-o", "json")

    def pod():
        return next(iter(json.loads(nodes.kubectl(*mine))["items"][-1:]), {"status": {}})

    def ready():
        return any(one["type"] == "Ready" and one["status"] == "True" for one in pod()["status"].get("conditions", []))

    def looping():
        return any(one["name"] == "upgrade-ipam" and "running" in one["state"] for one in pod()["status"].get("initContainerStatuses", []))

    eventually("calico-node to be ready", ready, BOOT)
    try:
        nodes.kubectl("-n", "kube-system", "delete", "pod", pod()["metadata"]["name"], timeout=600)
        eventually("upgrade-ipam to hold it up", looping, BOOT)
        report, said = reported(nodes, "diagnose", tmp_path, calico_init_s=1, calico_migration_s=1)
        found = finding(report, "calico.init_stuck", "n2")
        assert "Init:0/" in found["message"] and found["evidence"]["cause"] == "ipam_migration", found
        assert "calico.ipam_migration" in first_cause(said), said
        patience = {"calico_init_s": 60, "calico_migration_s": 30}
        time.sleep(90)  # until it lasts longer than either
        nodes.play("repair_ipam", "--limit", "n2", nodecare_thresholds=patience, nodecare_cluster=True, nodecare_wait=1800)
        eventually("calico-node to be ready", ready, BOOT)
        assert "left-over" in nodes.on("n2", "ls /var/lib/cni")
    finally:
        nodes.on("n2", "rm -rf %s /var/lib/cni/k8s-pod-network.left-over /var/lib/nodecare" % path)
