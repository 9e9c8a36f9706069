"""The job templates, surveys and workflows for AWX: as its documentation wants them, as the roles take them, and safe."""

from __future__ import annotations

import copy

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from awx_surveys import data, invalid, mismatches, options_of
from test_awx_project import playbooks

TEMPLATES = data("job_templates")
WORKFLOWS = data("workflows")
READING = {"preflight", "diagnose", "merge_reports"}
SURVEYED = sorted(name for name, one in TEMPLATES.items() if "survey" in one)
SAFE = {
    "job_type": "check",
    "ask_job_type_on_launch": True,
    "limit": "",
    "ask_limit_on_launch": True,
    "ask_variables_on_launch": False,
    "diff_mode": True,
    "allow_simultaneous": False,
    "job_slice_count": 1,
    "ask_job_slice_count_on_launch": False,
}


def test_each_playbook_has_a_template():
    assert sorted(one["playbook"] for one in TEMPLATES.values()) == playbooks()
    assert all(one["playbook"] == name + ".yml" for name, one in TEMPLATES.items())


@pytest.mark.parametrize("name", sorted(set(TEMPLATES) - READING))
def test_what_repairs_is_safe(name):
    template = TEMPLATES[name]
    assert {key: template[key] for key in SAFE} == SAFE
    assert "nodecare_confirm" in [one["variable"] for one in template["survey"]["spec"]]
    assert template["extra_vars"] == {}


def test_what_reads_can_be_sliced_and_comes_every_day():
    assert TEMPLATES["preflight"]["ask_job_slice_count_on_launch"] and TEMPLATES["preflight"]["allow_simultaneous"]
    assert [one["template"] for one in data("schedules").values()] == [TEMPLATES["preflight"]["name"]]


@pytest.mark.parametrize("name", SURVEYED)
def test_survey_is_what_the_role_takes(name):
    survey = TEMPLATES[name]["survey"]
    options, tasks = options_of(TEMPLATES[name]["playbook"])
    assert invalid(survey) is None
    assert list(mismatches(survey, options, tasks)) == []


@pytest.mark.parametrize("name", SURVEYED)
def test_answers_are_taken_for_what_they_say(name):
    """Each answer that the form can give is valid for the role, and the texts of a boolean become one."""
    options, _tasks = options_of(TEMPLATES[name]["playbook"])
    for one in TEMPLATES[name]["survey"]["spec"]:
        for answer in [one["choices"]] if one["type"] == "multiselect" else one.get("choices", ["worker-3"]):
            spec = {key: value for key, value in options[one["variable"]].items() if key in ("type", "elements", "choices")}
            checked = ArgumentSpecValidator({one["variable"]: spec}).validate({one["variable"]: answer})
            assert checked.error_messages == []
            value = checked.validated_parameters[one["variable"]]
            assert value is (answer == "true") if spec["type"] == "bool" else value == answer


WRONG = {  # what is changed in a survey's second question, and what is said of it
    "another variable": ({"variable": "nodecare_consents"}, "nodecare_consents is no option of the role"),
    "another type": ({"type": "text"}, "is asked for as text, and is of type bool"),
    "other choices": ({"choices": ["yes", "no"]}, "has the choices"),
    "another default": ({"default": "true"}, "has the default 'true', and the role's is 'false'"),
    "no default": ({"default": None}, "has the default None"),
    "required": ({"required": True}, "is required or not, unlike in the role"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mismatch_is_seen(name):
    change, says = WRONG[name]
    survey = copy.deepcopy(TEMPLATES["repair"]["survey"])
    survey["spec"][1].update(change)
    found = list(mismatches(survey, *options_of("repair.yml")))
    assert len(found) == 1 and says in found[0], found


def test_an_option_that_changes_is_seen():
    """The other way round: the role is what was changed."""
    options, tasks = options_of("repair_autodetection.yml")
    survey = TEMPLATES["repair_autodetection"]["survey"]
    for option, change in (("nodecare_state", {"choices": ["present", "absent"]}), ("nodecare_allow_disruption", {"type": "str"})):
        assert list(mismatches(survey, {**options, option: {**options[option], **change}}, tasks))


def test_workflows_fit_their_templates():
    names = {one["name"]: one for one in TEMPLATES.values()}
    assert not set(names) & {one["name"] for one in WORKFLOWS.values()}, "AWX gives slices the template's name, so no workflow may have it"
    for workflow in WORKFLOWS.values():
        steps = {one["identifier"] for one in workflow["nodes"]}
        for node in workflow["nodes"]:
            assert {after for way in ("success", "failure", "always") for after in node.get(way, [])} <= steps
            template = names.get(node.get("template"), {"survey": {"spec": []}})
            questions = {one["variable"]: one for one in template.get("survey", {"spec": []})["spec"]}
            for variable, answer in node.get("extra_data", {}).items():
                assert answer in questions[variable]["choices"]
            assert "job_type" not in node or template["ask_job_type_on_launch"]
            assert "job_slice_count" not in node or template["ask_job_slice_count_on_launch"]


def test_the_repair_comes_after_somebody_has_agreed_and_its_failure_leads_somewhere():
    nodes = {one["identifier"]: one for one in WORKFLOWS["repair"]["nodes"]}
    assert [one["identifier"] for one in nodes.values() if "repair" in one.get("success", [])] == ["agree"] and "approval" in nodes["agree"]
    assert not any("repair" in one.get(way, []) for one in nodes.values() for way in ("failure", "always"))
    assert nodes["plan"]["job_type"] == "check" and nodes["repair"]["job_type"] == "run"
    assert all(nodes[one]["failure"] == ["diagnose"] for one in ("plan", "repair", "verify"))
    survey = {"spec": [one for one in WORKFLOWS["repair"]["survey"]["spec"] if one["variable"] != "nodecare_confirm"]}
    assert invalid(WORKFLOWS["repair"]["survey"]) is None and list(mismatches(survey, *options_of("repair.yml"))) == []
    (confirm,) = (one for one in WORKFLOWS["repair"]["survey"]["spec"] if one["variable"] == "nodecare_confirm")
    assert confirm["required"], "here it is always a run"
