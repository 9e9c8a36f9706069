"""Real unix sockets: one that accepts and never answers must cost its deadline and nothing else."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _grpc, _node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS, read
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from recorded import encoded
from test_runtime_parsers import answer

DEADLINE = 1.0
CONTAINERD = "/run/containerd/containerd.sock"
SETTINGS = _grpc.frame(_grpc.SETTINGS, 0, 0)
VERSION = answer(encoded({1: "1.7.24"}))


@pytest.fixture
def root():
    """A short path: that of a unix socket has at most 107 characters."""
    place = Path(tempfile.mkdtemp(prefix="rt"))
    (place / "run/containerd").mkdir(parents=True)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def listen(root):
    """A server that accepts at most so many clients, sends each these bytes, and keeps or closes the connection."""
    servers, clients = [], []

    def start(say=None, keep=True, path=CONTAINERD, backlog=16):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(root) + path)
        server.listen(backlog)
        servers.append(server)

        def serve():
            while True:
                try:
                    client = server.accept()[0]
                    client.recv(65536)
                    client.sendall(say)
                except OSError:
                    return
                clients.append(client)
                if not keep:
                    client.close()

        if say is not None:
            threading.Thread(target=serve, daemon=True).start()
        return server

    yield start
    for one in servers + clients:
        one.close()


def unresponsive(facts):
    checked = policy({})
    return next(one for one in _judge.judge_node("n", facts, checked, ["runtime.unresponsive"]))


def test_a_socket_that_never_answers_costs_its_deadline_and_no_other_fact(root, listen):
    listen()
    facts = read(list(AREAS), DEADLINE, str(root))
    said, finding = facts["runtime"]["answers"]["containerd"], unresponsive(facts)
    assert said["state"] == "hung" and DEADLINE <= said["seconds"] < DEADLINE + 0.5
    assert facts["taken"]["seconds"] < DEADLINE + 1.5
    assert all(set(facts[name]) == {*area.FACTS, *area.WAITING} for name, area in AREAS.items())
    assert not [one for one in facts["problems"] if one["kind"] == "late"]
    assert finding["status"] == "fail" and "within %.1f s" % said["seconds"] in finding["message"]
    assert finding["evidence"]["waited_s"] == said["seconds"]


def test_one_that_answers_is_well(root, listen):
    listen(VERSION)
    facts = read(["runtime"], DEADLINE, str(root))
    said = facts["runtime"]["answers"]["containerd"]
    assert said["state"] == "answered" and said["version"] == "1.7.24" and said["seconds"] < DEADLINE
    assert said["conditions"] is None and any(one["fact"].endswith("conditions") for one in facts["problems"])  # it answers everything with its version


@pytest.mark.parametrize(("size", "code", "problems"), [(2 << 20, 0, []), (5 << 20, _grpc.TOO_LARGE, ["over 4 MiB"])])
def test_a_long_listing_is_an_answer(root, listen, size, code, problems):
    listen(answer(bytes(size), pieces=size >> 13))
    node = Node(str(root), 10)
    said = node.call(CONTAINERD, "runtime.v1.RuntimeService/ListPodSandbox")
    assert (said.state, said.code, len(said.out)) == ("answered", code, 0 if code else size)
    assert [one["why"] for one in node.problems] == problems


def test_one_that_listens_on_the_loopback_of_ipv6_alone():
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError as error:
        pytest.skip("this machine has no ::1 (%s)" % error.strerror)
    with server:

        def serve():
            with server.accept()[0] as client:
                client.recv(65536)
                client.sendall(b"HTTP/1.0 200 OK\r\n\r\nok")

        threading.Thread(target=serve, daemon=True).start()
        said = Node(deadline=DEADLINE).http(("::1", server.getsockname()[1]), "/healthz")
    assert (said.state, said.code, said.out) == ("answered", 200, "ok")


def test_a_kernel_without_ipv6_refuses_it(monkeypatch):
    monkeypatch.setattr(_node, "family", lambda _address: 99)  # a family that no kernel here has
    node = Node(deadline=DEADLINE)
    assert (node.http(("::1", 10248), "/healthz").state, node.problems) == ("refused", [])


def test_one_that_only_greets_is_told_apart(root, listen):
    listen(SETTINGS)
    finding = unresponsive(read(["runtime"], DEADLINE, str(root)))
    assert finding["status"] == "fail" and "greets but does not answer" in finding["message"]


@pytest.mark.parametrize("say", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", SETTINGS, b"\x00" * 40])
def test_what_does_not_speak_grpc_is_not_called_well(root, listen, say):
    listen(say, keep=False)
    facts = read(["runtime", "kubelet"], DEADLINE, str(root))
    assert facts["runtime"]["answers"]["containerd"]["state"] in ("unclear", "refused")
    assert unresponsive(facts)["status"] in ("unknown", "fail")


def test_a_full_queue_is_a_hang_that_costs_nothing(root, listen):
    listen(backlog=0)
    waiting = [socket.socket(socket.AF_UNIX) for _client in range(4)]
    for client in waiting:
        client.setblocking(False)
        client.connect_ex(str(root) + CONTAINERD)
    start = time.monotonic()
    node = Node(str(root), DEADLINE)
    assert node.call(CONTAINERD, "containerd.services.version.v1.Version/Version").state == "hung"
    assert time.monotonic() - start < DEADLINE and "full" in node.problems[0]["why"]
    for client in waiting:
        client.close()


def test_docker_that_waits_for_containerd_costs_one_deadline(root, listen):
    """The ping is answered at once, everything else never is."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(root) + "/run/docker.sock")
    server.listen(16)
    held = []

    def serve():
        while True:
            try:
                client = server.accept()[0]
                asked = client.recv(65536)
                if b"/_ping" in asked:
                    client.sendall(b"HTTP/1.0 200 OK\r\n\r\nOK")
                    client.close()
                held.append(client)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    facts = read(["runtime"], DEADLINE, str(root))
    server.close()
    assert facts["taken"]["seconds"] < DEADLINE + 1
    finding = _judge.judge_node("n", facts, policy({}), ["runtime.docker_cannot_reach_containerd"])[0]
    assert finding["status"] == "fail" and "docker answers its ping, but not /containers/json?limit=1 within 1.0 s" in finding["message"]
