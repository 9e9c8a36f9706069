"""What the guide to AWX says can be done is done, here or by the tests that are named."""

from __future__ import annotations

import json
import re

import yaml
from awx_surveys import data
from checkout import ROOT, WITH_PROGRAMS, run
from guides import commands, texts
from test_awx_project import discovered, playbooks

PAGE = "docs/awx.md"
GUIDE = (ROOT / PAGE).read_text()
STAND_IN = "test_awx_stand_in.py runs it, as it stands here"
APPLY = "ansible-playbook nodecare.kubernetes.awx_content -e @awx.yml"
ELSEWHERE = {APPLY: STAND_IN, APPLY + " --check": STAND_IN}
EXPORTED = {"CONTROLLER_HOST", "CONTROLLER_OAUTH_TOKEN", "CONTROLLER_OPTIONAL_API_URLPATTERN_PREFIX"}


def test_commands(tmp_path):
    """One after the other, where a reader would be."""
    (tmp_path / "contrib").symlink_to(ROOT / "contrib")
    (tmp_path / "hosts.ini").write_text("n1\n")
    (tmp_path / "runs/1").mkdir(parents=True)
    facts = {"schema": "nodecare.node/1", "taken": {}, "problems": []}
    bundle = {"schema": "nodecare.bundle/1", "policy": {}, "nodes": {"n1": facts}, "cluster": None, "checks": ["site"]}
    (tmp_path / "runs/1/facts.json").write_text(json.dumps(bundle))
    names = {"GIT_%s_%s" % (who, what): "nobody@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    assert set(ELSEWHERE) < set(commands(PAGE))
    for command in (one for one in commands(PAGE) if one not in ELSEWHERE):
        if command.startswith("export "):
            assert {word.partition("=")[0] for word in command.split()[1:]} <= EXPORTED
        else:
            run("sh", "-c", command, cwd=tmp_path, PATH=WITH_PROGRAMS, ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".collections"), **names)
    assert discovered(tmp_path / "nodecare-awx") == playbooks()
    assert json.loads((tmp_path / "nodecare-report/report.json").read_text())["summary"]["nodes"] == 1


def test_variables_are_known():
    spec = yaml.safe_load((ROOT / "roles/awx_content/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    given, shared = map(yaml.safe_load, texts(PAGE, "yaml"))
    assert {name for name, option in spec.items() if option.get("required")} <= set(given) <= set(spec)
    assert set(shared) == {"nodecare_reports"}
    assert all("nodecare_reports" in (ROOT / "contrib/awx-project" / name).read_text() for name in ("preflight.yml", "merge_reports.yml"))


def test_templates_are_called_what_they_are_called():
    names = {one["name"] for kind in ("job_templates", "workflows") for one in data(kind).values()}
    assert set(re.findall(r"\*\*(nodecare [^*]+)\*\*", GUIDE)) <= names
