"""A calico-node that is killed again and again before it is up, because its API server is far away: ended on real nodes by more patient probes."""

from __future__ import annotations

import json
import time

import pytest
from labs import BOOT, changed, eventually
from mesh import ILL, WELL, healed  # noqa: F401 - a fixture
from test_cluster import pods
from test_repair_autodetection import template

SLOW = 1500  # ms for each answer: below the two seconds after which calico-node's start-up gives up by itself
IMPATIENT = {"failureThreshold": 2}  # as some distributions have it: killed after 20 to 30 s
CALM = 90  # seconds without a restart


def restarts(cluster, node=ILL):
    """(how often calico-node was started again there, whether it is ready); of a pod that has just been made, neither."""
    statuses = pods(cluster, "k8s-app=calico-node")[node]["status"].get("containerStatuses", [])
    return next(((one["restartCount"], one["ready"]) for one in statuses if one["name"] == "calico-node"), (0, False))


def set_probe(cluster, probe):
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "calico-node", "livenessProbe": probe}]}}}}
    cluster.kubectl("-n", "kube-system", "patch", "daemonset", "calico-node", "-p", json.dumps(patch))
    cluster.kubectl("-n", "kube-system", "rollout", "status", "daemonset/calico-node", "--timeout=%ds" % BOOT, timeout=BOOT + 60)


@pytest.fixture
def far(healed):  # noqa: F811
    """Probes with little patience, and one node for which each answer of the API server takes long."""
    was = next(one for one in template(healed)["spec"]["containers"] if one["name"] == "calico-node")["livenessProbe"]
    set_probe(healed, IMPATIENT)
    healed.do("api", "slow", "--for", ILL, "--ms", SLOW)
    yield healed
    healed.do("api", "heal")
    set_probe(healed, {"failureThreshold": was["failureThreshold"], "initialDelaySeconds": was["initialDelaySeconds"]})


def test_a_restart_loop_far_from_the_api_server_is_ended(far):
    before = template(far)
    far.kubectl("-n", "kube-system", "delete", "pod", pods(far, "k8s-app=calico-node")[ILL]["metadata"]["name"])
    eventually("calico-node to be killed again and again", lambda: restarts(far)[0] >= 2, BOOT)
    predicted = far.play("repair_probes", "--check", "--diff")
    assert template(far) == before and "livenessProbe" in predicted
    said = far.play("repair_probes", "--diff", nodecare_wait=600)
    assert sum(changed(said).values()) > 0
    eventually("calico-node to be ready there", lambda: restarts(far)[1], BOOT)
    count = {node: restarts(far, node)[0] for node in WELL}
    time.sleep(CALM)
    assert {node: restarts(far, node)[0] for node in WELL} == count and restarts(far)[1]
    assert sum(changed(far.play("repair_probes", nodecare_wait=600)).values()) == 0
    far.do("api", "heal")
    far.play("repair_probes", nodecare_state="as_before", nodecare_wait=600)
    assert template(far) == before
