"""A small fleet behind a real sshd, and how ansible's programs are run against it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from patients import TARGETS

from lab.fleet import CHECKOUT, Fleet, missing

BIN = Path(os.environ.get("NODECARE_ANSIBLE") or Path(sys.executable).parent)


@pytest.fixture(scope="session")
def fleet():
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    with Fleet(TARGETS) as targets:
        yield targets


@dataclass
class Run:
    code: int
    said: str
    report: dict | None
    place: Path

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", self.said, re.MULTILINE)
        return {host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)} for host, counts in rows}

    def findings(self, node: str, rule: str = "") -> list[dict]:
        return [one for one in self.report["findings"] if one["node"] == node and one["id"].startswith(rule)]

    def worst(self, node: str, rule: str) -> str:
        statuses = {one["status"] for one in self.findings(node, rule)}
        return next(status for status in ("fail", "warn", "unknown", "pass", "skip") if status in statuses)


@pytest.fixture(scope="session")
def ansible(fleet, tmp_path_factory):
    """Run one of ansible's programs against the fleet; a preflight's report is read too."""

    def run(program: str, *arguments: str, programs: Path = BIN, cwd: Path = CHECKOUT, variables: dict | None = None, **environment: str) -> Run:
        place = tmp_path_factory.mktemp("run")
        given = {"nodecare_report_dir": str(place), **(variables or {})}
        argv = [str(programs / program), *arguments, "-i", str(fleet.inventory), "-f", "10", "-e", json.dumps(given)]
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=fleet.environment(**environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        report = place / "report.json"
        return Run(done.returncode, done.stdout, json.loads(report.read_text()) if report.exists() else None, place)

    return run
