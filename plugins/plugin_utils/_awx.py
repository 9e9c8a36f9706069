# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What a job of AWX is told about itself, and why it must not repair anything."""

from __future__ import annotations

import fnmatch
import re

from ansible.inventory.manager import split_host_pattern

PREFIXES = ("awx", "tower")  # Automation Platform gives both, too


def job(variables):
    """The number of the job of AWX that this is; empty for every other run."""
    return _told(variables, "job_id")


def refusal(variables, limit, groups, confirmed=None):
    """Why this run must not repair anything, in words; None where it may, as every run does that is no job of AWX.

    ``groups`` are those of the inventory, each with its hosts. ``confirmed`` is what was typed to confirm the limit, None where nothing has to be.
    """
    if not job(variables):
        return None
    if _sliced(variables):
        return (
            "this job is one slice of the job template %s, and repairs nothing: what keeps two nodes from being away at once sees only the hosts of its own "
            "slice. Set the template's job slicing to 1 and launch it again (a workflow must not have a template's name, either)"
        ) % _told(variables, "job_template_name")
    if too_wide(limit, groups):
        return "%s, and repairs nothing. Name the nodes that are meant, or their group, as the limit of the job" % (
            "this job's limit %r means every host of the inventory" % limit if (limit or "").strip() else "this job has no limit"
        )
    if confirmed is not None and confirmed.strip() != limit.strip():
        typed = "nodecare_confirm is %r" % confirmed if confirmed.strip() else "nodecare_confirm is empty"
        return "%s, and this job's limit is %r. It repairs nothing until the limit is typed there once more, word for word" % (typed, limit)
    return None


def too_wide(limit, groups):
    """Whether a limit leaves it open which nodes are meant: there is none, or a part of it stands for every host without being a group's name."""
    named = [part for part in split_host_pattern(limit or "") if part[0] not in "!&"]
    return not named or any(_is_everything(part, groups) for part in named)


def _is_everything(part, groups):
    if part.startswith("@"):  # a file on the controller may hold anything
        return True
    name = re.sub(r"\[[-\d:]*\]$", "", part)
    if name.startswith("~") or set(name) & set("*?["):
        meant = re.compile(name[1:] if name.startswith("~") else fnmatch.translate(name)).match
        taken = {host for group, hosts in groups.items() for host in hosts if meant(host) or meant(group)}  # Ansible asks the groups' names, too
        return taken >= set(groups["all"])
    return name == "all"


def _sliced(variables):
    """AWX tells a job nothing of its slice. It makes the slices as a workflow of the template's own name."""
    workflow = _told(variables, "workflow_job_name")
    return bool(workflow) and workflow == _told(variables, "job_template_name")


def _told(variables, name):
    return next((str(variables["%s_%s" % (prefix, name)]) for prefix in PREFIXES if variables.get("%s_%s" % (prefix, name))), "")
