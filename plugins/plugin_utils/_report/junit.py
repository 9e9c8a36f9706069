# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report for continuous integration: a JUnit test suite for each node, a test case for each finding.

A failure is a failure, whatever its severity; what was skipped or could not be told is a skipped test with the reason;
a warning is a passed test that says something.
"""

from __future__ import annotations

from datetime import datetime, timezone
from xml.etree import ElementTree

from . import groups
from .words import safe


def write(report):
    root = ElementTree.Element("testsuites", name="nodecare", **_counts(report["summary"]))
    of_node = {name: [] for name in report["nodes"]}
    for one in report["findings"]:
        of_node[one["node"]].append(one)
    for name, node in report["nodes"].items():
        _suite(root, name, node, of_node[name])
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root, name, node, findings):
    taken = node["taken"] or {}
    suite = ElementTree.SubElement(root, "testsuite", name=safe(name), hostname=safe(name), **_counts(node["counts"]))
    seconds = taken.get("seconds")  # the node says so
    suite.set("time", "%.3f" % (seconds if isinstance(seconds, (int, float)) else 0))
    suite.set("timestamp", datetime.fromtimestamp(taken.get("received", 0), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S"))
    seen = {}
    for one in findings:
        seen[one["id"]] = number = seen.get(one["id"], 0) + 1
        _case(suite, one, one["id"] if number == 1 else "%s (%d)" % (one["id"], number))


def _case(suite, one, name):
    case = ElementTree.SubElement(suite, "testcase", classname="nodecare." + one["id"].split(".")[0], name=name, time="0")
    if one["status"] == "fail":
        failure = ElementTree.SubElement(case, "failure", message=safe(one["message"]), type=one["severity"])
        failure.text = _words(one)
    elif one["status"] in ("skip", "unknown"):
        ElementTree.SubElement(case, "skipped", message="%s: %s" % (one["status"], safe(one["message"])))
    elif one["status"] == "warn":
        ElementTree.SubElement(case, "system-out").text = "warning: " + _words(one)


def _words(one):
    remedies = ["Repair: " + command for command, _cautions, _nodes in groups.commands([one])]
    return "\n".join([safe(one["title"]), safe(one["message"]), *remedies])


def _counts(counts):
    statuses = ("fail", "warn", "unknown", "pass", "skip")
    tests = sum(counts[status] for status in statuses)
    return {"tests": str(tests), "failures": str(counts["fail"]), "errors": "0", "skipped": str(counts["skip"] + counts["unknown"])}
