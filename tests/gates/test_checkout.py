"""How the gates run programs."""

from __future__ import annotations

import subprocess
import time

import pytest
from checkout import files, run


def test_a_program_that_hangs_ends_with_all_that_it_has_started():
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run("sh", "-c", "sleep 30 & wait", timeout=0.5)
    assert time.monotonic() - start < 20


def test_where_git_was_told_to_look_is_not_where_the_gates_do(monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert files("galaxy.yml") == ["galaxy.yml"]
