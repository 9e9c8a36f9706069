# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. One step of a restart, and how to tell that it has worked."""

from __future__ import annotations

import os
import signal

from ..._node import whole
from ..._probes import kubelet
from ..._probes.runtime._answers import ask
from ..._probes.runtime._processes import status
from .. import Failed
from ._look import ROWS
from ._plan import CONTINUE, RESTART

TELL_S = 30  # what systemd gets to take an order
KILL_AFTER_S = 30  # then a process that does not end is ended; systemd by itself takes 90 s, or for ever where the unit says so
ALONE = ("containerd", "docker", "cri-dockerd", "crio")  # those that hold nothing but the runtime: k3s may be a member of etcd, too
NETWORKS = ("/etc/cni/net.d/*.conf*", "/var/lib/rancher/*/agent/etc/cni/net.d/*.conf*", "/var/snap/microk8s/current/args/cni-network/*.conf*")


def do(node, step):
    """Give the order; what becomes of it is looked at later. Notes in the step what it was before."""
    if step["act"] == CONTINUE:
        return _go_on(node, step)
    unit = node.unit(step["unit"])
    step["was"] = whole(unit.get("MainPID", "")) or 0
    if unit.get("ActiveState") == "failed":
        node.run(["systemctl", "reset-failed", step["unit"]], TELL_S)
    answer = node.run(["systemctl", "--no-block", step["act"], step["unit"]], TELL_S)
    if not answer.ok:
        raise Failed("systemctl %s %s: %s" % (step["act"], step["unit"], answer.err.strip() or answer.state))
    return None


def _go_on(node, step):
    for pid in step["pids"]:
        if _state(node, pid) == b"T":
            os.kill(pid, signal.SIGCONT)
    node.sleep(0.2)
    still = [pid for pid in step["pids"] if _state(node, pid) == b"T"]
    if still:
        raise Failed("process %d of %s is stopped again as soon as it is told to go on: somebody holds it" % (still[0], step["unit"]))


def _state(node, pid):
    one = status(node.glance("/proc/%d/stat" % pid, 1024))
    return one[1] if one else None


def insist(node, step, since):
    """End the main process, and no other, where it does not end although it was told to."""
    pid = step.get("was")
    if step["act"] != RESTART or step["runtime"] not in ALONE or since < KILL_AFTER_S or step.get("killed") or not pid or _main(node, step["unit"]) != pid:
        return False
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _main(node, unit):
    return whole(node.unit(unit).get("MainPID", "")) or 0


def marks(node, steps):
    """{unit: its main process and how often systemd has restarted it}: they stay the same where all is well."""
    return {step["unit"]: [node.unit(step["unit"]).get(key, "") for key in ("MainPID", "NRestarts")] for step in steps}


def lacking(node, step):
    """What is waited for until this step's daemon is well; None where it is."""
    if step["runtime"] == "kubelet":
        return kubelet_lacks(node, step["unit"])
    unit = node.unit(step["unit"])
    if not unit:
        return "%s: systemd to answer" % step["unit"]
    if step["act"] == RESTART and "since" in step and step.get("was") and _main(node, step["unit"]) == step["was"]:
        return "%s: its process %d to end" % (step["unit"], step["was"])
    if unit.get("ActiveState") != "active":
        return "%s: to be active; it is %s (%s)" % (step["unit"], unit.get("ActiveState"), unit.get("SubState"))
    said = node.look("answer", ask(step["socket"], ROWS.get(step["runtime"], {"kind": "cri"})["kind"]))
    missing = _missing(node, said)
    return "%s: %s" % (step["unit"], missing) if missing else None


def _missing(node, said):
    if not said or said["state"] != "answered":
        return "an answer"
    if "listed" in said:
        return None if said["listed"] and not said.get("refusal") else "a list of its containers"
    if said.get("api") != "v1":  # it serves no kubelet of today, and did not before
        return None
    conditions = said.get("conditions") or {}
    if not (conditions.get("RuntimeReady") or {}).get("ready"):
        return "RuntimeReady"
    network = conditions.get("NetworkReady") or {}
    if not network.get("ready") and any(node.glob(pattern) for pattern in NETWORKS):
        return "NetworkReady; it says: %s" % (network.get("message") or network.get("reason") or "nothing")
    return None


def kubelet_lacks(node, unit):
    """What a kubelet lacks that is asked by its own health check, or where that is off, by systemd."""
    said = node.look("healthz", kubelet.healthz)
    if said and said["state"] == "answered" and said["code"] == 200:
        return None
    if said and said["state"] in ("off", "not asked"):
        state = node.unit(unit).get("ActiveState")
        return None if state == "active" else "%s: to be active; it is %s" % (unit, state)
    return "%s: its health check" % unit
