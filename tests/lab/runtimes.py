"""Playbooks about container runtimes on nodes of the lab, and what is true of these by systemd's word."""

from __future__ import annotations

import json

# A node of the lab is slow, and slower while others use this machine's CPUs; but each look at a silent daemon takes this long, too.
PATIENCE = {"nodecare_timeout": 8, "nodecare_wait": 900, "nodecare_runtime_wait": 600, "nodecare_drain_wait": 90, "nodecare_lock_wait": 1200}


def play(lab, playbook, *words, **variables):
    return lab.play(playbook, *words, **{**PATIENCE, **variables})


def preflight(lab, place, *words, **variables):
    """{rule: status} of the worst findings about runtimes and kubelet."""
    play(lab, "preflight", *words, nodecare_checks=["runtime", "kubelet"], nodecare_report_dir=str(place), nodecare_fail_on="never", **variables)
    order, found = ["fail", "warn", "unknown", "pass", "skip"], {}
    for one in json.loads((place / "report.json").read_text())["findings"]:
        found[one["id"]] = min(found.get(one["id"], "skip"), one["status"], key=order.index)
    return found


def main_process(lab, node, unit="containerd"):
    return lab.on(node, "systemctl show -p MainPID --value %s" % unit)
