"""What the README says can be done is done here, word for word."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from checkout import BIN, CACHE, ROOT, WITH_PROGRAMS, copy, files, run
from guides import commands, texts

README = (ROOT / "README.md").read_text()
COMMANDS = commands("README.md")
ELSEWHERE = {
    "make preflight": "test_make.py",
    "make test": "that is what runs this",
    "make test-lab": "needs root, and takes longer than all else",
    "make docsite": "test_docsite.py",
}
REPAIRS = "ansible-playbook nodecare.kubernetes.%s -i hosts.ini --become"
ELSEWHERE.update(
    dict.fromkeys((REPAIRS % "repair_swap", REPAIRS % "repair_swap" + " --check --diff", REPAIRS % "undo"), "test_repair.py, on machines that they may change")
)


def test_commands_are_known():
    assert set(ELSEWHERE) < set(COMMANDS)
    assert all(command.split()[0] in ("make", "ansible", "ansible-playbook", "ansible-galaxy") for command in COMMANDS)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory as a reader has it: an inventory, and the tarball. The node is this machine."""
    where = tmp_path_factory.mktemp("reader")
    (where / "hosts.ini").write_text("node-1 ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}' ansible_become=false\n")
    run(BIN / "ansible-galaxy", "collection", "build", "--output-path", where, cwd=copy(CACHE / "readme"))
    return where


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in ELSEWHERE])
def test_command(command, place):
    """A machine that is not well ends a preflight with 2; that is an answer."""
    cwd = place
    if command.startswith("make"):
        cwd, command = ROOT, command.replace("hosts.ini", str(place / "hosts.ini")).replace('"--become"', '"-e nodecare_report_dir=%s/made"' % place)
    command = command.replace(" --become", "")  # the node is this machine, and its user may have no sudo
    run(
        "sh", "-c", command, cwd=cwd, expect=(0, 2) if "preflight" in command else (0,), PATH=WITH_PROGRAMS, ANSIBLE_COLLECTIONS_PATH=str(place / "collections")
    )


def test_playbooks(place):
    """The play and the task of the README, one after the other: read, report, judge again."""
    play, task = (yaml.safe_load(block)[0] for block in texts("README.md", "yaml")[:2])
    play.update(hosts="all", become=False)
    (place / "look.yml").write_text(yaml.safe_dump([play]))
    (place / "again.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    with_collection = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections")}
    run(BIN / "ansible-playbook", "-i", "hosts.ini", "look.yml", cwd=place, expect=(0, 2), **with_collection)
    assert json.loads((place / "before-upgrade" / "report.json").read_text())["nodes"]
    assert '"id": "swap.active"' in run(BIN / "ansible-playbook", "-i", "hosts.ini", "again.yml", cwd=place, **with_collection)


def test_settings():
    """The examples are valid policies, and name only variables that the role has."""
    known = yaml.safe_load((ROOT / "roles/preflight/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    for block in texts("README.md", "yaml")[2:]:
        given = yaml.safe_load(block)
        assert set(given) <= set(known)
        parts = {name: given["nodecare_" + name] for name in ("networks", "thresholds", "severity", "disable", "site_rules") if "nodecare_" + name in given}
        policy(parts, list(RULES))


def test_versions():
    """Said in one place, and true."""
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] in README
    assert shutil.which("git") and "docs/report.png" in files("docs")
