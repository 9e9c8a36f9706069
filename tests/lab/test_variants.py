"""The lab with another Debian: what the nodes are then, and that preflight reads them as well as the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from labs import ROOT, Lab, own_name


@pytest.fixture
def lab():
    made = Lab(own_name("v"))
    yield made
    made.do("down")


def test_bookworm(lab, tmp_path):
    """systemd 252 and containerd 1.6, with Kubernetes and Calico as ever."""
    lab.up("--suite", "bookworm", "--layer", "calico", "--nodes", 1)
    assert "systemd 252" in lab.on("n1", "systemctl --version") and " 1.6." in lab.on("n1", "ctr version")
    variables = json.dumps({"nodecare_report_dir": str(tmp_path), "nodecare_fail_on": "never"})
    play = [Path(sys.executable).with_name("ansible-playbook"), "playbooks/preflight.yml", "-i", "lab/hosts.sh", "-e", variables]
    done = subprocess.run(lab.command("exec", "--", *play), cwd=ROOT, env=lab.environment(), text=True, capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    said = json.loads((tmp_path / "report.json").read_text())
    assert [one for one in said["findings"] if one["status"] == "fail"] == []
