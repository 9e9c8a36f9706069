"""ansible-test sanity, without an ignore file."""

from __future__ import annotations

import re
from pathlib import Path

from checkout import BIN, CACHE, copy, files, run
from cores import installed

# ansible-test gives each of its tests an environment of its own and wants to download a program that puts pip there. Ours is copied,
# which costs a tenth of what Python's own way to install one does.
BOOTSTRAP = """\
import shutil, sysconfig
from pathlib import Path

for part in map(Path, %r):
    shutil.copytree(part, Path(sysconfig.get_path("purelib"), part.name))
"""


def sanity(core, *words):
    """All of it must pass, on a copy of what is shipped."""
    programs = installed(core)
    where = CACHE / "sanity" / core.version
    assert not files("tests/sanity/ignore*"), "what sanity finds is to be put right, not ignored"
    tree = copy(where, without=("tests/", "docs/", "extensions/", "requirements/"))
    home = home_with_pip(where / "home", core.pip)
    version = re.search(r"\d+\.\d+", run(programs / "python", "-V")).group()
    argv = [programs / "ansible-test", "sanity", "--color", "no", "--requirements", "--python", version, *words]
    run(*argv, cwd=tree, timeout=1500, HOME=str(home), LC_ALL="C.UTF-8")


def home_with_pip(home, pip):
    """A home directory that holds ansible-test's environments from run to run, and the user's own settings of pip."""
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ("get_pip_%s.py" % pip.replace(".", "_"))).write_text(BOOTSTRAP % [str(part) for part in BIN.parent.glob("lib/python*/site-packages/pip*")])
    for settings in (".config/pip", ".pip"):
        (home / settings).parent.mkdir(exist_ok=True)
        if (Path.home() / settings).is_dir() and not (home / settings).exists():
            (home / settings).symlink_to(Path.home() / settings)
    return home
