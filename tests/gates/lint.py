"""ansible-lint, as production asks for it and without anything that is skipped. It starts Ansible once for each playbook."""

from __future__ import annotations

import pytest
import yaml
from checkout import BIN, CACHE, ROOT, WITH_PROGRAMS, copy, run

IN_LAB = ("contrib", "extensions/molecule")  # what only tests/lab runs, which looks at it there, too


def ansible_lint(*words):
    if not (BIN / "ansible-lint").exists():
        pytest.skip("ansible-lint needs Python 3.12 or newer")
    settings = yaml.safe_load((ROOT / ".ansible-lint").read_text())
    assert settings["profile"] == "production"
    assert not {"skip_list", "warn_list"} & set(settings), "what ansible-lint finds is to be put right, not skipped"
    where = CACHE / "lint"
    argv = [BIN / "ansible-lint", "--offline", "--nocolor", "--strict", *words]
    run(*argv, cwd=copy(where), timeout=1500, PATH=WITH_PROGRAMS, ANSIBLE_COLLECTIONS_PATH=str(where))
