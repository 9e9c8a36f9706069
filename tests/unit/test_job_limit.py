"""Which jobs of AWX may repair: the limits that leave it open whom they mean, slices, and what has to be typed."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _awx
from checkout import ROOT
from tables import table
from test_awx_project import playbooks

WORKERS = ["worker-1", "worker-2", "worker-3"]
GROUPS = {"all": [*WORKERS, "control-1"], "ungrouped": [], "workers": WORKERS, "control": ["control-1"], "kubernetes": [*WORKERS, "control-1"]}


@pytest.mark.parametrize("case", table("gates/job-limit"), ids=lambda case: case["case"])
def test_refusal(case):
    why = _awx.refusal(case.get("job", {"awx_job_id": 5}), case["limit"], GROUPS, case.get("confirmed"))
    assert (why is None) is case.get("may", False), why
    assert case.get("says", "") in (why or "")


# -- every repair begins with it -----------------------------------------------------------------------------------------

REPAIRS = [name for name in playbooks() if name not in ("preflight.yml", "diagnose.yml", "merge_reports.yml")]
HARMLESS = {"ansible.builtin.set_fact"}


def modules(tasks, place):
    """The modules of these tasks in their order, through blocks, files and roles."""
    for task in tasks:
        if "block" in task:
            yield from modules(task["block"], place)
            continue
        (module,) = (name for name in task if "." in name)
        said = task[module]
        if module in ("ansible.builtin.import_role", "ansible.builtin.include_role"):
            yield from of_role(str(said["name"]), said.get("tasks_from", "main"))
        elif module in ("ansible.builtin.import_tasks", "ansible.builtin.include_tasks"):
            yield from modules(yaml.safe_load((place / said).read_text()), place)
        else:
            yield module


def of_role(name, entry):
    place = ROOT / "roles" / name.rpartition(".")[2] / "tasks"
    return modules(yaml.safe_load((place / (entry + ".yml")).read_text()), place)


@pytest.mark.parametrize("name", REPAIRS)
def test_every_repair_begins_with_it(name):
    first_play = yaml.safe_load((ROOT / "playbooks" / name).read_text())[0]
    first = next(module for module in modules(first_play["tasks"], None) if module not in HARMLESS)
    assert first == "nodecare.kubernetes.job_limit"


def test_a_role_that_begins_with_something_else_is_seen():
    assert next(module for module in of_role("preflight", "main")) == "nodecare.kubernetes.cluster_check"
