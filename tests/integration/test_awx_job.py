"""One job as AWX starts it, and one that it must not carry out; all the others: tests/lab/test_awx_runner.py."""

from __future__ import annotations

import json

from awx_job import MOST, here, launch, nowhere


def test_preflight_leaves_artifacts_also_where_it_fails(tmp_path):
    rule = {"id": "site.never", "query": "schema", "expect": {"matches": "^never$"}, "message": "it is {value}", "severity": "error"}
    given = {"nodecare_site_rules": [rule], "nodecare_reports": str(tmp_path / "shared")}
    job = launch(tmp_path / "job", "preflight", here("n1", "n2"), {"nodecare_checks": ["swap"]}, extra={**given, "nodecare_checks": ["site"]})
    assert job.code == 2, job.said
    assert set(job.artifacts) == {"nodecare_found_summary", "nodecare_found_failing", "nodecare_found_repairs", "nodecare_found_report"}
    assert job.artifacts["nodecare_found_failing"] == ["n1", "n2"]
    report = tmp_path / "shared/42/42/report.json"
    assert job.artifacts["nodecare_found_report"] == str(report)
    assert json.loads(report.read_text())["summary"] == job.artifacts["nodecare_found_summary"]
    assert (report.parent / "facts.json").exists(), "slices are put together by it"
    assert job.largest < MOST


def test_a_repair_without_a_limit_asks_no_node(tmp_path):
    job = launch(tmp_path / "job", "repair_swap", nowhere("n1", "n2"))
    assert job.code == 2 and "this job has no limit, and repairs nothing" in job.said, job.said
    assert "unreachable" not in job.recap or not any(job.recap["dark"].values())
    assert "n2" not in job.recap["processed"], "the next node was begun with"
