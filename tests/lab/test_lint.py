"""ansible-lint on the playbooks that only these tests run."""

from __future__ import annotations

from lint import IN_LAB, ansible_lint


def test_ansible_lint():
    ansible_lint(*IN_LAB)
