"""A control plane of several members loses its quorum and finds it again; the path to it fails for some and not for others."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager

import pytest
from labs import Lab, eventually, own_name

SECOND = "--server=https://10.0.0.2:6443"
HANGS = "--request-timeout=5s"


@pytest.fixture(scope="module")
def lab():
    made = Lab(own_name("p"))
    try:
        made.up("--layer", "cluster", "--nodes", 1, "--etcd", 3, "--api-servers", 2)
        yield made
    finally:
        made.do("down")


def readiness(lab, *options):
    return lab.ask("kubectl", *options, "get", "--raw", "/readyz")


def is_ready(lab, *options):
    return readiness(lab, HANGS, *options)[0] == 0


def node_is_ready(lab):
    """True, False, or Unknown: what the control plane believes of the node."""
    return lab.kubectl("get", "node", "n1", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')


@pytest.mark.parametrize(("end", "begin"), [("cut", "start"), ("freeze", "thaw")])
def test_etcd_serves_with_two_of_three_and_no_fewer(lab, end, begin):
    lab.do(end, "etcd-3")
    eventually("two members to do", lambda: is_ready(lab) and is_ready(lab, SECOND))
    lab.do(end, "etcd-2")
    eventually("one member to be too few", lambda: "etcd failed" in readiness(lab)[1] and "etcd failed" in readiness(lab, SECOND)[1])
    lab.do(begin, "etcd-2")
    eventually("two members to do again", lambda: is_ready(lab) and is_ready(lab, SECOND))
    lab.do(begin, "etcd-3")


def test_each_api_server_can_be_gone_or_hang(lab):
    lab.do("cut", "kube-apiserver-2")
    assert "refused" in readiness(lab, SECOND)[1]
    assert is_ready(lab)
    lab.do("start", "kube-apiserver-2")
    eventually("the second API server", lambda: is_ready(lab, SECOND))
    lab.do("freeze", "kube-apiserver-2")
    assert lab.state("kube-apiserver-2") == "frozen"
    assert not is_ready(lab, SECOND)
    lab.do("thaw", "kube-apiserver-2")
    eventually("the second API server", lambda: is_ready(lab, SECOND))


@contextmanager
def disturbed(lab, *how):
    lab.do("api", *how)
    try:
        yield
    finally:
        lab.do("api", "heal")


def test_slow_for_users(lab):
    with disturbed(lab, "slow", "--ms", 1500, "--for", "users"):
        start = time.monotonic()
        assert is_ready(lab, "--request-timeout=60s")
        assert time.monotonic() - start > 3, "neither the handshake nor the answer came later"


# Which of its clocks kubectl names depends on how busy the machine is.
@pytest.mark.parametrize(("kind", "what"), [("refuse", "refused"), ("drop", "deadline exceeded|Timeout exceeded|i/o timeout")])
def test_no_way_for_users(lab, kind, what):
    with disturbed(lab, kind, "--for", "users"):
        assert re.search(what, readiness(lab, HANGS)[1])
    assert is_ready(lab)


@pytest.mark.parametrize("kind", ["refuse", "drop"])
def test_no_way_for_a_node(lab, kind):
    eventually("the node to be heard of", lambda: node_is_ready(lab) in ("True", "False"))
    with disturbed(lab, kind, "--for", "n1"):
        eventually("the node not to be heard of", lambda: node_is_ready(lab) == "Unknown")
    eventually("the node to be heard of again", lambda: node_is_ready(lab) in ("True", "False"))
