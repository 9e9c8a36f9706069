# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a job leaves for those that come after it: few words, however many nodes it has read.

Later jobs of a workflow get these as variables that win over all others, so none is called like a variable of a role, but for
``nodecare_plan_id``, which is meant for the role that carries the plan out.
"""

from __future__ import annotations

from ._report.words import natural
from ._rules._rule import COLLECTION, EVERYWHERE

MOST = 100  # names in a list; its job's artifacts are one event, and AWX empties events of more than 700000 bytes


def of_report(report, hosts, paths):
    """The counts, the nodes that fail, which playbook would repair which nodes, and where the report is.

    ``nodecare_found_only_on`` is there where all of these repairs are of one of the hosts, and change no other node: what an event may have a repair
    asked for (docs/events.md).
    """
    failing = {one["node"] for one in report["findings"] if one["status"] == "fail"}
    repairs = {}
    for one in report["findings"]:
        if one["status"] in ("fail", "warn") and one["remedy"] and one["remedy"]["playbook"]:
            repairs.setdefault(one["remedy"]["playbook"], set()).add(one["node"])
    repaired = set().union(*repairs.values())
    alone = len(repaired) == 1 and repaired <= set(hosts) and not any(name.removeprefix(COLLECTION) in EVERYWHERE for name in repairs)
    return {
        **({"nodecare_found_only_on": min(repaired)} if alone else {}),
        "nodecare_found_summary": report["summary"],
        "nodecare_found_failing": _names(failing),
        "nodecare_found_repairs": {playbook: _names(nodes) for playbook, nodes in sorted(repairs.items())},
        "nodecare_found_report": paths.get("json", ""),
    }


def of_plan(plan):
    """Which plan it is, whether it speaks against itself, and what it would do on how many nodes."""
    steps = {}
    for turn in plan["turns"]:
        for step in turn["steps"]:
            steps[step["playbook"]] = steps.get(step["playbook"], 0) + 1
    return {"nodecare_plan_id": plan["id"], "nodecare_planned_stop": plan["stop"][:MOST], "nodecare_planned_steps": steps}


def _names(nodes):
    names = sorted(nodes, key=natural)
    return names if len(names) <= MOST else [*names[:MOST], "and %d more" % (len(names) - MOST)]
