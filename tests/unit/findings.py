"""Findings as rules make them, for the tests of the reports."""

from __future__ import annotations

import functools

from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _report

TAKEN = {"at": 1790000000.0, "sent": 1790000000.0, "received": 1790000001.5, "seconds": 0.4, "euid": 0}
HOSTILE = [
    "<img src=x onerror=document.title='struck'>",
    "</script><script>document.title='struck'</script>",
    "'\" onmouseover=document.title='struck' x='",
    "\x1b]0;struck\x07\x1b[2J\x9b31m",
    "br-\u202eevil\u2066\u200b",
    "]]> &amp; <!-- {{ 7 * 7 }} {% raw %}",
    "line\none\r\ttwo\0\ufffe",
    "\u8282\u70b9" * 60,
    "e" + "\u0301" * 300,
    "x" * 5000,
    "half \udcff of a byte",
]


def finding(rule_id="swap.active", node="n1", status="fail", message="swap is on", **more):
    remedy = {"playbook": None, "vars": {}, "disruptive": False, "reboot": False, "manual": "swapoff -a"} if status in ("fail", "warn") else None
    whole = {"id": rule_id, "node": node, "status": status, "severity": "error", "title": "Swap is on", "message": message}
    whole = {**whole, "evidence": {"device": "/dev/sda2"}, "remedy": remedy, "see": "docs/rules/%s.md" % rule_id, **more}
    if whole["status"] == "warn" and "severity" not in more:
        whole["severity"] = "warning"
    return whole


def report(findings, nodes=()):
    names = dict.fromkeys([*nodes, *(one["node"] for one in findings)])
    return _report.document({name: {"taken": TAKEN} for name in names}, findings)


def hostile():
    """A report in which everything that a node can say is made to break something."""
    findings = []
    for number, text in enumerate(HOSTILE):
        remedy = {"playbook": None, "vars": {}, "disruptive": True, "reboot": True, "manual": "ip link delete '%s' && echo %s" % (text, text)}
        status = ("fail", "warn", "unknown")[number % 3]
        findings.append(finding("links.stray_bridge", text, status, "bridge %s is up" % text, title=text, evidence={text: text}, remedy=remedy))
    return report(findings)


@functools.lru_cache
def fleet(count):
    """Many nodes, 45 findings each: one in forty is a failure or warning, one in nine is unknown."""
    findings = []
    for node in range(1, count + 1):
        for number in range(45):
            draw = (node * 7919 + number * 104729) % 360
            status = "fail" if draw < 4 else "warn" if draw < 9 else "unknown" if number % 9 == 8 else "pass"
            rule_id = "%s.rule%d" % (("swap", "links", "runtime", "kubelet", "load")[number % 5], number)
            said = {
                "fail": "load %d.0 on 2 CPUs" % draw,
                "warn": "nearly full",
                "unknown": "cannot tell: /x: permission denied (read without root; run with become)",
            }
            findings.append(finding(rule_id, "worker-%d" % node, status, said.get(status, "nothing found")))
    return report(findings)
