# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The ends of the logs of calico-node's containers and of the CNI plugin: how far they came, and known complaints."""

from __future__ import annotations

import calendar
import json
import re

from ..._node import whole

PODS = ("calico-node-", "canal-", "rke2-canal-")
FOLDER = "/var/log/pods"
CNI = "/var/log/calico/cni/cni.log"
TAIL = 1 << 16
MOST_CONTAINERS = 12
ATTEMPTS = 2  # the kubelet keeps the log of the attempt before

# What calico-node says on its way, in this order.
STAGES = (
    ("begun", ("Early log level set", "Starting node ")),
    ("named", ("Determined node name", "Using NODENAME environment", "Using stored node name", "Using HOSTNAME environment")),
    ("asking", ("Checking datastore connection",)),
    ("connected", ("Datastore connection verified",)),
    ("addressed", ("Using autodetected IPv", "Using IPv4 address from environment")),
    ("registered", ("Using node name:",)),
    ("started", ("Calico node started successfully",)),
    ("running", ("felix/", "bird: ", "confd/")),
)
# What a container says at the end of its work: complaints before it are over.
DONE = ("Calico node started successfully", "migration from host-local to calico-ipam complete", "Done configuring CNI")

# what it means, words that must be in the line, and how exactly it is said where these words are not enough
SIGNATURES = (
    ("no_address", ("Couldn't autodetect an IPv", "Unable to auto-detect "), r"Couldn't autodetect an IPv[46]|Unable to auto-detect (an )?IPv[46]"),
    ("not_local", ("does not match any addresses found on local interfaces",), None),
    ("bad_method", ("Invalid IP autodetection method",), None),
    ("address_conflict", ("is already using the IPv",), None),
    ("name_twice", ("This could happen if there are multiple nodes with the same name",), None),
    ("unconfirmed", ("Unable to confirm IPv",), None),
    ("unaddressed", ("addresses configured or detected, required for Calico",), None),
    ("unauthorized", ("Connection to the datastore is unauthorized",), None),
    ("datastore_retry", ("Hit error connecting to datastore - retry",), None),
    ("api_slow", ("failed to query kubeadm's config map", "failed to query Rancher's", "Failed to read Node from datastore"), None),
    ("node_resource", ("Unable to set node resource configuration",), None),
    ("ipam_upgrade", ("Unable to upgrade host's IPAM resources",), None),
    ("tunnel_address", ("Unable to autoassign an",), None),
    ("failed_to_start", ("Calico node failed to start",), None),
    ("datastore_locked", ("Waiting for datastore to be initialized",), None),
    ("rpf_loose", ("RPF check is set to 'loose'",), None),
    ("iptables", ("Failed to program iptables", "Couldn't load match", "Couldn't load target"), None),
    ("ipset", ("Bad return code from 'ipset list", "not supported by userspace"), None),
    ("mtu", ("Failed to auto-detect host MTU",), None),
    ("reporter", ("Reporter is not ",), r"WARN.*Reporter is not (live|ready)"),
    ("typha", ("Failed to connect to Typha", "Typha discovery enabled but discovery failed"), None),
    ("bind", ("Socket error: bind: ",), None),
    ("ipam_migration", ("failed to migrate ipam, retrying",), None),
    ("node_name_missing", ("KUBERNETES_NODE_NAME not specified",), None),
    ("cni_token", ("Unable to create token for CNI kubeconfig",), r"Unable to create token for CNI kubeconfig(?! as )"),
    ("cni_folder", ("found no writeable directory",), None),
    ("shared_mount", ("is not a shared mount",), None),
    ("cni_unauthorized", ("connection is unauthorized",), r"error getting ClusterInformation: connection is unauthorized"),
    ("cni_not_ready", ("Calico is currently not ready to process requests",), None),
    ("cni_no_addresses", ("failed to request ",), r"failed to request (\d+ )?IPv[46] addresses"),
    ("cni_route", ("already exists for an interface other than",), None),
    ("cni_nodename", ("check that the calico/node container is running and has mounted",), None),
)


def logs(node):
    """[{pod, container, attempt, begun_s, ended_s, line, stage, complaints}] of the newest calico-node, the log that ended last at the end.

    Of each container there are the newest two attempts; the CNI plugin's own log has the container "cni" and no pod.
    ``begun_s`` and ``ended_s`` are the ages of a log's first and last line, ``line`` is the last line's message, ``stage`` how far
    calico-node came (see STAGES; None for others). A complaint is {signature, count, age_s, line, over}, in the order of
    SIGNATURES: ``over`` where the container said later that its work is done. None where nobody may look.
    """
    folder = newest(node, [FOLDER + "/" + name for name in node.list(FOLDER) if name.count("_") == 2 and name.split("_")[1].startswith(PODS)])
    found = of_pod(node, folder) if folder else []
    if node.exists(CNI):
        found.append({"pod": None, "container": "cni", "attempt": 0, **told(node, CNI, False)})
    unseen = any(one["fact"] == ".".join(node.path) for one in node.problems)
    return None if unseen and not found else sorted(found, key=lambda one: -(one["ended_s"] or 0))


def of_pod(node, folder):
    found, pod = [], "/".join(folder.rsplit("/", 1)[1].split("_")[:2])
    for container in node.list(folder)[:MOST_CONTAINERS]:
        attempts = sorted((whole(name[:-4]) for name in node.list(folder + "/" + container) if re.match(r"\d{1,9}\.log\Z", name)), reverse=True)
        for attempt in attempts[:ATTEMPTS]:
            path = "%s/%s/%d.log" % (folder, container, attempt)
            found.append({"pod": pod, "container": container, "attempt": attempt, **told(node, path, container == "calico-node")})
    return found


def newest(node, paths):
    written = [(found.st_mtime, path) for path in paths for found in [node.stat(path)] if found]
    return max(written)[1] if written else None


def told(node, path, staged):
    """What the end of one log tells."""
    text = node.tail(path, TAIL) or ""
    first = (node.glance(path, 4096) or b"").decode("utf-8", "replace").split("\n", 1)[0]
    lines = [line for line in text.split("\n") if line.strip()]
    at_last, last = parted(lines[-1]) if lines else (None, "")
    now = node.clock()
    if path == CNI:  # its times are in the node's own zone, which only its date tells
        written = node.stat(path)
        now = at_last + now - written.st_mtime if at_last and written else None
    said = {"begun_s": since(now, parted(first)[0]), "ended_s": since(now, at_last), "line": shown(last)}
    return {**said, "stage": stage(text) if staged else None, "complaints": complaints(text, lines, now)}


def since(now, then):
    return None if now is None or then is None else round(now - then)


def stage(text):
    """The last of the stages whose words are there."""
    return next((name for name, words in reversed(STAGES) if any(word in text for word in words)), None)


def complaints(text, lines, now):
    """In the order of the table; age and line are those of the latest."""
    over = max((at for at, line in enumerate(lines) if any(word in line for word in DONE)), default=-1)
    found = []
    for name, words, pattern in SIGNATURES:
        if any(word in text for word in words):
            hits = [at for at, line in enumerate(lines) if any(word in line for word in words) and (not pattern or re.search(pattern, line[:4000]))]
            if hits:
                when, message = parted(lines[hits[-1]])
                found.append({"signature": name, "count": len(hits), "age_s": since(now, when), "line": shown(message), "over": hits[-1] < over})
    return found


def parted(line):
    """(when, message) of a line as containerd and CRI-O, as docker, or as Calico itself writes it; the time is None where it has none."""
    match = re.match(r"(\S{20,40}) (?:stdout|stderr) [FP] ?(.*)", line)
    if match:
        return moment(match.group(1)), match.group(2)
    if line.startswith("{"):
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None, line
        if isinstance(said, dict) and "log" in said:
            return moment(str(said.get("time", ""))), str(said["log"]).rstrip("\n")
    return moment(line[:23]), line


def moment(text):
    """Seconds since 1970 of a date and time, in UTC where nothing else is said; None where it is none."""
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)[.,]?\d*(?:Z|([+-])(\d\d):(\d\d))?", text)
    if not match:
        return None
    try:
        seconds = calendar.timegm(tuple(int(part) for part in match.groups()[:6]) + (0, 0, 0))
    except (ValueError, OverflowError):
        return None
    sign, hours, minutes = match.groups()[6:]
    return seconds - (int(sign + "1") * (int(hours) * 3600 + int(minutes) * 60) if sign else 0)


def shown(message):
    """Without Calico's own time, and without a password that an address may hold."""
    return re.sub(r"://[^/@\s\"]+@", "://…@", re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ ", "", message)).strip()[:300]
