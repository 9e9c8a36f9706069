# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What earlier tasks of the play have registered."""

from __future__ import annotations

from ansible.errors import AnsibleActionFail

from ._rules._rule import CLUSTER
from ._with_cluster import unread

TAKEN = "a host of the inventory is called %r, which is what findings about the cluster as a whole are called: give that host another name" % CLUSTER


def results(task_vars, variable):
    """(host, what it registered) for each host of the play; an empty table where that is nothing.

    A registered result holds no templates, so it is taken as it is: hostvars[name] would build a template engine with
    all variables for every host, which for a thousand of them takes far longer than all the rest.
    """
    hostvars = task_vars["hostvars"]
    for name in task_vars["ansible_play_hosts_all"]:
        if name == CLUSTER:
            raise AnsibleActionFail(TAKEN)
        result = hostvars.raw_get(name).get(variable)
        if isinstance(result, str):  # not registered, but made by a template
            result = hostvars[name].get(variable)
        yield str(name), result if isinstance(result, dict) else {}


def cluster(task_vars, variable):
    """The cluster facts that cluster_check registered; None where no cluster was asked, and a document of its problem where that failed."""
    result = next((result for _name, result in results(task_vars, variable) if result), {})
    if result.get("cluster"):
        return result["cluster"]
    return unread(result.get("msg") or "cluster_check gave no facts") if result.get("failed") else None
