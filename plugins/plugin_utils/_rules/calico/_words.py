# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the complaints mean with which the logs of Calico's containers end."""

from __future__ import annotations

# By the signature that the probe gives it; the one that names its cause most surely comes first.
MEANINGS = {
    "address_conflict": "two nodes chose one address, or a Node that is gone owns it: see calico.address_conflict",
    "bad_method": "the detection method is not one of Calico's: see calico.no_address",
    "no_address": "its method finds no address here: see calico.no_address",
    "not_local": "its method gives an address that no link here has: see calico.no_address",
    "unaddressed": "IP=none leaves it without an address: see calico.no_address",
    "unauthorized": "its token or its rights are refused: a restart brings a new token; compare its ClusterRole",
    "node_resource": "it may not write its Node: compare the ClusterRole calico-node (nodes/status)",
    "api_slow": "the API server takes longer than the fixed 2 s to answer",
    "ipam_upgrade": "bringing its addresses up to date took longer than 90 s: the datastore is slow",
    "datastore_retry": "it does not reach the API server or etcd: see cluster.service_path",
    "datastore_locked": "datastoreReady is false: see calico.datastore_not_ready",
    "cni_token": "it does not reach the API server: see cluster.service_path",
    "cni_folder": "/opt/cni/bin cannot be written on this node",
    "shared_mount": "a mount of this node is not shared: mount --make-rshared /",
    "node_name_missing": "its pod does not name the node: compare its manifest",
    "ipam_migration": "see calico.ipam_migration",
    "tunnel_address": "no address is left for its tunnel: the IP pool is full or disabled",
    "typha": "no Typha is reached: see calico.typha",
    "bind": "its address or its port is not free on this node",
    "rpf_loose": "net.ipv4.conf.all.rp_filter is 2, which Calico before 3.12 refuses",
    "iptables": "a kernel module is missing, or backends are mixed: see host.kernel_modules and host.iptables_mix",
    "ipset": "the host's ipset is newer than the image's: a newer Calico, or a reboot, helps",
    "reporter": "a part of Felix does not get on: see calico.felix",
}
EARLY = ("begun", "named", "asking", "connected", "addressed", "registered")  # stages of a start-up that did not come to its end


def logs_of(logs, pod, container):
    """The logs of one container of a pod, the newest attempt first."""
    name = "%s/%s" % (pod["namespace"], pod["name"])
    found = [one for one in logs or [] if one.get("container") == container and one.get("pod") in (name, None)]
    return sorted(found, key=lambda one: -(one.get("attempt") or 0))


def lines_of(logs):
    """What these logs complain about and end with."""
    told = [complaint["line"] for one in logs for complaint in one.get("complaints") or [] if not complaint.get("over")]
    return told + [one["line"] for one in logs if one.get("line")]


def explained(logs):
    """The complaint that tells most, with what it means; nothing where none is known."""
    told = [complaint for one in logs for complaint in one.get("complaints") or [] if not complaint.get("over")]
    for signature, meaning in MEANINGS.items():
        found = next((one for one in told if one["signature"] == signature), None)
        if found:
            return "; its log says: %s (%s)" % (found["line"], meaning)
    return ""


def ended_early(logs):
    """Where a start-up that was killed left its log."""
    found = next((one for one in logs if one.get("stage") in EARLY), None)
    if found is None:
        return ""
    ran = (found.get("begun_s") or 0) - (found.get("ended_s") or 0)
    return "; its log ends after %d s with: %s" % (max(0, ran), found.get("line"))
