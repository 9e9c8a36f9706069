"""The repair of a runtime over a real sshd, as users start it, on stand-ins of containerd and systemctl."""

from __future__ import annotations

import re

import pytest
from silent import changed, diff, silent_nodes


@pytest.fixture
def nodes(tmp_path):
    with silent_nodes(tmp_path) as made:
        yield made


@pytest.mark.slow
def test_what_is_predicted_is_done_and_nothing_else(nodes):
    predicted = nodes.play("--check", "--diff", "--limit", "s1")
    assert nodes.asked() == {"s1": [], "s2": []} and nodes.journals() == []
    done = nodes.play("--diff", "--limit", "s1")
    assert nodes.asked() == {"s1": ["restart"], "s2": []}
    assert changed(done) == changed(predicted) == {"s1": 1}
    assert diff(done) == diff(predicted) != []
    assert re.search(r"restart containerd.service: it answers [0-9.]+ s after this repair found it silent", done), done
