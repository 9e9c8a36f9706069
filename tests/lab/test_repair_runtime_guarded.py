"""The repair of a runtime with a real API server, on stand-ins of containerd and systemctl: cordoned and given back, and drained first where pods would end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from labs import ROOT
from silent import QUICK, changed, targets
from test_guard import NODES, Cluster

from lab.fleet import Fleet, missing

# Something that is called a shim, in the cgroup of the daemon: a restart ends it where the unit says so.
SHIM = "cp /bin/sleep /run/containerd-shim-runc-v2; setsid /run/containerd-shim-runc-v2 600 >/dev/null 2>&1 & sleep 0.2"
KILLS = "sed -i s/KillMode=process/KillMode=control-group/ /usr/local/sbin/systemctl"


@pytest.fixture
def silent(api, tmp_path):
    """Four nodes, whose containerd is silent, and the Nodes of the same names."""
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    with Fleet(targets(NODES)) as fleet:
        cluster = Cluster(api, fleet, tmp_path)
        try:
            cluster.clean()
            yield cluster
        finally:
            cluster.close()
            for node in NODES:
                cluster.on(node, "kill -9 $(cat /run/unit/pid) $(pgrep -f '^/run/containerd-shim-runc-v2 600$') 2>/dev/null; true")


def play(cluster, *words, expect=0, at=lambda line: None, **variables):
    given = {**QUICK, "nodecare_cluster": True, "nodecare_wait": 40, "nodecare_skip_gates": ["api_server"], **variables}
    argv = [Path(sys.executable).parent / "ansible-playbook", "playbooks/repair_runtime.yml", "-i", cluster.fleet.inventory, *words, "-e", json.dumps(given)]
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(argv, cwd=ROOT, env=cluster.fleet.environment(K8S_AUTH_KUBECONFIG=str(cluster.kubeconfig)), **how) as run:
        said = ""
        for line in run.stdout:
            said += line
            at(line)
    assert (run.returncode == 0) is (expect == 0), said
    return said


def asked(cluster, node):
    return cluster.on(node, "cat /run/unit/asked 2>/dev/null; true").split()


def test_cordoned_restarted_and_given_back(silent):
    marked = []

    def look(line):
        if "Restart what is ill, and nothing else" in line:
            marked.append((silent.cordoned(), silent.marked()))

    said = play(silent, "--limit", "s1,s2", at=look)
    assert marked == [(["s1"], ["s1"]), (["s2"], ["s2"])], said
    assert [asked(silent, node) for node in NODES] == [["restart"], ["restart"], [], []]
    assert (silent.cordoned(), silent.marked(), silent.locked()) == ([], [], False)
    assert changed(play(silent, "--limit", "s1")) == {"s1": 0}
    assert asked(silent, "s1") == ["restart"]


def test_drained_first_where_pods_would_end(silent):
    """Nobody can end the pods of a silent runtime, so that they are still terminating when it is restarted."""
    silent.on("s1", KILLS + "; " + SHIM)
    silent.client.create_namespaced_pod("default", {"metadata": {"name": "web"}, "spec": {"nodeName": "s1", "containers": [{"name": "main", "image": "none"}]}})
    try:
        said = play(silent, "--limit", "s1,s2", expect=2)
        assert "has KillMode=control-group" in said and "nodecare_allow_disruption=true" in said and "No further node is touched" in said
        assert (asked(silent, "s1"), asked(silent, "s2"), silent.marked(), silent.cordoned()) == ([], [], [], [])
        said = play(silent, "--limit", "s1", expect=2, nodecare_allow_disruption=True, nodecare_drain_wait=5)
        assert "default/web: it has no controller" in said and (asked(silent, "s1"), silent.marked()) == ([], [])
        seen = []

        def look(line):
            if "Restart what is ill, and nothing else" in line:
                seen.append((silent.client.read_namespaced_pod("web", "default").metadata.deletion_timestamp is not None, asked(silent, "s1")))

        play(silent, "--limit", "s1", at=look, nodecare_allow_disruption=True, nodecare_drain_even_bare=True, nodecare_drain_wait=5)
        assert seen == [(True, [])] and asked(silent, "s1") == ["restart"]
        assert (silent.cordoned(), silent.marked(), silent.locked()) == ([], [], False)
    finally:
        silent.client.delete_namespaced_pod("web", "default", grace_period_seconds=0)
