"""Documentation: complete for everything that can be named, and true."""

from __future__ import annotations

import importlib
import json
import re

import pytest
import yaml
from checkout import BIN, ROOT, WITH_PROGRAMS, copy, files, run

KINDS = {"module": "plugins/modules", "filter": "plugins/filter", "role": "roles"}


def test_everything_is_documented():
    said = run(BIN / "ansible-doc", "--metadata-dump", "--no-fail-on-errors", "nodecare.kubernetes")
    said = json.loads(said[said.index("\n{") if not said.startswith("{") else 0 :])["all"]
    for kind, place in KINDS.items():
        names = {"nodecare.kubernetes.%s" % path.split("/")[2 if kind != "role" else 1].removesuffix(".py") for path in files(place)}
        assert set(said[kind]) >= names, kind
        for name in names:
            described = said[kind][name]
            assert "error" not in described, described
            if kind == "module":
                assert described["doc"]["attributes"] and described["examples"] and described["return"], name
            elif kind == "filter":
                assert described["examples"] and described["return"], name
            else:
                assert all(one["description"] for one in described["entry_points"].values()), name


def test_antsibull_docs(tmp_path):
    run(
        *(BIN / "antsibull-docs", "lint-collection-docs", "--plugin-docs", "--validate-collection-refs", "self", "."),
        cwd=copy(tmp_path),
        PATH=WITH_PROGRAMS,
    )


def test_roles_and_their_specifications_agree():
    """Every variable that a role reads is specified and in its README; every specified one is read by it or by what guards it, with the same words in all."""
    guards = used_by(ROOT / "roles/guard")
    for specified in ROOT.glob("roles/*/meta/argument_specs.yml"):
        role = specified.parents[1]
        points = yaml.safe_load(specified.read_text())["argument_specs"].values()
        options = {name for point in points for name in point["options"] if name.startswith("nodecare_")}
        guarded = any("nodecare.kubernetes.guard" in path.read_text() for path in role.glob("tasks/*.yml"))
        assert used_by(role) <= options <= used_by(role) | (guards if guarded else set()), role
        assert set(re.findall(r"^\| `(nodecare_\w+)`", (role / "README.md").read_text(), re.M)) == options, role


def used_by(role):
    return {name for path in role.glob("tasks/*.yml") for name in re.findall(r"\bnodecare_\w+", path.read_text())}


@pytest.mark.parametrize("name", sorted(path.stem for path in ROOT.glob("plugins/action/*.py")))
def test_modules_and_actions_agree(name):
    """What is documented in a module is validated by the action plugin of the same name."""
    action = importlib.import_module("ansible_collections.nodecare.kubernetes.plugins.action.%s" % name)
    module = importlib.import_module("ansible_collections.nodecare.kubernetes.plugins.modules.%s" % name)
    documented = all_options(yaml.safe_load(module.DOCUMENTATION))
    assert set(action.ARGUMENTS) == set(documented)
    for option, accepted in action.ARGUMENTS.items():
        for key in ("type", "elements", "default", "choices", "aliases"):
            assert accepted.get(key) == documented[option].get(key), (option, key)


def all_options(documentation):
    """Also those that it has in common with other modules."""
    options = dict(documentation["options"])
    for fragment in documentation.get("extends_documentation_fragment", []):
        shared = importlib.import_module("ansible_collections.nodecare.kubernetes.plugins.doc_fragments.%s" % fragment.rsplit(".", 1)[-1])
        options.update(yaml.safe_load(shared.ModuleDocFragment.DOCUMENTATION)["options"])
    return options


def test_action_groups_are_complete():
    groups = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]
    assert sorted(groups["all"]) == sorted(path.stem for path in ROOT.glob("plugins/modules/*.py"))


def test_links_lead_somewhere():
    """Every relative link of the pages, as a Git forge shows them."""
    dead = []
    for page in files("*.md", "docs/docsite/rst/*.rst"):
        link = r" <(?!https?:)([^>#\s]+)>`__" if page.endswith(".rst") else r"\]\((?!https?:|#|mailto:)([^)#\s]+)"
        for target in re.findall(link, (ROOT / page).read_text()):
            if not (ROOT / page).parent.joinpath(target).exists():
                dead.append((page, target))
    assert dead == []
