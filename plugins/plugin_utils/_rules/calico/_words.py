# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the complaints mean with which the logs of Calico's containers end."""

from __future__ import annotations

from .complaints import COMPLAINTS

# By the signature that the probe gives them, those that tell their cause most surely first; the others come in the table's order.
SUREST = ("address_conflict", "bad_method", "no_address", "not_local", "unaddressed", "unauthorized", "node_resource", "api_slow", "ipam_upgrade")
LOGS = "kubectl -n %(namespace)s logs %(pod)s -c %(container)s"
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
    told = {one["signature"]: one["line"] for log in logs for one in log.get("complaints") or [] if not one.get("over")}
    signature = next((one for one in (*SUREST, *COMPLAINTS) if one in told and one != "failed_to_start"), None)
    return "; its log says: %s (%s)" % (told[signature], COMPLAINTS[signature][1]) if signature else ""


def ended_early(logs):
    """Where a start-up that was killed left its log."""
    found = next((one for one in logs if one.get("stage") in EARLY), None)
    if found is None:
        return ""
    ran = (found.get("begun_s") or 0) - (found.get("ended_s") or 0)
    return "; its log ends after %d s with: %s" % (max(0, ran), found.get("line"))


def initialising(pod):
    """(its number, the init container that has not ended well), or none of both."""
    for number, one in enumerate((pod or {}).get("init") or []):
        if one.get("state") != "terminated" or one.get("exit_code"):
            return number, one
    return None, None


def about(pod, container):
    """What a finding says of a container, so that its commands can name it."""
    return {"pod": pod["name"], "namespace": pod["namespace"], "container": container["name"], "restarts": container.get("restarts")}


def one_line(text):
    return " ".join(text.split())
