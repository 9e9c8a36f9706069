"""The role that fills AWX, by the real awx.awx, against a stand-in of AWX's API that validates by its documented schema. Needs no guests."""

from __future__ import annotations

import functools
import json

import pytest
from awx_stand_in import TOKEN, Awx, RefusedError, standing_in
from awx_surveys import data
from checkout import CACHE, ROOT, WITH_PROGRAMS, run
from guides import commands, texts
from test_awx_guide import APPLY, PAGE


@pytest.fixture(scope="module", autouse=True)
def _awx_awx():
    run("sh", "requirements/awx.sh")


@pytest.fixture
def apply(tmp_path):
    """What a reader of the guide does: with its file of variables, its command."""
    (tmp_path / "awx.yml").write_text(texts(PAGE, "yaml")[0])
    return functools.partial(_apply, tmp_path)


def _apply(place, url, *words, prefix="/api/"):
    command = " ".join((APPLY, *words))
    assert command in commands(PAGE)
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": "%s:%s" % (ROOT / ".collections", CACHE / "awx"),
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "ANSIBLE_NOCOLOR": "1",
        "PATH": WITH_PROGRAMS,
        "CONTROLLER_HOST": url,
        "CONTROLLER_OAUTH_TOKEN": TOKEN,
        "CONTROLLER_OPTIONAL_API_URLPATTERN_PREFIX": prefix,
    }
    return run("sh", "-c", command, cwd=place, **environment)


def test_all_is_applied_twice_to_a_stand_in_and_the_second_time_nothing_changes(apply):
    awx = Awx()
    with standing_in(awx) as url:
        said = apply(url, "--check")
        assert "changed=2" in said and awx.changes == [], "a prediction has changed something"
        apply(url)
        _is_what_the_data_say(awx)
        awx.changes.clear()
        assert "changed=0" in apply(url) and awx.changes == []
        (swap,) = (one for one in awx.kept["job_templates"].values() if one["name"] == "nodecare repair swap")
        swap.update(job_type="run", limit="all", allow_simultaneous=True)
        assert "changed=1" in apply(url) and awx.changes == [("changed", "job_templates", "nodecare repair swap")]
        _is_what_the_data_say(awx)


def test_all_is_applied_where_automation_platform_has_its_controller(apply):
    awx = Awx("/api/controller/")
    with standing_in(awx, ("Red Hat Ansible Automation Platform", "4.6.0")) as url:
        apply(url, prefix="/api/controller/")
    _is_what_the_data_say(awx)


def _is_what_the_data_say(awx):
    templates = {one["name"]: one for one in awx.kept["job_templates"].values()}
    wanted = data("job_templates")
    assert set(templates) == {one["name"] for one in wanted.values()}
    for one in wanted.values():
        kept = templates[one["name"]]
        assert awx.surveys.get(kept["id"]) == one.get("survey")
        assert json.loads(kept["extra_vars"]) == one["extra_vars"]
        assert {key: kept[key] for key in one if key not in ("survey", "extra_vars")} == {key: one[key] for key in one if key not in ("survey", "extra_vars")}
        assert len(awx.ways["job_templates", kept["id"], "credentials"]) == 2
    assert ways(awx) == {
        (workflow["name"], node["identifier"], way, after)
        for workflow in data("workflows").values()
        for node in workflow["nodes"]
        for way in ("success", "failure", "always")
        for after in node.get(way, [])
    }
    assert [one["name"] for one in awx.kept["workflow_approval_templates"].values()] == ["Agree to the plan?"]
    assert [one["enabled"] for one in awx.kept["schedules"].values()] == [True]


def ways(awx):
    nodes = awx.kept["workflow_job_template_nodes"]
    names = {number: one["name"] for number, one in awx.kept["workflow_job_templates"].items()}
    return {
        (names[nodes[number]["workflow_job_template"]], nodes[number]["identifier"], way.removesuffix("_nodes"), nodes[after]["identifier"])
        for (kind, number, way), afters in awx.ways.items()
        if kind == "workflow_job_template_nodes" and way.endswith("_nodes")
        for after in afters
    }


# -- the format that awxkit imports -------------------------------------------------------------------------------------------

ORGANIZATION = {"name": "Default", "type": "organization"}
OWNED = {"organization": ORGANIZATION, "inventory": {"organization": ORGANIZATION, "name": "nodes", "type": "inventory"}}
PROJECT = {"project": {"organization": ORGANIZATION, "name": "nodecare", "type": "project"}}


def key(name, kind="job_template"):
    return {"organization": ORGANIZATION, "name": name, "type": kind}


def assets():
    """The same data as `awx export` would have written it."""
    return {
        "job_templates": [_asset(one, **PROJECT, extra_vars=json.dumps(one["extra_vars"])) for one in data("job_templates").values()],
        "workflow_job_templates": [_asset(one, "workflow_job_template") for one in data("workflows").values()],
    }


def _asset(one, kind="job_template", **more):
    fields = {name: value for name, value in one.items() if name not in ("survey", "nodes")}
    related = {"survey_spec": one["survey"]} if "survey" in one else {}
    if "nodes" in one:
        related["workflow_nodes"] = [_node(node, key(one["name"], kind)) for node in one["nodes"]]
    return {**fields, **OWNED, **more, "natural_key": key(one["name"], kind), "related": related}


def _node(node, workflow):
    fields = {name: node[name] for name in ("identifier", "job_type", "job_slice_count", "extra_data") if name in node}
    if "template" in node:
        fields["unified_job_template"] = key(node["template"])
    related = {way + "_nodes": [_node_key(after, workflow) for after in node[way]] for way in ("success", "failure", "always") if way in node}
    if "approval" in node:
        related["create_approval_template"] = node["approval"]
    return {**fields, "natural_key": _node_key(node["identifier"], workflow), "related": related}


def _node_key(identifier, workflow):
    return {"workflow_job_template": workflow, "identifier": identifier, "type": "workflow_job_template_node"}


def test_the_data_passes_awxkits_import_into_a_stand_in(caplog):
    kit = pytest.importorskip("awxkit.api.pages")
    connection = pytest.importorskip("awxkit.api.client").Connection
    awx = Awx()
    with standing_in(awx) as url:
        door = connection(url)
        door.login(token=TOKEN)
        pages = kit.ApiV2(door, endpoint="/api/v2/").get()
        pages._has_error = False
        for kind, ones in assets().items():  # one after the other: a step of a workflow answers a survey, and awxkit would bring the surveys later
            assert pages.import_assets({kind: ones})
    assert not pages._has_error, caplog.text
    assert {one["name"] for one in awx.kept["job_templates"].values()} == {one["name"] for one in data("job_templates").values()}
    assert {awx.kept["job_templates"][number]["name"] for number in awx.surveys if number in awx.kept["job_templates"]} == {
        one["name"] for one in data("job_templates").values() if "survey" in one
    }
    assert ("nodecare repair nodes", "agree", "success", "repair") in ways(awx)
    assert [one["name"] for one in awx.kept["workflow_approval_templates"].values()] == ["Agree to the plan?"]


# -- the stand-in itself ----------------------------------------------------------------------------------------------------

FINE = {"name": "x", "project": 2, "inventory": 3, "playbook": "preflight.yml"}
REFUSED = {
    "a playbook that the project has not": {"playbook": "hosts.yml"},
    "no such job type": {"job_type": "scan"},
    "a text for a boolean": {"diff_mode": "true"},
    "a field that there is not": {"job_slices": 3},
    "variables that are no dictionary": {"extra_vars": "[1]"},
    "no inventory": {"inventory": None},
    "an inventory that there is not": {"inventory": 99},
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_stand_in_refuses(case):
    Awx().make("job_templates", FINE)
    with pytest.raises(RefusedError):
        Awx().make("job_templates", {**FINE, **REFUSED[case]})
