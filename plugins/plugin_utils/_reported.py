# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. A report of an earlier run, or its saved facts, read from a file that may be anybody's."""

from __future__ import annotations

import json
import os
from collections import namedtuple

from . import _judge, _merge
from ._policy import PolicyError
from ._report import BUNDLE, SCHEMA
from ._rules._rule import CLUSTER

Reported = namedtuple("Reported", "findings names nodes cluster")  # names of all machines; {name: facts} and the cluster's where they were saved
SHAPE = {"id": str, "node": str, "status": str, "severity": str, "title": str, "message": str, "evidence": dict}
REMEDY = {"vars": dict, "disruptive": bool, "reboot": bool}
WANTED = "a report.json (schema %s), saved facts (schema %s), or the directory that has them" % (SCHEMA, BUNDLE)


class ReportError(ValueError):
    """Why a file is no report, and what is one."""


def read(path, given_policy):
    """What a report found. Saved facts are judged again, by the policy that is given, else each node by its own."""
    file = os.path.join(path, "report.json") if os.path.isdir(path) else path
    said = _json(file)
    if said.get("schema") == BUNDLE:
        return _judged(said, given_policy, file)
    if said.get("schema") != SCHEMA:
        raise ReportError("%s has the schema %r, and is not %s" % (file, said.get("schema"), WANTED))
    findings, names = said.get("findings"), said.get("nodes")
    if not isinstance(findings, list) or not isinstance(names, dict) or not all(map(_is_finding, findings)):
        raise ReportError("%s is damaged: its findings are not what a report has. Make a new one" % file)
    beside = os.path.join(os.path.dirname(file), "facts.json")
    saved = _json(beside) if os.path.exists(beside) else {}
    return Reported(findings, sorted(set(names) - {CLUSTER}), *_facts(saved))


def _json(file):
    try:
        with open(file, encoding="utf-8") as opened:
            said = json.load(opened)
    except OSError as error:
        raise ReportError("%s cannot be read: %s. It has to be %s" % (file, error.strerror, WANTED)) from None
    except ValueError:
        raise ReportError("%s is no JSON. It has to be %s" % (file, WANTED)) from None
    return said if isinstance(said, dict) else {}


def _facts(saved):
    nodes = saved.get("nodes") if isinstance(saved.get("nodes"), dict) else {}
    return {name: one for name, one in nodes.items() if isinstance(one, dict)}, saved.get("cluster") or None


def _judged(saved, given_policy, file):
    nodes, cluster = _facts(saved)
    lost = saved.get("lost") or []
    if not isinstance(lost, list) or not all(map(_is_finding, lost)):
        raise ReportError("%s is damaged: what it says of lost nodes are no findings. Make a new one" % file)
    measure = {"policy": given_policy, "policies": {}} if given_policy else {}
    try:
        found = _merge.merged([(file, {**saved, "nodes": nodes, "cluster": cluster, **measure})])
    except (_judge.SelectionError, _merge.MergeError, PolicyError) as error:
        raise ReportError("%s: %s" % (file, error)) from None
    return Reported(found.findings, sorted(found.nodes), nodes, cluster)


def _is_finding(one):
    if not isinstance(one, dict) or not all(isinstance(one.get(key), kind) for key, kind in SHAPE.items()) or "see" not in one or "remedy" not in one:
        return False
    remedy = one["remedy"]
    told = isinstance(remedy, dict) and all(remedy.get(key) is None or isinstance(remedy[key], str) for key in ("playbook", "manual"))
    return remedy is None or (told and all(isinstance(remedy.get(key), kind) for key, kind in REMEDY.items()) and {"playbook", "manual"} <= set(remedy))
