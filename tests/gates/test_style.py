"""Gates on text: Python, YAML, Ansible content, spelling."""

from __future__ import annotations

import pytest
from checkout import BIN, GIT, run
from lint import IN_LAB, ansible_lint

GATES = {
    "ruff check": ["ruff", "check", "--no-cache", "--quiet"],
    "ruff format": ["ruff", "format", "--no-cache", "--check", "--quiet"],
    "yamllint": ["yamllint", "--strict", "."],
    "codespell": ["codespell"],
    "changelog": ["antsibull-changelog", "lint"],
    "tests of the lab, which are not run here": ["pytest", "tests/lab", "--collect-only"],
}


@pytest.mark.parametrize("gate", GATES)
def test_style(gate):
    program, *arguments = GATES[gate]
    run(BIN / program, *arguments)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ansible_lint():
    ansible_lint(*(word for place in IN_LAB for word in ("--exclude", place)))


def test_no_registry_is_named():
    """Where packages come from is each machine's own business."""
    hosts = ["py" + "pi.org", "python" + "hosted.org", "proxy.go" + "lang.org", "galaxy.ansible" + ".com", "deb.deb" + "ian.org"]
    found = run(*GIT, "grep", "-nI", "--untracked", *[part for host in hosts for part in ("-e", host)], "--", ":!LICENSE", expect=(0, 1))
    assert found == ""
