"""Record what Calico's own programs answer about some layouts, for the tests that cannot ask them.

.venv/bin/python tests/lab/record.py     # as root; writes tests/unit/cases/calico/recorded.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / ".collections"), str(ROOT / "tests" / "lab")]

import layouts  # noqa: E402

from lab.autodetect import autodetect  # noqa: E402

TARGET = ROOT / "tests" / "unit" / "cases" / "calico" / "recorded.json"
LAYOUTS = 30
VERSIONS = ("3.31.0", "3.22.0")  # 3.23.0 answers as 3.22.0 does
QUESTIONS = 9


def main():
    programs = {version: autodetect(version) for version in VERSIONS}
    lines = []
    for seed in range(LAYOUTS):
        got = layouts.tried(seed, programs)
        kept = [(seed + at * 5) % len(got["questions"]) for at in range(QUESTIONS)]
        answers = {version: [_without_information(said[at]) for at in kept] for version, said in got["answers"].items()}
        lines.append(json.dumps({"seed": seed, "facts": got["facts"], "questions": [got["questions"][at] for at in kept], "answers": answers}))
    TARGET.write_text("[\n%s\n]\n" % ",\n".join(lines))


def _without_information(answer):
    return {**answer, "log": [line for line in answer["log"] if line["level"] != "info"]}


if __name__ == "__main__":
    main()
