# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How long calico-node takes from its container's start until its liveness probe can succeed, and how long the kubelet waits for that.

Start-up is two programs, one after the other, that ask the API server one thing at a time over one connection each; then
runit starts Felix, which answers on port 9099 at once, and BIRD, which waits until confd has read the datastore. So its time is
the latency times a number of requests that hardly varies, plus what the programs themselves need. The requests were counted
with 3.31.0 and 3.22.0, in the audit log of an API server; those of other versions were read in the sources.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

OLDEST, NEWEST = (3, 0, 0), (9999, 0, 0)
PAGE = 500  # nodes in one answer
WORK = 1.8  # seconds that start-up takes where the API server answers at once; most of them runit's
BIRD_WORK = 2.0  # the same from Felix's answer to BIRD's
PER_NODE = 0.0003  # seconds for each node in a list, on both sides together
NODE_BYTES, FIRST_BURST = 2000, 14600  # of a Node in a compressed list; what TCP sends before it waits for the other side
PATIENCE, PATIENT_SINCE = 2.0, (3, 12, 0)  # seconds that some of its requests may take; they end start-up
HANDSHAKE = 10.0  # seconds that Go gives a TLS handshake

KUBERNETES, ETCD, OLD_ETCD = "kubernetes", "etcd", "etcdv2"

# what start-up does; since which version, until before which; for which datastore; only at a first start or when the address changed; requests
STARTUP = (
    ("waits for the datastore", (3, 0, 0), None, KUBERNETES, False, 1),
    ("looks for data of an older Calico", (3, 0, 0), None, KUBERNETES, False, 1),
    ("brings its IPAM up to date", (3, 31, 0), None, None, False, 1),
    ("reads its node", (3, 0, 0), None, None, False, 1),
    ("reads kubeadm's and Rancher's settings, and its Node", (3, 13, 0), None, None, False, 3),
    ("writes its node", (3, 31, 0), None, KUBERNETES, True, 2),
    ("writes its node", (3, 0, 0), (3, 31, 0), KUBERNETES, False, 2),
    ("writes its node", (3, 0, 0), None, ETCD, False, 1),
    ("reads the pools", (3, 0, 0), None, None, False, 1),
    ("reads the cluster's and Felix's settings", (3, 0, 0), None, KUBERNETES, False, 2),
    ("reads the cluster's and Felix's settings", (3, 0, 0), None, ETCD, False, 3),
    ("makes the tiers", (3, 29, 0), None, None, False, 3),
    ("marks the network available", (3, 4, 1), (3, 31, 0), None, False, 1),
)
TUNNELS = (
    ("reads its node and the pools", (3, 0, 0), None, None, False, 2),
    ("looks for the addresses of its tunnels", (3, 0, 0), (3, 23, 0), None, False, 3),
    ("looks for the addresses of its tunnels", (3, 23, 0), None, None, False, 5),
)
NEW_TUNNEL, NEXT_TUNNEL = 17, 9  # requests for a tunnel's first address, with a new block and with one that is there
BEFORE_3, EACH_NODE_BEFORE_3 = 20, 6  # keys that 2.x reads one after the other, and those of each node


class Latency(NamedTuple):
    """Seconds of one step towards a server: to connect, to agree on keys, to answer."""

    connect: float = 0.0
    tls: float = 0.0
    answer: float = 0.0

    @property
    def joined(self):
        return self.connect + self.tls


class Startup(NamedTuple):
    """``felix`` is when port 9099 answers, ``bird`` when BIRD does too; ``ends`` the message with which start-up itself gives up, else empty."""

    felix: float
    bird: float
    requests: int
    pages: int
    connections: int
    ends: str


def startup(version, datastore, latency, nodes, first=True, tunnels=0, etcd=None):
    """What a start costs. ``first`` where the node's address is new to Calico, ``tunnels`` how many kinds of them the pools ask for.

    ``latency`` is that towards the API server, ``etcd`` that towards Calico's own etcd, where it has one.
    """
    number = numbers(version)
    store = KUBERNETES if datastore != ETCD else OLD_ETCD if number < OLDEST else ETCD
    number = max(number, OLDEST)  # of the older ones only etcd was another story
    data = etcd or latency if store != KUBERNETES else latency
    pages = _pages(store, nodes, first)
    before, kubernetes = _counted(STARTUP, number, store, first)
    after, _none = _counted(TUNNELS, number, store, first)
    if store == OLD_ETCD:
        before, kubernetes, after = BEFORE_3 + EACH_NODE_BEFORE_3 * (nodes if first else 1), 0, 0
    elif first and tunnels:
        after += NEW_TUNNEL + NEXT_TUNNEL * (tunnels - 1) + 2
    requests, connections = before + after, 2 if after else 1
    seconds = WORK + (requests + pages) * data.answer + connections * (data.joined + (data.answer if store == ETCD else 0))
    if store == ETCD and kubernetes:  # the API server is asked as well, over a connection of its own
        seconds += latency.joined + kubernetes * latency.answer
        requests, connections = requests + kubernetes, connections + 1
    if pages:
        seconds += nodes * PER_NODE + _rounds(nodes) * data.connect
    bird = seconds + BIRD_WORK + data.joined + 3 * data.answer + nodes * PER_NODE
    ends = _ends(number, store, latency, kubernetes)
    return Startup(round(seconds, 2), round(bird, 2), requests + pages, pages, connections, ends)


def _counted(steps, number, store, first):
    """(requests to the datastore, requests to the API server where that is another)"""
    data = other = 0
    for what, since, until, only, new, count in steps:
        if since <= number and (until is None or number < until) and only in (None, store) and (first or not new):
            if store == ETCD and what in OF_KUBERNETES:
                other += count
            else:
                data += count
    return data, other


OF_KUBERNETES = ("reads kubeadm's and Rancher's settings, and its Node", "marks the network available")


def _pages(store, nodes, first):
    """Answers in which all nodes come: Kubernetes' are paged, etcd's are not, and the oldest Calico read key by key."""
    if not first or store == OLD_ETCD:
        return 0
    return max(1, math.ceil(nodes / PAGE)) if store == KUBERNETES else 1


def _rounds(nodes):
    """How often the other side waits until a long list is on its way: it sends twice as much each time."""
    return max(0, math.ceil(math.log2(1 + min(nodes, PAGE) * NODE_BYTES / FIRST_BURST)) - 1)


def _ends(number, store, latency, kubernetes):
    """Three requests have two seconds each, and nobody waits for a handshake longer than ten; with etcd the first of the three has to connect as well."""
    if latency.tls >= HANDSHAKE or latency.connect >= HANDSHAKE * 3:
        return "TLS handshake timeout"
    asked = kubernetes if store == ETCD else store == KUBERNETES
    if asked and number >= PATIENT_SINCE and latency.answer + (latency.joined if store == ETCD else 0) >= PATIENCE:
        return "failed to query kubeadm's config map"
    return ""


def numbers(version):
    """3.31.0 as numbers; the newest where nothing is known."""
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", str(version or ""))
    return tuple(int(part or 0) for part in found.groups()) if found else NEWEST


# -- the kubelet's patience --------------------------------------------------------------------------------------------


class Patience(NamedTuple):
    """From a container's start: when the kubelet kills it at the earliest, and at the latest, if its probe never succeeds."""

    earliest: float
    latest: float
    delay: float
    period: float
    failures: int
    by: str  # liveness or startup
    needs_bird: bool


def patience(probes):
    """That of a container's probes; None where none can kill it. A startup probe holds the liveness probe back until it has succeeded.

    Probes come at fixed intervals that began before the container, so the first may come as soon as the delay is over or a
    whole period later.
    """
    for by in ("startup", "liveness"):
        probe = (probes or {}).get(by)
        if probe:
            delay, period, failures = (float(probe.get(name) or least) for name, least in (("delay_s", 0), ("period_s", 10), ("failures", 3)))
            earliest = delay + (failures - 1) * period
            return Patience(earliest, earliest + period, delay, period, int(failures), by, "bird" in str(probe.get("what")))
    return None


MOST_FAILURES = 30  # more would let a calico-node that hangs stay for minutes: a delay only counts at the start


def setting(by, failures, delay):
    """Which of the two to set, and of which probe."""
    return {by + "Probe": {"initialDelaySeconds": delay} if by == "liveness" and failures > MOST_FAILURES else {"failureThreshold": failures}}


def would_do(seconds, patience, spare):
    """(failureThreshold, or else initialDelaySeconds) with which a start that takes so long has ``spare`` times that."""
    wanted = seconds * spare
    failures = max(patience.failures, math.ceil((wanted - patience.delay) / patience.period) + 1)
    delay = max(patience.delay, math.ceil((wanted - (patience.failures - 1) * patience.period) / 10) * 10)
    return failures, int(delay)
