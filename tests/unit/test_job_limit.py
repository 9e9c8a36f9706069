"""Which jobs of AWX may repair: the limits that leave it open whom they mean, slices, and what has to be typed."""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _awx
from tables import table

HOSTS = ["worker-1", "worker-2", "worker-3", "control-1"]


@pytest.mark.parametrize("case", table("cases/job-limit"), ids=lambda case: case["case"])
def test_refusal(case):
    why = _awx.refusal(case.get("job", {"awx_job_id": 5}), case["limit"], HOSTS, case.get("confirmed"))
    assert (why is None) is case.get("may", False), why
    assert case.get("says", "") in (why or "")
