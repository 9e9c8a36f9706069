"""Every playbook of the project as AWX starts it: what comes back of a hundred nodes, and who is refused. Needs no guests and no AWX."""

from __future__ import annotations

import json

import pytest
from api_server import Api
from api_server import standing_in as api_standing_in
from awx_job import MOST, TEMPLATES, here, launch, nowhere
from test_awx_content import READING

REPAIRS = sorted(set(TEMPLATES) - READING)
FOUND = {"nodecare_found_summary", "nodecare_found_failing", "nodecare_found_repairs", "nodecare_found_report"}
PLANNED = {"nodecare_plan_id", "nodecare_planned_stop", "nodecare_planned_steps"}
NONE = "this job has no limit, and repairs nothing"
# what is launched how, and what is said
REFUSED = {
    "no-limit": ({}, NONE),
    "empty-limit": ({"limit": " "}, NONE),
    "limit-all": ({"limit": "all"}, "this job's limit 'all' means every host of the inventory, and repairs nothing"),
    "slice": ({"limit": "n1", "sliced": True}, "this job is one slice of the job template nodecare "),
    "no-confirmation": ({"limit": "n1", "job_type": "run"}, "nodecare_confirm is empty, and this job's limit is 'n1'"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", REPAIRS)
def test_refused_before_any_node_is_asked(name, case, tmp_path):
    """Nothing listens on the nodes, so that to ask one of them would be seen."""
    how, says = REFUSED[case]
    job = launch(tmp_path / "job", name, nowhere("n1", "n2"), **how)
    assert job.code == 2 and says in job.said.replace("\n", " ").replace("\r", ""), job.said
    assert not job.recap["dark"] and not job.recap["changed"], job.said


@pytest.mark.parametrize("name", REPAIRS)
def test_with_a_limit_the_nodes_are_asked(name, tmp_path):
    """The same job, let through: what listens nowhere cannot be reached, or the cluster is what is missing first."""
    job = launch(tmp_path / "job", name, nowhere("n1", "n2"), limit="n1")
    assert "repairs nothing" not in job.said
    assert job.recap["dark"].get("n1") or "no connection" in job.said or "cluster" in job.said, job.said
    assert "n2" not in job.recap["processed"]


@pytest.mark.parametrize("name", ["preflight", "diagnose"])
def test_a_hundred_nodes(name, tmp_path, figure):
    nodes = ["node-%03d" % number for number in range(100)]
    job = launch(tmp_path / "job", name, here(*nodes))
    assert job.code in (0, 2), job.said
    assert set(job.artifacts) == FOUND and job.artifacts["nodecare_found_summary"]["nodes"] == 100
    assert job.largest < MOST
    size = len(json.dumps(job.artifacts))
    figure("rc %d, %d events, the largest %d bytes, artifacts %d bytes" % (job.code, len(job.events), job.largest, size))


def test_preflight_leaves_artifacts_also_where_it_fails(tmp_path):
    rule = {"id": "site.never", "query": "schema", "expect": {"matches": "^never$"}, "message": "it is {value}", "severity": "error"}
    given = {"nodecare_site_rules": [rule], "nodecare_reports": str(tmp_path / "shared")}
    job = launch(tmp_path / "job", "preflight", here("n1", "n2"), {"nodecare_checks": ["swap"]}, extra={**given, "nodecare_checks": ["site"]})
    assert job.code == 2, job.said
    assert set(job.artifacts) == FOUND
    assert job.artifacts["nodecare_found_failing"] == ["n1", "n2"]
    report = tmp_path / "shared/42/42/report.json"
    assert job.artifacts["nodecare_found_report"] == str(report)
    assert json.loads(report.read_text())["summary"] == job.artifacts["nodecare_found_summary"]
    assert (report.parent / "facts.json").exists(), "slices are put together by it"
    assert job.largest < MOST


def test_the_clusters_credential_is_used_as_it_is(tmp_path):
    """What AWX's credential type OpenShift or Kubernetes API Bearer Token puts into the environment."""
    with api_standing_in(Api()) as server:
        credential = {"K8S_AUTH_HOST": server.url, "K8S_AUTH_API_KEY": "a-bearer-token", "K8S_AUTH_VERIFY_SSL": "False"}
        job = launch(tmp_path / "job", "preflight", here("n1"), credential=credential)
        assert {seen["Authorization"] for seen in server.headers_seen} == {"Bearer a-bearer-token"}
    assert job.code in (0, 2) and set(job.artifacts) >= FOUND, job.said
    assert "a-bearer-token" not in job.said + json.dumps(job.events)


def test_slices_of_a_fleet_come_together(tmp_path):
    """Two slices of one workflow, and the job after them, which gets what one of them has handed on."""
    shared, nodes = tmp_path / "shared", ["n1", "n2", "n3", "n4"]
    told = {"nodecare_reports": str(shared), "nodecare_checks": ["host", "load"]}
    for number in (0, 1):
        part = launch(tmp_path / ("slice-%d" % number), "preflight", here(*nodes[number::2]), extra=told, sliced=True)
        assert part.code in (0, 2), part.said
        (shared / "41/42").rename(shared / ("41/%d" % (100 + number)))  # each slice has a number of its own
    handed_on = {**part.artifacts, "nodecare_found_report": str(shared / "41/101/report.json")}
    merged = launch(tmp_path / "merged", "merge_reports", here(*nodes, "n5"), extra={**told, **handed_on})
    assert merged.code == 2 and merged.artifacts["nodecare_found_summary"]["nodes"] == 5, merged.said
    found = json.loads((shared / "merged/42/report.json").read_text())["findings"]
    assert {one["node"] for one in found if one["id"] == "host.unique"} == set(nodes)
    assert [one["node"] for one in found if one["id"] == "node.unreadable"] == ["n5"], "no slice has read it"


def test_a_plan_is_named_and_only_it_is_carried_out(tmp_path):
    """The steps of the workflow: what the plan has handed on comes back with the repair."""
    told = {"nodecare_checks": ["swap"]}
    plan = launch(tmp_path / "plan", "repair", here("n1"), limit="n1", job_type="check", extra=told)
    assert set(plan.artifacts) >= PLANNED and plan.code == 0, plan.said
    agreed = {"nodecare_consent": "true", "nodecare_confirm": "n1"}
    same = launch(tmp_path / "same", "repair", here("n1"), agreed, limit="n1", job_type="run", extra={**told, **plan.artifacts})
    assert same.code == 0, same.said
    other = launch(tmp_path / "other", "repair", here("n1"), agreed, limit="n1", job_type="run", extra={**told, **plan.artifacts, "nodecare_plan_id": "0" * 12})
    assert other.code == 2 and "agreed to was 000000000000" in other.said, other.said
