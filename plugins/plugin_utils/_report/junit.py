# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The report for continuous integration: a JUnit test suite for each node, a test case for each finding.

A failure is a failure, whatever its severity; what was skipped or could not be told is a skipped test with the reason;
a warning is a passed test that says something.
"""

from __future__ import annotations

from datetime import datetime, timezone

from . import groups
from .words import safe


def write(report):
    of_node = {name: [] for name in report["nodes"]}
    for one in report["findings"]:
        of_node[one["node"]].append(one)
    suites = [_suite(name, node, of_node[name]) for name, node in report["nodes"].items()]
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _element("testsuites", "".join(suites), name="nodecare", **_counts(report["summary"])) + "\n"


def _suite(name, node, findings):
    taken = node["taken"] or {}
    seconds = taken.get("seconds")  # the node says so
    times = {
        "time": "%.3f" % (seconds if isinstance(seconds, (int, float)) else 0),
        "timestamp": datetime.fromtimestamp(taken.get("received", 0), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S"),
    }
    seen, cases = {}, []
    for one in findings:
        seen[one["id"]] = number = seen.get(one["id"], 0) + 1
        cases.append(_case(one, one["id"] if number == 1 else "%s (%d)" % (one["id"], number)))
    return _element("testsuite", "".join(cases), name=safe(name), hostname=safe(name), **_counts(node["counts"]), **times)


def _case(one, name):
    return _element("testcase", _outcome(one), classname="nodecare." + one["id"].split(".")[0], name=name, time="0")


def _outcome(one):
    if one["status"] == "fail":
        return _element("failure", _spelled(_words(one)), message=safe(one["message"]), type=one["severity"])
    if one["status"] in ("skip", "unknown"):
        return _element("skipped", message="%s: %s" % (one["status"], safe(one["message"])))
    return _element("system-out", "warning: " + _spelled(_words(one))) if one["status"] == "warn" else ""


def _element(tag, content="", /, **attributes):
    """Written at once: a tree of all of them would take longer than all other reports together."""
    opening = "<%s%s" % (tag, "".join([' %s="%s"' % (key, _spelled(value).replace('"', "&quot;")) for key, value in attributes.items()]))
    return "%s>%s</%s>" % (opening, content, tag) if content else opening + " />"


def _spelled(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _words(one):
    remedies = ["Repair: " + command for command, _cautions, _nodes in groups.commands([one])]
    return "\n".join([safe(one["title"]), safe(one["message"]), *remedies])


def _counts(counts):
    statuses = ("fail", "warn", "unknown", "pass", "skip")
    tests = sum(counts[status] for status in statuses)
    return {"tests": str(tests), "failures": str(counts["fail"]), "errors": "0", "skipped": str(counts["skip"] + counts["unknown"])}
