"""Preflight with an API server that is ill: what was read of the nodes is complete, and what could not be read of the cluster is said."""

from __future__ import annotations

import socket
from contextlib import contextmanager

import pytest
from api_server import Api, standing_in

SECRET = "hunter2"
SOME = ("well-1", "swapping", "gone")


@contextmanager
def nobody():
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield "http://127.0.0.1:%d" % taken.getsockname()[1]


@contextmanager
def silent():
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield "http://127.0.0.1:%d" % listening.getsockname()[1]


@contextmanager
def answering(**api):
    with standing_in(Api(**api)) as server:
        yield server.url


# what the API server is like: (how it is made, the finding about the cluster, its status, what it says)
ILL = {
    "down": (nobody, "cluster.unreachable", "fail", "Connection refused"),
    "silent": (silent, "cluster.unreachable", "fail", "no answer within"),
    "forbidding pods": (lambda: answering(answers={"/api/v1/pods": 403}), "cluster.unread", "warn", "somebody cannot list this"),
}


@pytest.mark.parametrize("ill", ILL)
def test_the_nodes_findings_are_complete(ill, ansible):
    made, rule, status, says = ILL[ill]
    with made() as url:
        asked = {"K8S_AUTH_HOST": url, "K8S_AUTH_API_KEY": SECRET}
        run = ansible(
            "ansible-playbook", "playbooks/preflight.yml", "--limit", ",".join(SOME), variables={"nodecare_checks": ["swap", "node", "cluster"]}, **asked
        )
    assert run.worst("swapping", "swap.active") == "fail" and run.worst("well-1", "swap.active") == "pass"
    assert run.worst("gone", "node.unreachable") == "fail"
    (finding,) = run.findings("cluster", rule)
    assert finding["status"] == status and says in finding["message"], finding
    assert SECRET not in run.said + str(run.report)
