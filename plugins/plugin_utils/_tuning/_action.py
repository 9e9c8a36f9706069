# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the actions have in common that change a setting of calico-node in the whole cluster: once in a play, watched, and put back where it hurts."""

from __future__ import annotations

import json
from typing import NamedTuple

import yaml
from ansible.errors import AnsibleActionFail

from .. import _cluster, _registered
from .._api import ClientError, NoAnswerError
from .._api._action import ACCESS, ClusterAction
from .._api._why import DENIED
from .._holder import RunError, this_run
from .._lease import Keeper
from .._policy import PolicyError, policy
from .._report.words import safe
from .._with_cluster import is_machine, joined
from ._owners import DaemonSet, OwnerError, owner
from ._rollout import Rollout, StuckError, WorseError, held_up
from ._written import RIGHTS, Place, RefusedError

ARGUMENTS = {
    **ACCESS,
    "state": {"type": "str", "choices": ["present", "as_before"], "default": "present"},
    "results": {"type": "str", "default": "nodecare_check"},
    "cluster_results": {"type": "str", "default": "nodecare_cluster_check"},
    "policy": {"type": "dict", "default": {}},
    "even_on_kubespray": {"type": "bool", "default": False},
    "within": {"type": "float", "default": 300.0},
    "every": {"type": "float", "default": 5.0},
    "timeout": {"type": "float", "default": 20.0},
}
IN_BATCHES = (
    "this play takes its hosts in batches (serial), and the setting is the whole cluster's: it would be set once in each batch, knowing only a part of the"
    " nodes. Take serial out of the play"
)
NO_CLUSTER = "no cluster was read in this play: run cluster_check before, with the same access, and name its result in cluster_results"
ON_KUBESPRAY = (
    "kubespray has installed this Calico, and its next run would take back what is changed in the cluster. Nothing was changed here: %s. To change the"
    " DaemonSet now as well, say even_on_kubespray"
)
LEFT = "The setting stays as it is. To take it back: %s"


class Known(NamedTuple):
    """What the play knows when it begins: the cluster, each Node of it with its machine's facts, and the policy."""

    cluster: dict
    read: dict  # {host: its facts}
    nodes: dict  # {name of the Node: these, joined with the cluster}
    unread: list  # Nodes that no machine's facts stand for
    policy: object

    @property
    def calico(self):
        return self.cluster["calico"]

    @property
    def silent(self):
        return [one["name"] for one in self.cluster.get("nodes") or [] if _cluster.condition(one, "Ready").get("status") == "Unknown"]


class SettingAction(ClusterAction):
    """A subclass says what is to be set (``wanted``), and by what a node is known to be well with it (``compare``)."""

    BYPASS_HOST_LOOP = True
    repair = ""  # of which the mark in the object tells
    kind = ""  # of setting: the owner's function that puts it into its words
    arguments = ARGUMENTS

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _spec, arguments = self.validate_argument_spec(self.arguments)
        if set(task_vars["ansible_play_hosts"]) - set(task_vars["ansible_play_batch"]):
            raise AnsibleActionFail(IN_BATCHES)
        self.answer = {"changed": False, "undo": "", "notes": [], "nodes": {}}
        self.check, self.first = self._task.check_mode, ()
        try:
            known = _known(arguments, task_vars)
            self.who = this_run(self._task._uuid, task_vars)
            with self.opened(arguments, arguments["timeout"]) as door:
                self._go(door, known, arguments)
        except (ClientError, PolicyError, OwnerError, RefusedError, RunError, StuckError) as error:
            return {**self.answer, "failed": True, "msg": str(error)}
        except NoAnswerError as error:
            return {**self.answer, "failed": True, "msg": "%s%s" % (error, ". " + RIGHTS if error.kind == DENIED else "")}
        return self.answer

    def wanted(self, known, arguments):
        """What to set; nothing where all is as it should be. Fills the answer, and ``first``: the nodes that need it most."""
        raise NotImplementedError

    def inventory(self, wanted):
        """The variables of kubespray's inventory that say the same."""
        raise NotImplementedError

    def compare(self, door, node, seconds):
        """Raise WorseError where a node is not as it should be once it runs with the new setting."""

    def _go(self, door, known, arguments):
        arguments = json.loads(json.dumps(arguments))  # Ansible's own kinds of numbers and texts cannot be shown as YAML
        workload = known.calico["daemonset"] or {}
        place = Place(door, owner(known.calico, arguments["even_on_kubespray"]), self.repair, arguments["timeout"])
        self.daemonset = DaemonSet(workload["namespace"], workload["name"])
        keeper = Keeper(door, self.who, arguments["timeout"]) if place.owner else None
        rollout = Rollout(self, door, keeper, self.daemonset.path, arguments["within"], arguments["every"], arguments["timeout"])
        before = rollout.begin()
        if arguments["state"] == "as_before":
            self._take_back(place, rollout)
            return
        wanted = self.wanted(known, arguments)
        if wanted and place.owner is None:
            self._by_inventory(wanted)
            return
        change = self._put(place, wanted, before, known) if wanted else None
        if (change or (before.old and place.owner)) and not self.check:
            self._follow(place, rollout, change, lambda node: self._compare(door, node, arguments["timeout"]))

    def _put(self, place, wanted, before, known):
        """Write it; None where it is said already."""
        thing = place.read()
        words = getattr(place.owner, self.kind)(thing, wanted)
        pods = getattr(self.daemonset, self.kind)(before.daemonset, wanted)
        stuck = held_up(before, known.silent)
        if stuck:
            raise RefusedError("%s. Nothing was changed: put that node right, or delete it from the cluster where it is gone" % stuck)
        change = place.put(thing, words, {"before": self.daemonset.kept(before.daemonset, pods), "after": pods}, self.check)
        self.answer["undo"] = change.undo
        if not change.changed:
            self.answer["msg"] = "%s says so already" % place.owner.words
            return None
        self.answer.update(changed=True, notes=place.owner.notes(thing, words), diff=_diff(place.owner, change))
        self.answer["msg"] = "%s %s" % (place.owner.words, "would be changed" if self.check else "was changed")
        return change

    def _by_inventory(self, wanted):
        self.answer["inventory"] = self.inventory(wanted)
        said = ", ".join("%s: %s" % one for one in self.answer["inventory"].items())
        self.answer["msg"] = ON_KUBESPRAY % ("write into its inventory: %s, and run its cluster.yml" % said if said else "it has no variable for this")

    def _follow(self, place, rollout, change, compare):
        """Wait for the pods; where a node gets worse, what this run has written is put back."""
        try:
            if change:
                self._display.display(safe("%s was changed. To take it back: %s" % (place.owner.words, change.undo)))
                self._until_said(place, rollout, change)
            rollout.until_through(compare, self.first)
        except WorseError as worse:
            self._put_back(place, rollout, change, worse)
        except StuckError as stuck:
            raise StuckError("%s. %s" % (stuck, LEFT % (self.answer["undo"] or place.way_back(place.read()) or "there is nothing"))) from None
        finally:
            self.answer["nodes"] = rollout.took
            self.answer["changed"] = self.answer["changed"] or bool(rollout.replaced)

    def _compare(self, door, node, seconds):
        said = "calico-node runs as it was told, and is ready"
        try:
            self.compare(door, node, seconds)
        except NoAnswerError as error:
            if not error.missing:
                raise
            said = "the cluster has no such Node any more"
        self._display.display("%s: %s" % (safe(node), said))

    def _until_said(self, place, rollout, change):
        """An operator that does not take it over has changed no pod, and must not do so later, when nobody watches."""
        try:
            self._until_daemonset_says(place, rollout, change.pods["after"])
        except StuckError as stuck:
            place.put_back(change)
            self.answer["changed"] = False
            raise RefusedError("%s. No pod was replaced, and %s is as it was" % (stuck, place.owner.words)) from None

    def _until_daemonset_says(self, place, rollout, words):
        if place.owner.path != self.daemonset.path:
            rollout.until_said(lambda thing: self.daemonset.kept(thing, words) == words, place.owner)

    def _put_back(self, place, rollout, change, worse):
        why = "%s got worse with it: %s" % (worse.node, worse.why)
        if change is None:
            raise StuckError("%s. %s" % (why, LEFT % (place.way_back(place.read()) or "there is nothing"))) from None
        self._display.display(safe("%s. The old setting is put back" % why))
        try:
            place.put_back(change)
            self._back(place, rollout, change)
        except (RefusedError, StuckError, WorseError) as error:
            raise StuckError("%s. To put the old setting back did not come to its end: %s. By hand: %s" % (why, error, change.undo)) from None
        raise RefusedError("%s. The old setting is back, and calico-node runs with it again" % why) from None

    def _back(self, place, rollout, change):
        self._until_daemonset_says(place, rollout, change.pods["before"])
        rollout.until_through(lambda node: None)

    def _take_back(self, place, rollout):
        if place.owner is None:
            raise RefusedError("kubespray has installed this Calico: where its DaemonSet was changed nevertheless, say even_on_kubespray here, too")
        change = place.take_back(place.read(), self.check)
        if change is None:
            self.answer["msg"] = "%s holds nothing to be taken back" % place.owner.words
            return
        self.answer.update(changed=True, diff=_diff(place.owner, change))
        self.answer["msg"] = "%s %s as it was before" % (place.owner.words, "would be" if self.check else "is")
        if not self.check:
            try:
                self._back(place, rollout, change)
            except WorseError as worse:
                raise StuckError("%s is as it was before, but %s" % (place.owner.words, worse)) from None
            finally:
                self.answer["nodes"] = rollout.took


def _known(arguments, task_vars):
    checked = policy(arguments["policy"])
    cluster = _registered.cluster(task_vars, arguments["cluster_results"])
    if cluster is None:
        raise RefusedError(NO_CLUSTER)
    if not cluster.get("calico") or cluster.get("nodes") is None:
        why = next((one["why"] for one in cluster.get("problems") or []), "it gave no facts about Calico")
        raise RefusedError("the cluster could not be read: %s" % why)
    read = {name: result["facts"] for name, result in _registered.results(task_vars, arguments["results"]) if result.get("facts")}
    views = {view["cluster"]["node"]["name"]: view for view in joined(read, cluster).values() if view["cluster"]["node"]}
    unread = sorted(name for name, view in views.items() if not is_machine(view))
    return Known(cluster, read, {name: view for name, view in views.items() if name not in unread}, unread, checked)


def _diff(place_owner, change):
    before, after = (yaml.safe_dump(place_owner.shown(one), sort_keys=True) for one in (change.before, change.after))
    return {"before_header": place_owner.words, "after_header": place_owner.words, "before": before, "after": after}
