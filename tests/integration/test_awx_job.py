"""A job as AWX starts it, which it must not carry out; all the others: tests/lab/test_awx_runner.py."""

from __future__ import annotations

from awx_job import launch, nowhere


def test_a_repair_without_a_limit_asks_no_node(tmp_path):
    job = launch(tmp_path / "job", "repair_swap", nowhere("n1", "n2"))
    assert job.code == 2 and "this job has no limit, and repairs nothing" in job.said, job.said
    assert "unreachable" not in job.recap or not any(job.recap["dark"].values())
    assert "n2" not in job.recap["processed"], "the next node was begun with"
