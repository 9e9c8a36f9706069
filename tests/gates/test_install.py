"""The collection as users get it: built, installed, stripped to what must be enough, on the oldest and the newest of everything."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from checkout import BIN, ROOT, copy, python, run
from cores import NEWEST, OLDEST, installed

SHIPPED = {"CHANGELOG.rst", "FILES.json", "LICENSE", "MANIFEST.json", "README.md", "changelogs", "docs", "extensions", "meta", "playbooks", "plugins", "roles"}
ENOUGH = {"meta", "playbooks", "plugins", "roles"}


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    """Built from a copy, so that nothing of the checkout's that git does not know gets in by chance of this machine."""
    where = tmp_path_factory.mktemp("built")
    run(BIN / "ansible-galaxy", "collection", "build", "--output-path", where, cwd=copy(where))
    (made,) = where.glob("nodecare-kubernetes-*.tar.gz")
    return made


@pytest.fixture
def collection(tarball, tmp_path):
    run(BIN / "ansible-galaxy", "collection", "install", tarball, "--offline", "-p", tmp_path / "collections", cwd=tmp_path)
    return tmp_path / "collections" / "ansible_collections" / "nodecare" / "kubernetes"


def test_what_is_shipped(tarball):
    with tarfile.open(tarball) as opened:
        names = opened.getnames()
    assert {Path(name).parts[0] for name in names} == SHIPPED
    docs = {name for name in names if name.startswith("docs/") and name.count("/") == 1}
    assert "docs/docsite/extra-docs.yml" in names and not docs & {"docs/conf.py", "docs/index.rst"}, "what antsibull-docs reads, but not what builds our site"
    assert [name for name in names if "__pycache__" in name or name.endswith((".tar.gz", ".pyc"))] == []


def test_it_runs_from_the_tarball_and_from_what_must_be_enough(collection, tmp_path):
    preflight(BIN, collection, tmp_path / "whole", BIN / "python")
    for path in collection.iterdir():
        if path.name not in ENOUGH:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    report = preflight(BIN, collection, tmp_path / "stripped", BIN / "python")
    assert len(report["findings"]) > 30


@pytest.mark.parametrize(
    ("core", "interpreter"),
    [pytest.param(OLDEST, ("3.8", "3.8"), id="oldest"), pytest.param(NEWEST, ("3.13", "3.14"), id="newest")],
)
def test_versions(core, interpreter, collection, tmp_path):
    """The oldest core drives the oldest Python that nodes may have, the newest core the newest here."""
    found = python(*interpreter)
    if found is None:
        pytest.skip("no Python %s to %s here" % interpreter)
    report = preflight(installed(core), collection, tmp_path / "run", found)
    assert report["nodes"]["localhost"]["taken"]["python"].startswith(run(found, "-V").split()[1])


def preflight(programs, collection, where, interpreter):
    """A whole run by its name, far from the checkout; answers the report. Nothing may be broken, whatever the findings are."""
    where.mkdir()
    said = run(
        programs / "ansible-playbook",
        *("nodecare.kubernetes.preflight", "-i", "localhost,", "-c", "local", "-e", json.dumps({"ansible_python_interpreter": str(interpreter)})),
        cwd=where,
        expect=(0, 2),
        ANSIBLE_COLLECTIONS_PATH=str(collection.parents[2]),
    )
    assert "[DEPRECATION WARNING]" not in said, said
    report = json.loads((where / "nodecare-report" / "report.json").read_text())
    broken = [one for one in report["findings"] if "broke:" in one["message"] or one["id"] == "node.unreadable"]
    assert broken == [], said
    assert "changed=0" in said
    return report


def test_no_registered_name_is_missing():
    """What a fresh checkout needs to find itself."""
    assert (ROOT / ".collections/ansible_collections/nodecare/kubernetes/galaxy.yml").exists()
