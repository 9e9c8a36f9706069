"""The report at the end of a real play: healthy, ill and unreachable hosts, the order of what is printed, and what cannot be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.raw: "true"
      when: inventory_hostname == "n3"
      register: said
      ignore_unreachable: true
    - ansible.builtin.set_fact:
        nodecare_check: "{{ said if said.unreachable | default(false) else lookup('ansible.builtin.file', inventory_hostname ~ '.json') | from_json }}"
    - nodecare.kubernetes.report: {path: out, checks: [swap], save_facts: true}
"""


def result(node, status):
    finding = {"id": "swap.active", "node": node, "status": status, "severity": "error", "title": "Swap is on", "message": "swap is {{ 7 * 7 }} <b>"}
    finding = {**finding, "evidence": {}, "remedy": None, "see": None}
    return {"findings": [finding], "policy": {}, "facts": {"schema": "nodecare.node/1", "taken": {"euid": 0, "sent": 1.0, "received": 2.0}, "problems": []}}


def play(where, hosts):
    """Runs the play in a directory: (exit code, what was printed)."""
    where.mkdir(exist_ok=True)
    local = "%%s ansible_connection=local ansible_python_interpreter=%s" % sys.executable
    lost = "%s ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_common_args='-o BatchMode=yes'"
    (where / "hosts").write_text("\n".join((local if status else lost) % name for name, status in hosts.items()))
    (where / "play.yml").write_text(PLAY)
    for name, status in hosts.items():
        (where / (name + ".json")).write_text(json.dumps(result(name, status)))
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts", "play.yml"]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_LOCAL_TEMP": str(where),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_healthy_hosts_succeed_and_nothing_changed(tmp_path):
    code, said = play(tmp_path, {"n1": "pass", "n2": "pass"})
    assert code == 0, said
    assert "2 nodes: 2 well\n" in said
    assert "changed=0" in said
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["facts.json", "junit.xml", "report.html", "report.json", "report.prom"]


def test_one_ill_and_one_lost_host_fail_it_after_all_is_written(tmp_path):
    (tmp_path / "out" / "junit.xml").mkdir(parents=True)
    code, said = play(tmp_path, {"n1": "fail", "n2": "pass", "n3": None})
    assert code == 2, said
    places = [
        said.index(words)
        for words in (
            "3 nodes: 2 failed, 1 well",
            "n3: no connection: Failed to connect to the host via ssh",
            "n1: swap is {{ 7 * 7 }} <b>",
            "Report: %s/out/report.json" % tmp_path,
            "Report: %s/out/report.html" % tmp_path,
            "cannot write %s/out/junit.xml: Is a directory; 2 findings on 2 of 3 nodes must be put right" % tmp_path,
        )
    ]
    assert places == sorted(places)
    assert "\x1b" not in said
    made = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {name: node["worst"] for name, node in made["nodes"].items()} == {"n1": "fail", "n2": "pass", "n3": "fail"}
    assert list(json.loads((tmp_path / "out" / "facts.json").read_text())["nodes"]) == ["n1", "n2"]
