"""The execution environment's requirements: all that is imported on the controller and no more, at the versions that all else is tested with."""

from __future__ import annotations

import ast
import re
import sys

import yaml
from checkout import ROOT, files

OF_THE_COLLECTION = (ROOT / "meta/ee-requirements.txt").read_text().split()
DEFINED = yaml.safe_load((ROOT / "execution-environment.yml").read_text())
WITH_ANSIBLE_CORE = {"ansible", "jinja2", "markupsafe", "yaml"}
WITH_ANOTHER = {"urllib3": "kubernetes"}


def name(requirement):
    return re.match(r"[\w-]+", requirement).group()


def imported():
    """Top-level packages that are neither Python's own nor the collection's."""
    trees = [ast.parse((ROOT / path).read_text()) for path in files("plugins/*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [part.name for node in nodes if isinstance(node, ast.Import) for part in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0]
    return {full.split(".")[0] for full in names} - set(sys.stdlib_module_names) - {"ansible_collections"}


def test_all_that_is_imported_is_required_and_no_more():
    needed = {WITH_ANOTHER.get(one, one) for one in imported() - WITH_ANSIBLE_CORE}
    assert {name(line) for line in OF_THE_COLLECTION} == needed
    assert {name(line) for line in DEFINED["dependencies"]["python"]} == needed


def test_the_collection_caps_nothing():
    """Another collection in the same image may need a newer one."""
    assert [line for line in OF_THE_COLLECTION if re.search(r"<|==|~=|!=", line)] == []


def test_the_image_has_the_versions_that_are_tested():
    tested = {line.split(";")[0].strip() for path in ("run", "test") for line in (ROOT / "requirements" / (path + ".txt")).read_text().splitlines()}
    wanted = DEFINED["dependencies"]
    pinned = [*wanted["python"], wanted["ansible_core"]["package_pip"], wanted["ansible_runner"]["package_pip"]]
    assert [line for line in pinned if "==" not in line or line not in tested] == []


def test_the_image_takes_the_tarball_of_this_version():
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"]
    (tarball,) = DEFINED["additional_build_files"]
    (collection,) = DEFINED["dependencies"]["galaxy"]["collections"]
    assert tarball["src"] == "nodecare-kubernetes-%s.tar.gz" % version
    assert collection == {"name": "%s/%s" % (tarball["dest"], tarball["src"]), "type": "file"}
