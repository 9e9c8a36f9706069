# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who has a BGP session with whom: BIRD's own words where it was read, else what the readiness probe complains about."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

from ... import _cluster
from ..._policy import threshold

SETTLING = threshold("calico_settling_s", 120.0, "Seconds after the start of a pod within which nothing is expected of it yet.")
COMPLAINT_AGE = threshold("calico_complaint_age_s", 900.0, "Seconds for which an event about a pod that is not ready counts as its state.")

COMPLAINT = re.compile(r"BGP not established with ([0-9a-fA-F:.,\s]+)")
NO_BIRD = re.compile(r"unable to connect to BIRDv[46] socket[^,;]*")


class Session(NamedTuple):
    """One end's view of a session."""

    up: bool
    state: str
    info: str

    def __str__(self):
        return ", ".join(part for part in (self.state, self.info) if part)


class Member:
    """One node of the cluster with all that is known of it."""

    def __init__(self, name, cluster, bird, links, read, policy):
        self.name, self.cluster, self.bird, self.read, self.policy = name, cluster, bird, read, policy
        self.node = cluster.get("node") or {}
        self.held = _cluster.held_by(links) if links else None

    @cached_property
    def registered(self):
        """The addresses that Calico keeps for it; where it keeps them in etcd, those with which its BIRD speaks."""
        return _cluster.registered(self.node) or {one.version: one for one in _sources(self.bird)}

    @cached_property
    def internal(self):
        return _cluster.internal(self.node)

    @cached_property
    def pod(self):
        return _cluster.pod_of(self.node)

    @cached_property
    def settling(self):
        """Whether its calico-node has just been started, for the first time or after it ran well for long."""
        if self.pod is None:
            return _cluster.younger(self.cluster, self.node.get("created"), self.policy[SETTLING])
        main = _cluster.container(self.pod) or {}
        last = main.get("last") or {}
        ran = (last.get("until") or 0) - (last.get("from") or 0)
        calm = not main.get("restarts") or ran >= 5 * self.policy[SETTLING]
        return calm and any(_cluster.younger(self.cluster, when, self.policy[SETTLING]) for when in (self.pod.get("created"), main.get("since")))

    @cached_property
    def complaint(self):
        """What the readiness probe said last, as long as the pod is not ready."""
        if self.pod is None or self.pod.get("ready"):
            return ""
        said = [one for one in _cluster.events(self.node, self.pod) if one.get("reason") == "Unhealthy" and "BIRD" in (one.get("message") or "")]
        passed = _cluster.age(self.cluster, said[0].get("last")) if said else None
        return said[0]["message"].strip() if said and (passed is None or passed <= self.policy[COMPLAINT_AGE]) else ""

    @cached_property
    def told(self):
        """{peer's address: Session} as its BIRD tells them, None where no BIRD was heard."""
        return protocols(self.bird)

    @cached_property
    def sessions(self):
        """{peer's address: Session}"""
        if self.told is not None:
            return self.told
        match = COMPLAINT.search(self.complaint)
        peers = filter(None, map(_cluster.address, re.split(r"[,\s]+", match.group(1)))) if match else ()
        return dict.fromkeys(peers, Session(False, "", ""))

    def has(self, other, family=None):
        """Whether a session with that node is up, seen from here; in one family only, or in any."""
        addresses = [one for one in (*other.registered.values(), *other.internal) if family in (None, one.version)]
        return any(address in self.sessions and self.sessions[address].up for address in addresses)

    @cached_property
    def silent(self):
        """The sockets of BIRD that gave no answer, as [(path, what happened)]; that for IPv6 does not matter where there is no such address."""
        met = [(socket["path"], socket.get("state")) for socket in (self.bird or {}).get("sockets", [])]
        return [(path, state) for path, state in met if state in ("refused", "hung") and (6 in self.registered or not path.endswith("bird6.ctl"))]

    @cached_property
    def works(self):
        """Whether other nodes reach BIRD here under the registered address: it has a session, or the readiness probe found one."""
        if self.told is not None:
            return any(one.up for one in self.sessions.values())
        return bool(self.pod and self.pod.get("ready") and not self.settling)


def protocols(bird):
    """{peer's address: Session} as BIRD tells them, None where no BIRD was heard."""
    heard = [socket["protocols"] for socket in (bird or {}).get("sockets", []) if socket.get("protocols") is not None]
    rows = {_cluster.address(one.get("peer")): _session(one.get("state"), one.get("up"), one.get("info")) for told in heard for one in told}
    rows.pop(None, None)
    return rows if heard else None


def _sources(bird):
    rows = [one for socket in (bird or {}).get("sockets", []) for one in socket.get("protocols") or []]
    return filter(None, {_cluster.address(one.get("source")) for one in rows})


@lru_cache(1 << 10)
def _session(state, up, info):
    """In a mesh of a thousand nodes most rows say the same."""
    return Session(state == "Established", state or up or "", info or "")
