# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the docsite: guides, rules, and all that antsibull-docs knows of plugins, modules and roles. A warning ends it.

Run it with `make docsite`. Nothing of what it makes is kept in the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
COLLECTION = "nodecare.kubernetes"


def build(place):
    """Makes it anew below a directory, and answers its first page."""
    source, made = place / "source", place / "html"
    shutil.rmtree(place, ignore_errors=True)
    (source / "collection").mkdir(parents=True, mode=0o755)
    describe(source / "collection")
    shutil.copy(ROOT / "docs/index.rst", source)
    shutil.copytree(ROOT / "docs", source / "docs", ignore=lambda where, names: [one for one in names if not is_page(Path(where) / one)])
    run("sphinx-build", "-M", "html", source, place, "-c", ROOT / "docs", "-W", "--keep-going", "-q")
    return made / "index.html"


def describe(place):
    """One page for each plugin, module and role, and the guides in docs/docsite/rst beside them."""
    run("antsibull-docs", "collection", "--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", place, COLLECTION)


def is_page(path):
    """What antsibull-docs does not know of: the guides and rules in Markdown."""
    return path.suffix == ".md" or path.name == "rules"


def run(program, *arguments):
    there = {"PATH": "%s:%s" % (BIN, os.environ["PATH"]), "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections")}
    subprocess.run([BIN / program, *arguments], cwd=ROOT, env={**os.environ, **there}, stdin=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    try:
        print("The docsite: %s" % build(Path(sys.argv[1]).resolve()))
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
