# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the rules about runtimes have in common: names, ages, versions, and which runtime the kubelet is told to use."""

from __future__ import annotations

import re

from ..._policy import threshold

JOURNAL_AGE = threshold("runtime_journal_age_s", 3600, "Seconds for which a complaint in a runtime's journal counts.")

CONTAINERDS = ("containerd", "k3s", "rke2", "microk8s", "k0s")
NO_RUNTIME = "no container runtime is installed"
NO_UNIT = "systemd knows of no container runtime"
ONE_NODE = "  # one node at a time, cordoned before"
USUAL = {"containerd": "/run/containerd/containerd.sock", "crio": "/run/crio/crio.sock"}


def pointed_at(endpoints, kubelet, settings):
    """The sockets that the kubelet is told to use. Its default counts once it has joined."""
    found = list(endpoints or [])
    endpoint = (settings or {}).get("runtime_endpoint")
    told = (settings or {}).get("from", {}).get("runtime_endpoint", "default") != "default"
    if isinstance(endpoint, str) and (kubelet or {}).get("variant") == "kubelet" and (told or kubelet.get("joined")):
        found.append(endpoint)
    return list(dict.fromkeys(map(plain, found)))


def plain(endpoint):
    path = endpoint.partition("://")[2] if "://" in endpoint else endpoint
    return path[4:] if path.startswith("/var/run/") else path


def at_least(version, *parts):
    """Whether a version such as v1.36.3 is that or newer; false where there is none."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", str(version or ""))  # v2.1.4-k3s1, 1.6.12~ds1
    return bool(match) and [int(word) for word in match.group(1).split(".")][: len(parts)] >= list(parts)


def recent(complaint, policy):
    return complaint.get("age_s") is None or complaint["age_s"] <= policy[JOURNAL_AGE]


def span(seconds):
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return "%d %s" % (seconds // size, name)
    return "%d s" % seconds
