"""The ansible-core versions that the collection is proven on: the newest, and the oldest that meta/runtime.yml allows."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass

import pytest
from checkout import CACHE, python, venv


@dataclass(frozen=True)
class Core:
    version: str
    controller: tuple  # Pythons that it runs on
    node: str  # the oldest Python that it drives
    pip: str  # that its ansible-test asks for


NEWEST = Core("2.21.5", ("3.12", "3.14"), "3.9", "25.2")
OLDEST = Core("2.18.19", ("3.11", "3.13"), "3.8", "24.2")


def installed(core):
    """The programs of that core, in an environment of its own that all processes share."""
    interpreter = python(*core.controller)
    if interpreter is None:
        pytest.skip("no Python %s to %s for ansible-core %s here" % (*core.controller, core.version))
    CACHE.mkdir(exist_ok=True)
    with (CACHE / ("core-%s.lock" % core.version)).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return venv("core-%s" % core.version, interpreter, "ansible-core==%s" % core.version)
