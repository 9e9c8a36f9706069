"""A real docker on a node of its own, without Kubernetes: its network goes and comes back, and it waits for containerd, or is silent itself."""

from __future__ import annotations

import os

import pytest
from labs import Lab, changed, eventually, own_name
from runtimes import main_process, play, preflight

ALONE = {"nodecare_cluster": False}


@pytest.fixture(scope="module")
def with_docker():
    """The lab LAB_OF_DOCKER where that stands, else one of our own that goes with us."""
    standing = Lab(os.environ.get("LAB_OF_DOCKER") or "none")
    if standing.ask("status")[0] == 0:
        yield standing
        return
    made = Lab(own_name("d"))
    try:
        made.up("--layer", "nodes", "--nodes", 1, "--docker")
        yield made
    finally:
        made.do("down")


# -- its networks --------------------------------------------------------------------------------------------------------

MADE = "docker network create --subnet 172.30.5.0/24 --gateway 172.30.5.9 --label com.docker.compose.project=shop -o com.docker.network.driver.mtu=1400 one"
KEPT = "docker network inspect one | jq -S 'map(del(.Id, .Created))' 2>/dev/null || docker network inspect one | grep -v '\"Id\"\\|\"Created\"'"
EMPTY = "tar -c --files-from /dev/null | docker import - empty >/dev/null; docker create --name needs --network one empty /nothing"


@pytest.fixture
def running(with_docker):
    with_docker.on("n1", "systemctl start docker")
    return with_docker


def test_dockers_own_network_goes_and_comes_back(running):
    lab = running
    name = "br-" + lab.on("n1", MADE)[:12]
    before = lab.on("n1", KEPT)
    lab.on("n1", EMPTY)
    said = lab.play("repair_bridges", expect=(2,), **ALONE)
    assert "the container needs (created) of docker" in said and name in lab.on("n1", "ip -br link")
    lab.on("n1", "docker rm needs")

    predicted = lab.play("repair_bridges", "--check", "--diff", **ALONE)
    assert name in lab.on("n1", "ip -br link")
    done = lab.play("repair_bridges", "--diff", **ALONE)
    assert changed(predicted) == changed(done) == {"n1": 1}
    lab.on("n1", "systemctl restart docker")  # it would make again what it still knows
    assert name not in lab.on("n1", "ip -br link") and "one" not in lab.on("n1", "docker network ls --format '{{.Name}}'").split()
    assert "docker0" in lab.on("n1", "ip -br link")
    assert changed(lab.play("repair_bridges", **ALONE)) == {"n1": 0}

    lab.play("undo", **ALONE)
    assert lab.on("n1", KEPT) == before
    lab.on("n1", "docker network rm one")


def test_a_docker_that_does_not_run_keeps_its_networks(running, tmp_path):
    """systemd listens in its place and would start it for whoever asks, which a look must not do."""
    lab = running
    name = "br-" + lab.on("n1", MADE)[:12]
    lab.on("n1", "systemctl stop docker")
    said = lab.play("repair_bridges", expect=(2,), **ALONE)
    assert "start docker, then run this again" in said and name in lab.on("n1", "ip -br link")
    lab.play("preflight", nodecare_fail_on="never", nodecare_report_dir=str(tmp_path), **ALONE)
    assert lab.on("n1", "systemctl is-active docker docker.socket || true").split() == ["inactive", "active"]
    lab.on("n1", "systemctl start docker; docker network rm one")


# -- the runtime ---------------------------------------------------------------------------------------------------------

TINY = "tar -chf - /usr/bin/sleep $(ldd /usr/bin/sleep | grep -o '/lib[^ ]*') | docker import - tiny >/dev/null"
START = "systemctl start docker; docker image inspect tiny >/dev/null 2>&1 || { %s; }; docker run -d --network none tiny /usr/bin/sleep 99999" % TINY

SILENT = 'import socket, time; door = socket.socket(socket.AF_UNIX); door.bind("/run/docker.sock"); door.listen(9); time.sleep(1e6)'


def container_of(lab):
    return lab.on("n1", "docker inspect -f '{{.Id}} {{.State.Pid}} {{.State.Running}}' $(docker ps -q --no-trunc)")


def test_docker_that_waits_for_containerd_gets_on_when_that_does(with_docker, tmp_path):
    """containerd is stopped by a signal: docker answers its ping and nothing more. Neither of them is restarted."""
    lab = with_docker
    lab.on("n1", START)
    before = container_of(lab), main_process(lab, "n1"), main_process(lab, "n1", "docker")
    lab.on("n1", "kill -STOP $(systemctl show -p MainPID --value containerd)")
    try:
        assert preflight(lab, tmp_path, **ALONE)["runtime.docker_cannot_reach_containerd"] == "fail"
        said = play(lab, "repair_runtime", "--diff", **ALONE)
    finally:
        lab.on("n1", "kill -CONT $(systemctl show -p MainPID --value containerd)")
    assert "+continue" in said
    assert (container_of(lab), main_process(lab, "n1"), main_process(lab, "n1", "docker")) == before
    assert preflight(lab, tmp_path, **ALONE)["runtime.docker_cannot_reach_containerd"] in ("pass", "warn")
    lab.on("n1", "docker rm -f $(docker ps -q)")


def test_docker_without_live_restore_is_not_restarted_unasked(with_docker):
    """Nobody answers on its socket: its restart would end its containers, and there is no cluster to drain the node in."""
    lab = with_docker
    lab.on("n1", START)
    before = container_of(lab), main_process(lab, "n1", "docker")
    lab.on("n1", "rm /run/docker.sock; systemd-run -q --unit=lab-silent python3 -c '%s'" % SILENT)
    eventually("a silent socket", lambda: lab.ask("ssh", "n1", "test -S /run/docker.sock")[0] == 0)
    try:
        said = play(lab, "repair_runtime", expect=(2,), **ALONE)
        assert "docker runs 1 container without live-restore: its restart stops all of them" in said
        said = play(lab, "repair_runtime", expect=(2,), nodecare_allow_disruption=True, **ALONE)
        assert "drain it by hand and say nodecare_runtime_drained=true" in said
        assert main_process(lab, "n1", "docker") == before[1]
    finally:
        lab.on("n1", "systemctl stop lab-silent; rm -f /run/docker.sock; systemctl restart docker.socket docker; docker rm -f $(docker ps -aq) || true")
