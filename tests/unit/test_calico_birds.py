"""Real BIRDs of release 1.6, 2 and 3 are read through their sockets: a session, what keeps others from one, a restart, and a hang."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack

import birds
import pytest
import spaces
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import read
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy

DEADLINE = 2.0
HERE, THERE = "10.9.0.1", "10.9.0.2"
PEERS = {
    "Mesh_10_9_0_2": THERE,
    "Node_10_9_0_2_port_1790": THERE + " port 1790",  # nobody listens
    "Global_172_18_0_1": "172.18.0.1",  # no way leads there
    "Local_Workload_10_65_0_2": "10.9.0.2 port 1791",
    "uplink": "10.9.0.2 port 1792",  # an administrator's own name
}
ISO = "timeformat protocol iso long;"

pytestmark = pytest.mark.skipif(bool(spaces.usable()), reason=spaces.usable() or "usable")


def package(name):
    return pytest.param(name, marks=pytest.mark.skipif(bool(birds.missing(name)), reason=birds.missing(name) or "there"))


@pytest.fixture(scope="module", params=[package(name) for name in birds.PACKAGES if name != "bird3" or birds.program(name)])
def met(request):
    """(package, root of a node whose BIRD has met another release of BIRD, the process)"""
    with ExitStack() as stack:
        other = "bird2" if request.param == "bird" and not birds.missing("bird2") else request.param
        here = stack.enter_context(spaces.space(["link set lo up", "link add eth0 type veth peer name eth1", "address add %s/24 dev eth0" % HERE]))
        there = stack.enter_context(spaces.space(["link set lo up"]))
        spaces.ip(here, "link", "set", "eth1", "netns", there)
        for space, commands in ((here, ["link set eth0 up"]), (there, ["address add %s/24 dev eth1" % THERE, "link set eth1 up"])):
            for command in commands:
                spaces.ip(space, *command.split())
        roots = [tempfile.mkdtemp(prefix="nb") for _end in range(2)]  # a short path: that of a unix socket has at most 107 characters
        for root in roots:
            stack.callback(shutil.rmtree, root)
        stack.enter_context(birds.bird(other, there, roots[1], birds.told(other, THERE, {"Mesh_10_9_0_1": HERE})))
        process = stack.enter_context(birds.bird(request.param, here, roots[0], birds.told(request.param, HERE, PEERS, ISO)))
        if birds.program(request.param, "bird6"):
            stack.enter_context(birds.bird(request.param, here, roots[0], "router id %s;\nprotocol device {}\n" % HERE, "bird6.ctl", "bird6"))
        birds.until(lambda: "Established" in str(socket(roots[0])), lambda: str(socket(roots[0])))
        yield request.param, roots[0], process


def socket(root, name="bird.ctl"):
    found = read(["calico"], DEADLINE, root)["calico"]["bird"]["sockets"]
    return next(one for one in found if one["path"].endswith("/" + name))


def peers(root):
    return {one["name"]: one for one in socket(root)["protocols"]}


def verdict(root):
    return next(one for one in _judge.judge_node("n", facts(root), policy({}), ["calico.bird_hung"]))


def facts(root):
    """As if calico-node ran: this machine's processes are not those of the node."""
    found = read(["calico"], DEADLINE, root)
    found["calico"]["processes"] = {"programs": [{"pid": 1, "name": "calico-node", "does": "felix", "age_s": 999}], "env": {}}
    return found


def test_it_says_what_it_is(met):
    release, root, _process = met
    found = socket(root)
    assert found["state"] == "answered" and found["version"].startswith(birds.PACKAGES[release]) and found["router_id"] == HERE
    assert found["said"] == "Daemon is up and running" and found["calico"] and found["since"][:2] == "20"
    assert verdict(root)["status"] == "pass", verdict(root)


def test_each_session_is_seen_with_its_state_and_last_error(met):
    _release, root, _process = met
    birds.until(lambda: all(one["info"] for one in peers(root).values() if one["state"] != "Established"), lambda: str(peers(root)))
    found = peers(root)
    assert set(found) == set(PEERS) - {"Local_Workload_10_65_0_2"}  # a pod's
    mesh, node, distant, own = (found[name] for name in ("Mesh_10_9_0_2", "Node_10_9_0_2_port_1790", "Global_172_18_0_1", "uplink"))
    assert (mesh["kind"], mesh["peer"], mesh["state"], mesh["neighbor"], mesh["source"], mesh["as"]) == ("mesh", THERE, "Established", THERE, HERE, "64512")
    assert mesh["up"] in ("up", "wait"), "it waits for the others, where the restart is seen before the session is there"
    assert len(mesh["since"].split()) == 2 and mesh["since"].startswith("20"), "a date and a time, where the administrator wants both"
    assert (node["kind"], node["peer"], node["port"]) == ("node", THERE, 1790) and "refused" in node["info"], node
    assert (distant["kind"], distant["peer"]) == ("global", "172.18.0.1") and "nreachable" in distant["info"], distant
    assert own["kind"] == "other" and own["peer"] is None and own["neighbor"] == THERE


def test_a_graceful_restart_is_seen(met):
    """One neighbour at least never comes, so that it waits for all of its time."""
    _release, root, _process = met
    found = socket(root)
    assert "restart recovery in progress" in found["recovering"] and "timer" in found["recovering"], found


def test_the_one_for_ipv6_of_release_1_6_is_read_too(met):
    release, root, _process = met
    if release != "bird":
        pytest.skip("one BIRD speaks both families")
    assert socket(root, "bird6.ctl")["state"] == "answered" and socket(root, "bird6.ctl")["protocols"] == []


def test_one_that_hangs_costs_its_deadline_and_is_evidence(met):
    _release, root, process = met
    os.kill(process.pid, signal.SIGSTOP)
    try:
        start = time.monotonic()
        document = facts(root)
        took, found = time.monotonic() - start, document["calico"]["bird"]["sockets"][0]
        assert found["state"] == "hung" and found["asked"] == "show status" and not found["greeted"] and DEADLINE <= took < DEADLINE + 20, (took, found)
        assert [one for one in document["problems"] if one["kind"] == "hung" and one["fact"].startswith("calico.bird")]
        assert verdict(root)["status"] == "fail" and verdict(root)["evidence"]["seconds"] >= DEADLINE
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert socket(root)["state"] == "answered"


def test_one_that_has_ended_left_its_socket(met):
    release, root, _process = met
    with ExitStack() as stack:
        space, place = stack.enter_context(spaces.space([])), stack.enter_context(tempfile.TemporaryDirectory(prefix="nb"))
        process = stack.enter_context(birds.bird(release, space, place, "router id 10.0.0.1;\nprotocol device {}\n"))
        process.kill()
        process.wait()
        assert socket(place)["state"] == "refused" and verdict(place)["status"] == "fail"
