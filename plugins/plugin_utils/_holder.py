# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who this run is: in words for those who meet its lock or its mark, and by an id that all its tasks share."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from typing import NamedTuple

from ._report.words import safe

LONGEST = 200
JOBS = ("awx_job_id", "tower_job_id")


class RunError(ValueError):
    """Why a run cannot be called so."""


class Run(NamedTuple):
    id: str
    holder: str


def this_run(task, variables, given=None):
    """The run to which the task of this id belongs; ``given`` is how its user wants the run to be called."""
    job = next((str(variables[name]) for name in JOBS if variables.get(name)), "")
    where = "%s@%s" % (_user(), socket.gethostname())
    process = os.getppid()  # each task runs in a child of its own
    holder = "AWX job %s on %s" % (job, socket.gethostname()) if job else "%s, process %d" % (where, process)
    own = "awx-job-%s-%s" % (job, _of_this_process(task)) if job else "%s-%d-%s" % (where, process, _of_this_process(task))
    return Run(_checked(own if given is None else given), safe(holder)[:LONGEST])


def _checked(run):
    if not run.strip() or len(run) > LONGEST or not run.isprintable():
        raise RunError("run is %r, and must be 1 to %d printable characters" % (run[: LONGEST + 1], LONGEST))
    return run


def _of_this_process(task):
    """Ansible numbers its tasks behind something random that it has drawn when it was started."""
    return hashlib.sha256(task.rpartition("-")[0].encode()).hexdigest()[:8]


def _user():
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a number that nobody has given a name
        return "uid %d" % os.getuid()
