"""The molecule scenarios, on the same cluster; what one of them says is shown where it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from labs import BOOT, ROOT

FOUND = {found.parent.name for found in ROOT.glob("extensions/molecule/*/molecule.yml")}
SCENARIOS = ["preflight_healthy", *sorted(FOUND - {"default", "preflight_healthy"})]  # first that all is well, then what is not


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario, cluster, tmp_path):
    """Molecule finds the lab up and leaves it up; it keeps its notes where no other run finds them."""
    log = tmp_path / "molecule.log"
    environment = cluster.environment(LAB_NODES=str(len(cluster.nodes())), MOLECULE_EPHEMERAL_DIRECTORY=str(tmp_path / "molecule"))
    with open(log, "w", encoding="utf-8") as out:
        code = subprocess.run(
            # From inside the lab's network, so that the API server can be asked too.
            cluster.command("exec", "--", Path(sys.executable).with_name("molecule"), "test", "--scenario-name", scenario, "--destroy", "never"),
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=BOOT, check=False,
        ).returncode  # fmt: skip
    said = log.read_text()
    for node in cluster.nodes() if code else ():  # or each scenario after one that failed fails too
        cluster.ask("heal", node, "all")
    # A playbook that molecule does not find, and a play that finds no node, count as success with it.
    assert code == 0 and "Missing playbook" not in said and "no hosts matched" not in said, said[-8000:]
