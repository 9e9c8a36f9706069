"""The project that AWX clones: which of its files AWX takes for playbooks, and that they are the collection's."""

from __future__ import annotations

import os
import re
import shutil

import pytest
import yaml
from checkout import ROOT

PROJECT = ROOT / "contrib/awx-project"
# How AWX finds playbooks: a file's ending, one line of it, and directories in which it does not look.
LINE = re.compile(r"^\s*?-?\s*?(?:hosts|(ansible\.builtin\.)?include|(ansible\.builtin\.)?import_playbook):\s*?.*?$")
VAULT = "$ANSIBLE_VAULT;"
PASSED_OVER = {"roles", "tasks", "group_vars", "host_vars"}


def discovered(project):
    found = []
    for place, _directories, names in os.walk(project):
        parts = os.path.relpath(place, project).split(os.sep)
        if PASSED_OVER & set(parts) or any(part.startswith(".") and part != "." for part in parts):
            continue
        found += [os.path.relpath(os.path.join(place, name), project) for name in names if could_be_playbook(os.path.join(place, name))]
    return sorted(found)


def could_be_playbook(path):
    if not path.endswith((".yml", ".yaml")):
        return False
    with open(path, encoding="utf-8", errors="ignore") as opened:
        return any(LINE.match(line) or (number == 0 and line.startswith(VAULT)) for number, line in enumerate(opened))


def playbooks():
    """What runs in AWX: every playbook of the collection but the one that is about AWX itself."""
    return sorted(path.name for path in ROOT.glob("playbooks/*.yml") if path.name != "awx_content.yml")


def test_exactly_the_collections_playbooks_are_found():
    assert discovered(PROJECT) == playbooks()
    assert sorted(path.name for path in PROJECT.glob("*.yml")) == playbooks()


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("more.yml", "- hosts: all\n", True),
        ("data/template.yml", "spec:\n  hosts: all\n", True),
        ("more.yaml", "$ANSIBLE_VAULT;1.1;AES256\n", True),
        ("more.yml", "- import_playbook: other.yml\n", True),
        ("more.yml", "name: hosts\n", False),
        ("more.txt", "- hosts: all\n", False),
        ("tasks/more.yml", "- hosts: all\n", False),
        (".hidden/more.yml", "- hosts: all\n", False),
    ],
)
def test_what_else_would_be_found(path, text, found, tmp_path):
    project = shutil.copytree(PROJECT, tmp_path / "project")
    (project / path).parent.mkdir(exist_ok=True)
    (project / path).write_text(text)
    assert (discovered(project) == playbooks()) is not found


@pytest.mark.parametrize("name", playbooks())
def test_each_is_the_collections_own(name):
    (play,) = yaml.safe_load((PROJECT / name).read_text())
    assert play["ansible.builtin.import_playbook"] == "nodecare.kubernetes." + name.removesuffix(".yml")
    assert set(play) <= {"name", "ansible.builtin.import_playbook", "vars"}


def test_pins_are_exact_and_are_what_is_here():
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text())
    wanted = yaml.safe_load((PROJECT / "collections/requirements.yml").read_text())["collections"]
    assert wanted == [{"name": "%(namespace)s.%(name)s" % galaxy, "version": galaxy["version"]}]
