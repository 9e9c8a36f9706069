"""The tables of cases beside the tests, by their path without its ending."""

from __future__ import annotations

from pathlib import Path

import yaml

HERE = Path(__file__).parent
# Each process that tests reads all of them, and libyaml does it ten times faster.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def table(name):
    return loaded((HERE / (name + ".yml")).read_text())


def loaded(text):
    return yaml.load(text, Loader=LOADER)
