"""Container runtimes that do not answer, on real nodes: brought back on one node only, with its pods as they were by the word of crictl and kubectl."""

from __future__ import annotations

import json
import os
import re
import signal
from datetime import datetime

import pytest
from labs import IMPATIENT, Watch, changed, eventually
from runtimes import PATIENCE, main_process, play, preflight
from shop import closed, opened, pods_on, ready_pods

MARK = "nodecare/repair"
LEASE = ("-n", "kube-system", "get", "lease", "nodecare-repair", "--ignore-not-found", "-o", "name")
CONSENT = {"nodecare_allow_disruption": True, "nodecare_drain_even_emptydir": True, "nodecare_drain_even_bare": True}
# Nobody finds containerd any more, while it itself lives: only a restart heals that.
LOST_SOCKET = "rm /run/containerd/containerd.sock"
DROP_IN = "/etc/systemd/system/containerd.service.d/lab.conf"
KILLS = "mkdir -p %s; printf '[Service]\\nKillMode=control-group\\n' >%s; systemctl daemon-reload" % (os.path.dirname(DROP_IN), DROP_IN)
SPARES = "rm -f %s; systemctl daemon-reload" % DROP_IN


def silent_for(said):
    return float(re.search(r"it answers ([0-9.]+) s after this repair found it silent", said).group(1))


# -- what is true, by others' word ---------------------------------------------------------------------------------------


def by_crictl(lab, node):
    """{container id: name} of what runs. The liveness probe of calico-node is a command inside it, so that a silent runtime may cost it its life."""
    said = json.loads(lab.on(node, "crictl ps --state running -o json"))["containers"]
    return {one["id"]: one["metadata"]["name"] for one in said if one["metadata"]["name"] != "calico-node"}


def by_kubectl(lab, node):
    """{pod/container: (container id, restarts)}"""
    said = json.loads(lab.kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=%s" % node, "-o", "json"))["items"]
    found = {}
    for pod in said:
        for one in pod["status"].get("containerStatuses", ()):
            if one["name"] != "calico-node" and not pod["metadata"].get("deletionTimestamp"):
                found["%s/%s" % (pod["metadata"]["name"], one["name"])] = one.get("containerID"), one["restartCount"]
    return found


def node_of(lab, name):
    thing = json.loads(lab.kubectl("get", "node", name, "-o", "json"))
    ready = {one["type"]: one["status"] for one in thing["status"]["conditions"]}.get("Ready")
    return {"ready": ready == "True", "cordoned": thing["spec"].get("unschedulable", False), "marked": MARK in thing["metadata"].get("annotations", {})}


AS_EVER = {"ready": True, "cordoned": False, "marked": False}


def names(lab):
    return sorted(line.rpartition("/")[2] for line in lab.kubectl("get", "nodes", "-o", "name").split())


def looked(lab, name):
    """The same; nothing where the API server gave no answer."""
    try:
        return node_of(lab, name)
    except AssertionError:
        return None


def not_ready_s(watch):
    """The seconds between looks at a node that was not Ready."""
    return sum(later - at for (at, one), (later, _next) in zip(watch.seen, watch.seen[1:]) if not one["ready"])


@pytest.fixture
def app(cluster):
    """A Deployment with a pod on each node."""
    eventually("all nodes to be well", lambda: all(node_of(cluster, node) == AS_EVER for node in names(cluster)), 900)
    opened(cluster, 3)
    yield cluster
    for node in names(cluster):
        cluster.ask("start", node)
        cluster.ask("heal", node, "all")
        cluster.ask("ssh", node, SPARES + "; test -S /run/containerd/containerd.sock || systemctl restart containerd; rm -rf /var/lib/nodecare")
        cluster.ask("kubectl", "uncordon", node)
        cluster.ask("kubectl", "annotate", "node", node, MARK + "-")
    cluster.ask("kubectl", "-n", "kube-system", "delete", "lease", "nodecare-repair", "--ignore-not-found")
    closed(cluster)
    eventually("all nodes to be well", lambda: all(node_of(cluster, node) == AS_EVER for node in names(cluster)), 1800)


# -- brought back --------------------------------------------------------------------------------------------------------


def test_one_that_a_signal_has_stopped_goes_on(app, tmp_path, figure):
    """Red, predicted, done on this node only, green; the same process and the same containers."""
    before = {node: (main_process(app, node), by_crictl(app, node), by_kubectl(app, node)) for node in names(app)}
    with Watch(lambda: looked(app, "n1")) as watch:
        app.do("fault", "n1", "hung-containerd")
        assert preflight(app, tmp_path, "--limit", "n1", nodecare_cluster=False)["runtime.unresponsive"] == "fail"
        said = play(app, "repair_runtime", "--diff")
        eventually("n1 to be Ready", lambda: node_of(app, "n1") == AS_EVER, 600)
    figure("silent for %.1f s of the repair, NotReady for %.0f s" % (silent_for(said), not_ready_s(watch)))
    assert any(one["cordoned"] and one["marked"] for _at, one in watch.seen)
    assert "+continue" in said and "continue containerd.service" in said
    assert {node: (main_process(app, node), by_crictl(app, node), by_kubectl(app, node)) for node in before} == before
    assert changed(said)["n1"] > 0 and all(number == 0 for node, number in changed(said).items() if node != "n1")
    green = preflight(app, tmp_path)
    assert green["runtime.unresponsive"] == green["kubelet.down"] == "pass" and app.kubectl(*LEASE) == ""
    assert set(changed(play(app, "repair_runtime")).values()) == {0}


def test_check_mode_predicts_and_changes_nothing(app):
    app.on("n1", LOST_SOCKET)
    before = {node: (main_process(app, node), node_of(app, node)) for node in names(app)}
    said = play(app, "repair_runtime", "--check", "--diff")
    assert "+restart" in said and changed(said)["n1"] > 0
    assert {node: (main_process(app, node), node_of(app, node)) for node in names(app)} == before
    assert app.on("n1", "ls /var/lib/nodecare 2>/dev/null || true") == "" and app.kubectl(*LEASE) == ""


def test_one_that_lost_its_socket_is_restarted_with_its_containers_as_they_were(app, figure):
    before = {node: (by_crictl(app, node), by_kubectl(app, node)) for node in names(app)}
    mains = {node: main_process(app, node) for node in names(app)}
    app.on("n1", LOST_SOCKET)
    with Watch(lambda: looked(app, "n1")) as watch:
        said = play(app, "repair_runtime")
    figure("silent for %.1f s of the repair, NotReady for %.0f s" % (silent_for(said), not_ready_s(watch)))
    assert {node for node in mains if main_process(app, node) != mains[node]} == {"n1"}
    assert {node: (by_crictl(app, node), by_kubectl(app, node)) for node in before} == before
    assert node_of(app, "n1") == AS_EVER and ready_pods(app) == 3
    assert "goroutine" in app.on("n1", "head -c 2000 /var/lib/nodecare/journal/*/stacks-%s" % mains["n1"])
    assert app.on("n1", "systemctl show -p NRestarts --value containerd") == "0"


# -- where pods would end ------------------------------------------------------------------------------------------------


def test_where_pods_would_end_the_node_is_drained_first(app):
    """A drop-in has taken KillMode=process away. Without consent nothing is touched; with it the pods are made elsewhere before the restart."""
    app.on("n1", KILLS)
    app.on("n1", LOST_SOCKET)
    main, pods = main_process(app, "n1"), pods_on(app, "n1")
    running = app.on("n1", "ps -eo comm= | grep -c '^containerd-shim'")
    said = play(app, "repair_runtime", expect=(2,))
    assert "has KillMode=control-group" in said and "nodecare_allow_disruption=true" in said and "No further node is touched" in said
    assert main_process(app, "n1") == main and pods_on(app, "n1") == pods and node_of(app, "n1")["marked"] is False
    assert app.on("n1", "ps -eo comm= | grep -c '^containerd-shim'") == running
    play(app, "repair_runtime", **CONSENT)
    assert main_process(app, "n1") != main and node_of(app, "n1") == AS_EVER
    assert not pods.keys() & pods_on(app, "n1").keys() and ready_pods(app) == 3
    ready, restarted = ready_since(app), started(app, "n1")
    assert max(ready) <= restarted, "it was restarted at %d, before the pods were made elsewhere: %r" % (restarted, ready)


def started(lab, node, unit="containerd"):
    """When its process was, by the node's clock, in seconds."""
    return int(lab.on(node, 'date +%%s -d "$(systemctl show -p ExecMainStartTimestamp --value %s)"' % unit))


def ready_since(lab):
    """Since when each of the application's pods is, in the same seconds."""
    said = json.loads(lab.kubectl("-n", "shop", "get", "pods", "-o", "json"))["items"]
    found = [one["lastTransitionTime"] for pod in said for one in pod["status"]["conditions"] if (one["type"], one["status"]) == ("Ready", "True")]
    return [datetime.fromisoformat(one).timestamp() for one in found]


# -- when it goes wrong --------------------------------------------------------------------------------------------------


def test_a_node_that_is_lost_in_the_middle_ends_the_run(app):
    """It stays cordoned with a mark and a printed way out, no other node is touched, and a second run gives it back."""
    others = {node: main_process(app, node) for node in names(app) if node != "n1"}
    app.on("n1", LOST_SOCKET)
    app.on("n2", LOST_SOCKET)

    def pull(line):
        if "waiting for containerd.service" in line or "without another restart" in line:
            app.ask("cut", "n1")

    said = play(app, "repair_runtime", expect=(2, 4), at=pull, **{**IMPATIENT, "nodecare_runtime_wait": 90, "nodecare_wait": 60})
    assert "No further node is touched" in said and "kubectl uncordon n1 && kubectl annotate node n1 %s-" % MARK in said
    now = node_of(app, "n1")
    assert now["cordoned"] and now["marked"]
    assert {node: main_process(app, node) for node in others} == others and node_of(app, "n2")["marked"] is False

    app.do("start", "n1", timeout=1800)
    eventually("n1 to let us in", lambda: app.ask("ssh", "n1", "true")[0] == 0, 900)
    play(app, "repair_runtime")
    assert node_of(app, "n1") == node_of(app, "n2") == AS_EVER and main_process(app, "n2") != others["n2"]


def test_a_controller_that_is_killed_leaves_what_the_next_run_finishes(app):
    """Its lock is not taken from it unasked: the next run says how that is done by hand."""
    before, main = by_crictl(app, "n1"), main_process(app, "n1")
    app.on("n1", LOST_SOCKET)
    with app.begin("repair_runtime", **PATIENCE) as running:
        for line in running.stdout:
            if "without another restart" in line:
                running.send_signal(signal.SIGKILL)
                break
    assert node_of(app, "n1")["marked"]
    restarted = main_process(app, "n1")
    assert restarted != main
    way_out = "kubectl -n kube-system delete lease nodecare-repair"
    assert way_out in play(app, "repair_runtime", expect=(2,), nodecare_lock_wait=0)
    app.do(*way_out.split())
    play(app, "repair_runtime")
    assert node_of(app, "n1") == AS_EVER and app.kubectl(*LEASE) == ""
    assert main_process(app, "n1") == restarted, "it was restarted twice"
    assert by_crictl(app, "n1") == before
