"""How long calico-node's start is foreseen to take, against what the lab measured; `tests/lab/test_startup_time.py` measures anew."""

from __future__ import annotations

import math

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico import _startup_time
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._startup_time import Latency, patience, startup, would_do
from hypothesis import given
from hypothesis import strategies as st

# Calico 3.31.0 against a real API server, each of whose answers came so many ms later: (ms, nodes, first start, seconds to Felix, to BIRD)
MEASURED = [
    (0, 1, True, 1.88, 2.79),
    (0, 1, False, 1.72, 3.71),
    (200, 1, True, 6.79, 8.65),
    (200, 1, False, 6.25, 8.53),
    (300, 1, True, 9.45, 12.44),
    (300, 501, True, 9.74, 12.75),
    (300, 501, False, 8.42, 11.56),
    (500, 1, True, 14.46, 17.48),
    (500, 1501, True, 16.74, 20.65),
    (500, 1501, False, 12.88, 17.01),
    (1000, 1501, True, 30.10, 36.06),
    (1000, 1501, False, 23.89, 30.14),
]
# Two more: with an IPIP tunnel that needs an address, and the start-up program of 3.22.0.
WITH_TUNNEL = (300, 501, 16.95, 21.07)
OLD = [(400, 1201, True, 12.50, 15.37), (400, 1201, False, 10.54, 14.57)]


def late(seconds):
    """An answer that comes so much later, and a handshake that does, too; connections were made at once."""
    return Latency(0.0, seconds, seconds)


@pytest.mark.parametrize(("ms", "nodes", "first", "felix", "bird"), MEASURED)
def test_measured(ms, nodes, first, felix, bird):
    foreseen = startup("3.31.0", "kubernetes", late(ms / 1000), nodes, first)
    assert abs(foreseen.felix / felix - 1) < 0.12, foreseen
    assert abs(foreseen.bird / bird - 1) < (0.4 if ms == 0 else 0.12), foreseen
    assert foreseen.ends == ""


def test_other_starts_that_were_measured():
    """The last with Calico's data in etcd."""
    ms, nodes, felix, bird = WITH_TUNNEL
    tunnel = startup("3.31.0", "kubernetes", late(ms / 1000), nodes, True, tunnels=1)
    assert abs(tunnel.felix / felix - 1) < 0.12 and abs(tunnel.bird / bird - 1) < 0.12 and tunnel.requests == 43
    for ms, nodes, first, felix, bird in OLD:
        old = startup("3.22.0", "kubernetes", late(ms / 1000), nodes, first)
        assert abs(old.felix / felix - 1) < 0.15 and abs(old.bird / bird - 1) < 0.12, old
    for seconds, felix in ((0.3, 10.3), (0.6, 17.5)):
        etcd = startup("3.31.0", "etcd", late(seconds), 501, False, etcd=Latency(0.0, 0.0, seconds))
        assert abs(etcd.felix / felix - 1) < 0.2, etcd


@pytest.mark.parametrize(
    ("version", "datastore", "latency", "etcd", "ends"),
    [
        ("3.31.0", "kubernetes", late(1.9), None, False),
        ("3.31.0", "kubernetes", late(2.2), None, True),
        ("3.11.0", "kubernetes", late(2.2), None, False),
        ("3.31.0", "kubernetes", Latency(0.1, 12.0, 0.1), None, True),
        ("3.31.0", "etcd", late(1.0), late(0.1), True),  # its first request to the API server has to connect as well
        ("3.31.0", "etcd", late(0.5), late(0.1), False),
    ],
)
def test_when_it_gives_up_by_itself(version, datastore, latency, etcd, ends):
    assert bool(startup(version, datastore, latency, 3, etcd=etcd).ends) is ends


def test_an_old_calico_reads_key_by_key():
    assert startup("2.6.1", "etcd", Latency(), 53, True).requests == 20 + 6 * 53
    assert startup("2.6.1", "etcd", Latency(), 53, False).requests == 26
    assert startup("2.6.1", "kubernetes", Latency(), 53, False).requests > 5


SECONDS = st.floats(0, 30)
LATENCIES = st.builds(Latency, SECONDS, SECONDS, SECONDS)


@given(
    st.one_of(st.none(), st.text(max_size=12), st.sampled_from(["3.22.0", "v3.31", "2.6", "0.0"])),
    st.sampled_from(["kubernetes", "etcd", "", None]),
    LATENCIES,
    st.booleans(),
)
def test_any_of_it_gives_a_time(version, datastore, latency, first):
    near, far = startup(version, datastore, latency, 10, first), startup(version, datastore, latency, 5000, first)
    assert 0 < near.felix < near.bird and near.felix <= far.felix and math.isfinite(far.bird)
    assert near.felix >= startup(version, datastore, latency, 10, False).felix
    slower = startup(version, datastore, latency._replace(answer=latency.answer + 1), 10, first)
    assert slower.felix > near.felix


# -- the kubelet's patience --------------------------------------------------------------------------------------------

MANIFEST = {"liveness": {"how": "exec", "what": "/bin/calico-node -felix-live -bird-live", "delay_s": 10, "period_s": 10, "failures": 6}}
OPERATOR = {"liveness": {"how": "http", "what": "localhost:9099/liveness", "delay_s": 0, "period_s": 60, "failures": 3}}
OLD_OPERATOR = {"liveness": {"how": "http", "what": "localhost:9099/liveness", "delay_s": 0, "period_s": 10, "failures": 3}}
WITH_STARTUP = {**OPERATOR, "startup": {"how": "exec", "what": "-felix-ready -bird-ready", "delay_s": None, "period_s": 2, "failures": 150}}


@pytest.mark.parametrize(
    ("probes", "earliest", "latest", "bird"),
    [
        (MANIFEST, 60, 70, True),
        (OPERATOR, 120, 180, False),
        (OLD_OPERATOR, 20, 30, False),
        (WITH_STARTUP, 298, 300, True),
        ({"liveness": {}}, None, None, None),
    ],
)
def test_when_the_kubelet_kills(probes, earliest, latest, bird):
    waits = patience(probes)
    assert (waits and (waits.earliest, waits.latest, waits.needs_bird)) == (earliest and (earliest, latest, bird))


@given(st.floats(1, 2000), st.floats(1, 3), st.integers(0, 300), st.integers(1, 120), st.integers(1, 200))
def test_what_would_do_does(seconds, spare, delay, period, failures):
    waits = patience({"liveness": {"delay_s": delay, "period_s": period, "failures": failures}})
    more, longer = would_do(seconds, waits, spare)
    with_more = patience({"liveness": {"delay_s": delay, "period_s": period, "failures": more}})
    with_longer = patience({"liveness": {"delay_s": longer, "period_s": period, "failures": failures}})
    assert with_more.earliest >= seconds * spare - 1e-6 and with_longer.earliest >= seconds * spare - 1e-6
    assert more >= failures and longer >= delay


def test_the_table_of_steps_is_whole():
    """Whatever the version, each start reads its node and the pools."""
    for version in ("3.0.0", "3.13.0", "3.22.0", "3.31.0", "3.99.0"):
        number = _startup_time.numbers(version)
        steps = [
            what for what, since, until, only, _new, _count in _startup_time.STARTUP if since <= number and (until is None or number < until) and only != "etcd"
        ]
        assert {"reads its node", "reads the pools", "writes its node"} <= set(steps) and len(steps) == len(set(steps)), version
