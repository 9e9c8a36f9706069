"""The fleet layer: SSH targets that stand in a lab until it is taken down, whatever happens to the programs around them."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from labs import Lab, eventually, own_name, processes_in

ANSIBLE = Path(sys.executable).parent / "ansible"
COUNT = 30


@pytest.fixture
def lab():
    made = Lab(own_name("f"))
    yield made
    made.do("down")


def inventory(lab, tmp_path, *words):
    said = lab.do(*words)
    file = tmp_path / "fleet.json"
    file.write_text(said[said.index("{") : said.rindex("}") + 1])
    return file


def test_ansible_reaches_all_targets(lab, tmp_path):
    file = inventory(lab, tmp_path, "up", "--layer", "fleet", "--nodes", COUNT)
    assert len(json.loads(file.read_text())["all"]["hosts"]) == COUNT
    said = lab.do("exec", ANSIBLE, "all", "-i", file, "-m", "ping", "--forks", 10)
    assert said.count('"pong"') == COUNT


def test_nothing_outlives_the_lab(lab, tmp_path):
    inventory(lab, tmp_path, "fleet", COUNT)
    network = lab.network()
    assert len(processes_in(network)) > COUNT / 13
    for process in processes_in(network):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    eventually("all of it to be gone", lambda: not processes_in(network))
    assert lab.ask("status")[0] != 0
    inventory(lab, tmp_path, "fleet", COUNT)
    assert lab.ask("status")[0] == 0


def test_a_fleet_of_another_size_has_to_be_asked_for_anew(lab, tmp_path):
    inventory(lab, tmp_path, "fleet", COUNT)
    inventory(lab, tmp_path, "fleet", COUNT)
    code, said = lab.ask("fleet", COUNT + 1)
    assert code != 0
    assert "take it down first" in said
