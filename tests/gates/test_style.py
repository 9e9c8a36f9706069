"""Gates on text: Python, YAML, Ansible content, spelling."""

from __future__ import annotations

import pytest
import yaml
from checkout import BIN, CACHE, ROOT, WITH_PROGRAMS, copy, run

GATES = {
    "ruff check": ["ruff", "check", "--no-cache", "--quiet"],
    "ruff format": ["ruff", "format", "--no-cache", "--check", "--quiet"],
    "yamllint": ["yamllint", "--strict", "."],
    "codespell": ["codespell"],
    "changelog": ["antsibull-changelog", "lint"],
}


@pytest.mark.parametrize("gate", GATES)
def test_style(gate):
    program, *arguments = GATES[gate]
    run(BIN / program, *arguments)


@pytest.mark.slow
def test_ansible_lint():
    if not (BIN / "ansible-lint").exists():
        pytest.skip("ansible-lint needs Python 3.12 or newer")
    settings = yaml.safe_load((ROOT / ".ansible-lint").read_text())
    assert settings["profile"] == "production"
    assert not {"skip_list", "warn_list"} & set(settings), "what ansible-lint finds is to be put right, not skipped"
    where = CACHE / "lint"
    run(BIN / "ansible-lint", "--offline", "--nocolor", "--strict", cwd=copy(where), timeout=1500, PATH=WITH_PROGRAMS, ANSIBLE_COLLECTIONS_PATH=str(where))


def test_no_registry_is_named():
    """Where packages come from is each machine's own business."""
    hosts = ["py" + "pi.org", "python" + "hosted.org", "proxy.go" + "lang.org", "galaxy.ansible" + ".com", "deb.deb" + "ian.org"]
    found = run("git", "grep", "-nI", "--untracked", *[part for host in hosts for part in ("-e", host)], "--", ":!LICENSE", expect=(0, 1))
    assert found == ""
