"""What unstick_ipam comes back with when it ends in the middle: what it has changed by then, and that nothing was changed only where that is so."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.nodecare.kubernetes.plugins.action import unstick_ipam
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import NoAnswerError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._ipam import Decision

LOCKED = {
    "metadata": {"resourceVersion": "7", "managedFields": [{"manager": "calico-ipam", "fieldsV1": {"f:spec": {"f:datastoreReady": {}}}}]},
    "spec": {"datastoreReady": False},
}
ARGUMENTS = {"even_if_locked_by_hand": False, "wait": 0.0, "policy": {}, "timeout": 5.0}
MOVED = {"changed": True, "diff": [{}], "path": "/a", "moved_to": "/b", "entries": 1, "journal": "j", "earlier": []}
EARLIER = {"changed": False, "diff": [], "earlier": ["j"]}
REFUSED = {"failed": True, "refused": True, "msg": "Refused, and nothing was changed: it is the node's own network"}


class Action(unstick_ipam.ActionModule):
    """With a node and an API server that answer as a case says; ``asked`` is what they were asked for."""

    def __init__(self, decision, node=MOVED, sweeps=(), patch=None, check=False, **arguments):
        self._task = SimpleNamespace(check_mode=check)
        self.decision, self.node, self.sweeps, self.patched = decision, node, list(sweeps), patch
        self.arguments, self.own, self.asked = {**ARGUMENTS, **arguments}, "n1", []

    def freed(self):
        return self.run(None, {"inventory_hostname": "n1"})

    def validate_argument_spec(self, _spec):
        return None, self.arguments

    def _decided(self, *_arguments):
        return self.decision

    def _execute_module(self, name, _arguments, task_vars):
        self.asked.append(("check " if self._task.check_mode else "") + name.rpartition(".")[2])
        return dict(self.node)

    def _cluster(self, _arguments, so_far=unstick_ipam.NOTHING):
        why = self.sweeps.pop(0) if self.sweeps else None
        if why:
            raise AnsibleActionFail(so_far + why)
        return {"nodes": [], "pods": []}

    @contextmanager
    def opened(self, _arguments, _seconds):
        yield self

    def get(self, _path, _query, _seconds):
        return LOCKED

    def patch(self, _path, _body, _seconds, dry_run):
        self.asked.append("patch")
        if self.patched:
            raise self.patched


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(unstick_ipam.ActionBase, "run", lambda self, tmp, task_vars: {})


BOTH, MOVE, UNLOCK = Decision(True, True, None, None), Decision(True, False, None, None), Decision(False, True, None, None)
# what is decided, what node and API server do, and what comes back: whether anything was changed, whether it is certain that nothing was, and the words
ENDS = {
    "all is well": (BOTH, {}, True, None, "/a is now /b; Calico's datastore is free"),
    "the API server goes away once the directory is moved": (BOTH, {"sweeps": ["gone"]}, True, False, "The directory was moved away, but"),
    "it refuses to free the datastore": (BOTH, {"patch": NoAnswerError("no", status=403)}, True, False, "The directory was moved away, but"),
    "the same, and nothing was to be moved": (UNLOCK, {"patch": NoAnswerError("no", status=403)}, False, True, "Nothing was"),
    "nobody hears whether it has freed it": (UNLOCK, {"patch": NoAnswerError("no answer within 10 s")}, True, False, "Whether the datastore was freed"),
    "the same, once the directory is moved": (BOTH, {"patch": NoAnswerError("no answer within 10 s")}, True, False, "The directory was moved away. Whether"),
    "the same, as a mere look": (UNLOCK, {"patch": NoAnswerError("no answer within 10 s"), "check": True}, False, True, "Nothing was changed"),
    "the node refuses": (BOTH, {"node": REFUSED}, False, True, "Refused, and nothing was changed"),
    "the node's half ends in its middle": (MOVE, {"node": {"failed": True, "msg": "MODULE FAILURE"}}, False, None, "MODULE FAILURE"),
}


# A forgotten lock and nothing to move: what the node answers to the question whether its directory was moved earlier, the consent, and what comes of it.
OWN_NETWORK = {**REFUSED, "earlier": []}
FORGOTTEN = {
    "it was moved by an earlier run": (EARLIER, False, "Calico's datastore is free", ["check ipam_leftovers", "patch"]),
    "it refuses, but was moved by an earlier run": ({**REFUSED, "earlier": ["j"]}, False, "Calico's datastore is free", ["check ipam_leftovers", "patch"]),
    "it is the node's own network": (OWN_NETWORK, False, "Nothing was changed: one of Calico's programs has locked", ["check ipam_leftovers"]),
    "the same, with consent": (OWN_NETWORK, True, "Calico's datastore is free", ["patch"]),
    "nobody knows": ({"failed": True, "msg": "MODULE FAILURE"}, False, "Nothing was changed: MODULE FAILURE", ["check ipam_leftovers"]),
}


@pytest.mark.parametrize("case", FORGOTTEN)
def test_a_forgotten_lock_is_freed_without_a_hand_on_the_node(case):
    node, consent, words, asked = FORGOTTEN[case]
    action = Action(UNLOCK, node=node, even_if_locked_by_hand=consent)
    answer = action.freed()
    assert answer["msg"].startswith(words) and action.asked == asked and action._task.check_mode is False
    assert answer.get("refused", False) is words.startswith("Nothing")


@pytest.mark.parametrize("case", ENDS)
def test_how_it_ends(case):
    decision, more, changed, refused, words = ENDS[case]
    answer = Action(decision, **{"node": MOVED if decision.move else EARLIER, **more}).freed()
    assert (bool(answer.get("changed")), answer.get("refused")) == (changed, refused) and answer["msg"].startswith(words), answer
    assert changed or refused or "diff" not in answer, "with it everybody believes that nothing was changed"
