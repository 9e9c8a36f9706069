"""The stories of a wrong address, for real: foreseen while all is well, and the ill node named once it has happened.

With three nodes those that are well stay Ready, and hide the fault.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from labs import BOOT, ROOT, eventually
from mesh import BRIDGE, ILL, SECOND_NIC, WELL, healed, old_start, registered  # noqa: F401 - the fixtures among them


def run(cluster, playbook, where, *options):
    """The report of a playbook that is run as an operator does it."""
    command = cluster.command("exec", "--", Path(sys.executable).with_name("ansible-playbook"), "playbooks/%s.yml" % playbook, "-i", "lab/hosts.sh")
    variables = json.dumps({"nodecare_report_dir": str(where), "nodecare_fail_on": "never"})
    done = subprocess.run([*command, "-e", variables, *options], cwd=ROOT, env=cluster.environment(), text=True, capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return json.loads((where / "report.json").read_text()), done.stdout


def accused(report, rule_id):
    return sorted({one["node"] for one in report["findings"] if one["id"] == rule_id and one["status"] == "fail"})


def first_cause(said):
    """The line that names the first cause, and what follows up to the second."""
    return said.partition("\n 1 ")[2].partition("\n 2 ")[0]


def foreseen_then_diagnosed(cluster, tmp_path, fault, address):
    cluster.do("fault", ILL, fault)
    report, _said = run(cluster, "preflight", tmp_path)
    assert accused(report, "calico.wrong_address") == [ILL]
    (finding,) = (one for one in report["findings"] if one["id"] == "calico.wrong_address" and one["status"] == "fail")
    assert address in finding["message"]
    eventually("Calico to register it", lambda: registered(cluster) == {**WELL, ILL: address}, BOOT)
    report, said = run(cluster, "diagnose", tmp_path)
    assert accused(report, "calico.registered_wrong_address") == [ILL]
    assert accused(report, "calico.bgp") in ([ILL], [])  # sessions may be up over the other network
    assert "%s: " % ILL in first_cause(said).splitlines()[0]
    assert "calico.registered_wrong_address on %s" % ILL in first_cause(said)
    assert "IP_AUTODETECTION_METHOD=" in first_cause(said)


def test_the_second_nic(healed, tmp_path):  # noqa: F811
    """Of today's Calico, whose address monitor looks once a minute."""
    foreseen_then_diagnosed(healed, tmp_path, "wrong-nic", SECOND_NIC)


def test_a_docker_bridge(old_start, tmp_path):  # noqa: F811
    foreseen_then_diagnosed(old_start, tmp_path, "stray-bridge", BRIDGE)
