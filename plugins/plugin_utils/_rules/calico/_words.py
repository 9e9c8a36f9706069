# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the lines mean that Calico's containers end with."""

from __future__ import annotations

import re

LATELY = 3600  # seconds for which a complaint in a log tells about now

# The surest first: a line that names its cause before one that only tells that something failed.
MEANINGS = (
    (r"is already using the IPv[46] address", "two nodes detected the same address, or a Node that is gone still owns it: see calico.address_conflict"),
    (
        r"Couldn't autodetect an IPv[46] address|[Uu]nable to auto-detect (an )?IPv[46] address",
        "its detection method finds no address here: see calico.no_address",
    ),
    (r"Invalid IP autodetection method", "the detection method is not one of Calico's: see calico.no_address"),
    (r"[nN]o IPv4 or IPv6 addresses configured or detected, required", "IP=none leaves it without an address: see calico.no_address"),
    (
        r"failed to query kubeadm's config map|failed to query Rancher's|Failed to read Node from datastore",
        "the API server takes longer than the fixed 2 s to answer",
    ),
    (r"Hit error connecting to datastore", "it does not reach the API server or etcd: see cluster.service_path"),
    (
        r"Connection to the datastore is unauthorized|connection is unauthorized",
        "its token or its rights are refused: restart it for a new token, and compare its ClusterRole",
    ),
    (r"Unable to set node resource configuration", "it may not write its Node: compare the ClusterRole calico-node (nodes/status)"),
    (r"Unable to upgrade host's IPAM resources", "bringing its IPAM up to date took longer than 90 s: the datastore is slow"),
    (r"name must consist of lower case", "its node name is not valid: see calico.name"),
    (r"Unable to autoassign an (IPv4 |IPv6 )?address", "no address is left for its tunnel: the IP pool is full or disabled"),
    (r"Waiting for datastore to be initialized", "datastoreReady is false: see calico.datastore_not_ready"),
    (r"RPF check is set to 'loose'", "net.ipv4.conf.all.rp_filter is 2, which Calico before 3.12 refuses"),
    (
        r"Couldn't load (match|target)|Failed to program iptables",
        "a kernel module is missing, or two iptables backends are mixed: see host.kernel_modules and host.iptables_mix",
    ),
    (r"not supported by userspace|Bad return code from 'ipset list", "the host's ipset is newer than the image's: a newer Calico, or a reboot, helps"),
    (r"Failed to connect to Typha|Typha discovery enabled but discovery failed", "no Typha is reached: see calico.typha"),
    (r"bind: (cannot assign|address already in use)", "its address or port is not free on this node"),
    (r"Unable to create token for CNI kubeconfig", "it does not reach the API server: see cluster.service_path"),
    (r"failed to migrate ipam", "see calico.ipam_migration"),
    (r"found no writeable directory", "/opt/cni/bin cannot be written on this node"),
    (r"Error (initializing|verifying) datastore|Error reaching apiserver", "the API server is slow, or not reached from its pod"),
)
COMPILED = [(re.compile(pattern), meaning) for pattern, meaning in MEANINGS]


def noticed(logs):
    """The lines of the containers' logs that may tell something, in their order: of each its known complaints of late, and its last."""
    found = []
    for one in logs or []:
        complaints = [said for said in one.get("complaints") or [] if not said["over"] and (said["age_s"] or 0) <= LATELY]
        found += [said["line"] for said in complaints] + [one.get("line") or ""]
    return found


def explained(lines):
    """The line that tells most, with what it means; nothing where none is known."""
    for pattern, meaning in COMPILED:
        line = next((line for line in reversed(lines) if pattern.search(line)), None)
        if line:
            return "; its log says: %s (%s)" % (" ".join(line.split()), meaning)
    return ""
