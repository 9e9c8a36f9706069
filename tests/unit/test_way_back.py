"""What the last words of a repair say about its node: that nothing was changed only where that is certain, else how it is taken back.

Each role's own expression is evaluated over what its module may have come back with.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLES = Path(__file__).parents[2] / "roles"
NOTHING, UNDO = "On this one nothing was changed", "To take back what was changed here: ansible-playbook nodecare.kubernetes.undo --limit n1"
# What a task has registered. Of what a module has done before its connection was lost, Ansible knows nothing, and says "changed: false" all the same.
LOST = {"unreachable": True, "changed": False, "msg": "Failed to connect to the host via ssh"}
LATE = {"failed": True, "changed": False, "msg": "The action failed to execute in the expected time frame (300) and was terminated"}
CRASHED = {"failed": True, "changed": False, "msg": "MODULE FAILURE"}
SKIPPED = {"skipped": True, "changed": False, "skip_reason": "Conditional result was False"}
REFUSED = {"failed": True, "changed": False, "refused": True, "msg": "Refused, and nothing was changed: n1 has a pod"}
FAILED = {"failed": True, "changed": True, "msg": "br-1 is still there"}
GONE, NONE_THERE = {"changed": True, "removed": [{"bridge": "br-1"}]}, {"changed": False, "removed": []}
MOVED, NOT_MOVED = {"changed": True, "diff": [{}], "moved_to": "/x"}, {"changed": False, "diff": []}
HALF = {**MOVED, "failed": True, "refused": False, "msg": "The directory was moved away, but the datastore is still locked"}
ENDS = {  # role: what it registers, what must be said then
    "remove_bridges": ("remove_bridges_done", [(GONE, UNDO), (NONE_THERE, NOTHING)]),
    "unstick_ipam": ("unstick_ipam_with_cluster", [(MOVED, UNDO), (NOT_MOVED, NOTHING), (HALF, UNDO)]),
    "unstick_ipam alone": ("unstick_ipam_alone", [(MOVED, UNDO), (NOT_MOVED, NOTHING)]),
}
ALWAYS = [(None, NOTHING), (SKIPPED, NOTHING), (REFUSED, NOTHING), (LOST, UNDO), (LATE, UNDO), (CRASHED, UNDO), (FAILED, UNDO)]
CASES = [pytest.param(role, name, result, words, id="%s: %s" % (role, result)) for role, (name, own) in ENDS.items() for result, words in own + ALWAYS]


@pytest.mark.parametrize(("role", "name", "result", "words"), CASES)
def test_last_words(role, name, result, words):
    place = ROLES / role.split()[0]
    known = {"inventory_hostname": "n1", "guard_cluster": not role.endswith("alone"), **({} if result is None else {name: result})}
    if role == "unstick_ipam alone":
        known["unstick_ipam_with_cluster"] = SKIPPED
    said = DataLoader().load_from_file(str(place / "vars/main.yml"), trusted_as_template=True) if (place / "vars/main.yml").exists() else {}
    stop = DataLoader().load_from_file(str(place / "tasks/main.yml"), trusted_as_template=True)[-1]
    assert Templar(DataLoader(), variables={**known, **said}).template(stop["vars"]["guard_way_back"]).strip() == words
