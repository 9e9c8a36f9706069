"""The bench itself, in small: it measures, and what does not depend on how busy the machine is stays within its budget."""

from __future__ import annotations

import json
import subprocess
import sys

from lab.fleet import CHECKOUT


def test_the_probe_is_small_and_judging_it_works(tmp_path):
    argv = [sys.executable, "tests/bench/run.py", "--parts", "probe", "judge", "--rounds", "1", "--nodes", "5", "20", "--results", str(tmp_path)]
    done = subprocess.run(argv, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    results = json.loads((tmp_path / "bench.json").read_text())
    probe = results["probe"]["node_check"]
    assert probe["payload_kb"] <= 350
    assert probe["memory_mib"] <= 64
    assert probe["answer_kb"] <= 60
    assert results["judge"]["20"]["findings"] > 1000
