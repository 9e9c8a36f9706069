"""The checkout as the gates see it, and how they run programs in it."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = ROOT / ".venv" / "bin"
CACHE = ROOT / ".cache"
GIT = ("git", "-c", "safe.directory=*")  # the checkout may be another user's, as in a container
WITH_PROGRAMS = "%s:%s" % (BIN, os.environ["PATH"])

TOLD = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "ARGS")


def run(*command, cwd=ROOT, timeout=300, expect=(0,), **environment):
    """The output of a program that must end as expected; what it said is the test's message when it does not.

    What `make test` itself was told is not for the programs that the tests start, nor what git was told where a hook of its runs the tests.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in TOLD and not name.startswith("GIT_")}
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, "NO_COLOR": "1", "ANSIBLE_NOCOLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said = running.communicate(timeout=timeout)[0]
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)  # with all that it has started
            raise
    assert expect is None or running.returncode in expect, "%s ended with %d:\n%s" % (" ".join(map(str, command)), running.returncode, said)
    return said


def files(*patterns):
    """What git has or would have, so that a file which was not added yet is judged like the others."""
    return sorted(path for path in run(*GIT, "ls-files", "-co", "--exclude-standard", "--", *patterns).splitlines() if os.path.lexists(ROOT / path))


# The checkout finds itself through a symbolic link that is no part of the collection, nor is the lab. Recorded machines are data: they
# keep the links that they had, to places that this machine does not have.
NO_PART = (".collections/", "lab/", "tests/unit/trees/")


def copy(to, without=()):
    """A copy of the collection where Ansible's programs want it, known to git, in a directory of that purpose's own."""
    tree = to / "ansible_collections" / "nodecare" / "kubernetes"
    shutil.rmtree(tree, ignore_errors=True)
    for path in files():
        if not path.startswith((*NO_PART, *without)):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, tree / path, follow_symlinks=False)
    run("git", "init", "-q", cwd=tree)
    run("git", "add", "-A", cwd=tree)
    return tree


@functools.cache  # each play asks for it
def python(lowest, highest):
    """A Python of the machine that really runs, the newest between two versions; None where there is none."""
    said = run("sh", "requirements/python.sh", lowest, highest, expect=(0, 1))
    return said.strip() if said.startswith("/") else None


def venv(name, interpreter, *packages):
    """A virtual environment with pinned packages, made once."""
    made = CACHE / "venv" / name
    stamp = made / ".made"
    if not stamp.exists():
        shutil.rmtree(made, ignore_errors=True)
        run(interpreter, "-m", "venv", "--without-pip", made)
        to = made / "bin" / "python"  # by our pip: to give it one of its own takes longer than what it would install
        run(BIN / "python", "-m", "pip", "--python", to, "install", "--quiet", "--no-compile", "--disable-pip-version-check", *packages)
        stamp.touch()
    return made / "bin"
