"""The execution environment as far as it can be had without containers: its build context, and a preflight with exactly what would be in it.

Base image and system packages are not had here; all that comes by ansible-galaxy and pip is.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml
from checkout import BIN, ROOT, WITH_PROGRAMS, copy, python, run

DEFINED = yaml.safe_load((ROOT / "execution-environment.yml").read_text())["dependencies"]
OF_THE_COLLECTION = (ROOT / "meta/ee-requirements.txt").read_text().split()
SITE_RULE = {"id": "site.schema", "query": "schema", "expect": {"matches": "/1$"}, "message": "it is {value}"}
GIVEN = {"nodecare_checks": ["site", "cluster"], "nodecare_site_rules": [SITE_RULE], "nodecare_cluster": True, "nodecare_kubeconfig": "nobody.yml"}
NOBODY = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nobody",
    "clusters": [{"name": "nobody", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {"token": "none"}}],
    "contexts": [{"name": "nobody", "context": {"cluster": "nobody", "user": "nobody"}}],
}
DRAWN = "╭"  # a corner of the table, by rich
MISSED = {
    "jmespath": "site rules need the Python library jmespath on the controller",
    "kubernetes": "the Python library kubernetes is needed on the controller to read a cluster",
    "rich": "name       cluster  site",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What ansible-builder would hand to a container engine, from a checkout as the file's first lines say."""
    where = tmp_path_factory.mktemp("environment")
    tree = copy(where / "tree")
    run(BIN / "ansible-galaxy", "collection", "build", "--force", cwd=tree)
    run(BIN / "ansible-builder", "create", "-c", where / "context", cwd=tree, PATH=WITH_PROGRAMS)
    return where


@pytest.fixture(scope="module")
def collections(built):
    """By the same command as in the image's galaxy stage, but for the place."""
    to = built / "collections"
    run(BIN / "ansible-galaxy", "collection", "install", "-r", "requirements.yml", "--collections-path", to, cwd=built / "context" / "_build")
    return to


@pytest.fixture(scope="module")
def requirements(built, collections):
    """What the image's builder stage finds, with what the image's definition asks for itself."""
    asked = built / "context" / "_build"
    given = ["--user-pip=%s" % (asked / "requirements.txt"), "--user-bindep=%s" % (asked / "bindep.txt")]
    said = run(BIN / "ansible-builder", "introspect", collections, *given, "--write-pip=pip.txt", "--write-bindep=bindep.txt", cwd=built)
    assert "nodecare.kubernetes" in said
    return built


@pytest.fixture(scope="module")
def programs(requirements):
    """A virtual environment with what the Dockerfile installs by pip, and nothing else."""
    version = DEFINED["python_interpreter"]["package_system"].removeprefix("python")
    interpreter = python(version, version)
    if interpreter is None:
        pytest.skip("no Python %s here" % version)
    made = requirements / "venv"
    run(interpreter, "-m", "venv", "--without-pip", made)
    (definition,) = (path.read_text() for name in ("Dockerfile", "Containerfile") for path in requirements.glob("context/" + name))
    core_and_runner = re.search(r'ANSIBLE_INSTALL_REFS="(.*)"', definition).group(1).split()
    pip = (BIN / "python", "-m", "pip", "--python", made / "bin" / "python", "install", "--quiet", "--no-compile", "--disable-pip-version-check")
    run(*pip, *core_and_runner)
    run(*pip, "-r", requirements / "pip.txt")
    return made / "bin"


def test_builder_finds_what_the_collection_needs(requirements):
    """The collection's own words and the image's pins, which pip takes together."""
    found = (requirements / "pip.txt").read_text().splitlines()
    assert {line.split("#")[0].strip() for line in found} == {*DEFINED["python"], *OF_THE_COLLECTION}, found
    assert [line.split("#")[0].strip() for line in (requirements / "bindep.txt").read_text().splitlines()] == DEFINED["system"]


def preflight(programs, collections, where, **environment):
    """All of it that needs a library: a site rule, a cluster that is asked and does not answer, and the drawn table."""
    where.mkdir()
    (where / "nobody.yml").write_text(yaml.safe_dump(NOBODY))
    return run(
        *(programs / "ansible-playbook", "nodecare.kubernetes.preflight", "-i", "localhost,", "-c", "local", "-e", json.dumps(GIVEN)),
        cwd=where,
        expect=(2,),
        PATH="%s:/usr/bin:/bin" % programs,
        ANSIBLE_COLLECTIONS_PATH=str(collections),
        LC_ALL="C.UTF-8",
        **environment,
    )


def test_preflight_lacks_nothing(programs, collections, tmp_path):
    said = preflight(programs, collections, tmp_path / "run")
    assert DRAWN in said and "127.0.0.1:1: Connection refused" in said, said
    report = json.loads((tmp_path / "run" / "nodecare-report" / "report.json").read_text())
    assert {one["id"]: one["status"] for one in report["findings"]}.items() >= {"site.schema": "pass", "cluster.unreachable": "fail"}.items()
    assert [one["message"] for one in report["findings"] if "broke:" in one["message"]] == []
    run(programs / "ansible-runner", "--version")


@pytest.mark.parametrize("library", MISSED)
def test_each_library_would_be_missed(library, programs, collections, tmp_path):
    (tmp_path / ("%s.py" % library)).write_text("raise ImportError('not in this image')\n")
    assert MISSED[library] in preflight(programs, collections, tmp_path / "run", PYTHONPATH=str(tmp_path))
