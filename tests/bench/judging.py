"""Judges and reports a number of made-up nodes, from one node's facts on standard input; says what that took.

It is one thread that computes, so its processor time is its wall time on a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time

from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _report
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES


def judged(count: int, facts: dict) -> dict:
    facts = {**dict.fromkeys(AREAS, {}), **facts}
    nodes = {"node-%04d" % number: made_up(json.dumps(facts), number) for number in range(count)}
    began = time.monotonic()
    at = {"start": time.process_time()}
    checked = policy({}, known_rules=list(RULES))
    findings = _judge.judge(nodes, dict.fromkeys(nodes, checked), _judge.select(), checked)
    at["judged"] = time.process_time()
    report = _report.document(nodes, findings)
    with tempfile.TemporaryDirectory() as place:
        paths, _broken = _report.write(report, place, list(_report.WRITERS))
        shown = _report.terminal_text(report)
        at["reported"] = time.process_time()
        sizes = {"%s_mb" % name: os.path.getsize(path) / 1e6 for name, path in paths.items()}
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = {"seconds": at["reported"] - at["start"], "judging_s": at["judged"] - at["start"], "reporting_s": at["reported"] - at["judged"]}
    return {
        **seconds,
        "wall_s": time.monotonic() - began,
        "memory_mib": used.ru_maxrss / 1024,
        "findings": len(findings),
        "lines": len(shown.splitlines()),
        **sizes,
    }


def made_up(text: str, number: int) -> dict:
    """This machine's facts as another node's: its own names and addresses, its own load, and here and there an illness."""
    facts = json.loads(text)
    for link in facts["links"]["present"]["links"]:
        link["mac"] = "02:00:%02x:%02x:%02x:%02x" % (number >> 8, number & 255, link["index"] >> 8 & 255, link["index"] & 255)
        for address in link["addresses"]:
            if ":" not in address["ip"] and not address["ip"].startswith("127."):
                address["ip"] = "10.%d.%d.%d" % (link["index"] % 250, number // 250, number % 250 + 1)
    for name in ("hostname", "machine_id", "product_uuid", "boot_id"):
        facts["host"]["identity"][name] = "%s-%04d" % (name, number)
    facts["load"]["averages"] = dict.fromkeys(("one", "five", "fifteen"), 61.0 if number % 50 == 9 else round(0.2 + number % 17 / 10, 2))
    if number % 20 == 7:
        facts["swap"]["active"] = [{"device": "/dev/sda2", "type": "partition", "size_kib": 1 << 20, "used_kib": number}]
    if number % 100 == 11:
        facts["problems"].append({"fact": "runtime", "what": "ctr version", "why": "no answer within 5 s", "kind": "hung"})
    facts["taken"].update(sent=facts["taken"]["at"] - 0.2, received=facts["taken"]["until"] + 0.1)
    return facts


if __name__ == "__main__":
    print(json.dumps(judged(int(sys.argv[1]), json.load(sys.stdin))))
