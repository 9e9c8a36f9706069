"""Judges and reports a number of made-up nodes, from one node's facts on standard input; says what that took.

With the word `cluster` they are also the Nodes of one made-up cluster, whose Calico makes a mesh of them all.

It is one thread that computes, so its processor time is its wall time on a machine that does nothing else.
"""

from __future__ import annotations

import copy
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import yaml
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import AREAS
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _report
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES

HEALTHY = Path(__file__).parents[1] / "unit" / "clusters" / "healthy.yml"
PEERS_TOLD = 100  # of a mesh, as many as the probe notes


def judged(count: int, facts: dict, with_cluster: bool = False) -> dict:
    facts = {**dict.fromkeys(AREAS, {}), **facts}
    nodes = {"node-%04d" % number: made_up(json.dumps(facts), number) for number in range(count)}
    cluster = made_up_cluster(nodes) if with_cluster else None
    began = time.monotonic()
    at = {"start": time.process_time()}
    checked = policy({}, known_rules=list(RULES))
    findings = _judge.judge(nodes, dict.fromkeys(nodes, checked), _judge.select(), checked, cluster)
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


def made_up_cluster(nodes: dict) -> dict:
    """A recorded cluster's document with these nodes in it; each node's BIRD is in session with the others, and here and there one is not."""
    cluster = yaml.load(HEALTHY.read_text(), yaml.CSafeLoader)
    node, pods = cluster["nodes"][0], [pod for pod in cluster["pods"] if pod["node"] == cluster["nodes"][0]["name"]]
    address = {name: "10.0.%d.%d" % (number // 250, number % 250 + 1) for number, name in enumerate(nodes)}
    cluster["nodes"] = [a_node(node, name, address[name]) for name in nodes]
    cluster["pods"] = [{**pod, "name": "%s-%s" % (pod["component"], name), "node": name, "host_ip": address[name]} for name in nodes for pod in pods]
    for number, (name, facts) in enumerate(nodes.items()):
        facts["host"]["identity"]["hostname"] = facts["taken"]["hostname"] = name
        mesh = [a_session(one, "wait" if (number + other) % 500 == 3 else "up") for other, one in enumerate(address.values()) if other != number]
        sockets = [{"path": "/var/run/calico/bird.ctl", "state": "answered", "version": "1.6.8", "protocols": mesh[:PEERS_TOLD], "count": len(mesh)}]
        facts["calico"] = {**facts["calico"], "bird": {"sockets": sockets}}
        first = next(link for link in facts["links"]["present"]["links"] if not link["name"].startswith("lo"))
        first["addresses"] = [{"ip": address[name], "prefix": 16, "scope": "global", "flags": []}, *first["addresses"][1:]]
    return cluster


def a_node(node: dict, name: str, address: str) -> dict:
    made = copy.deepcopy(node)
    made.update(name=name, hostname=name, internal_ips=[address], calico={**node["calico"], "ipv4": address + "/16"})
    return made


def a_session(address: str, up: str) -> dict:
    state = "Established" if up == "up" else "Connect"
    return {"name": "Mesh_" + address.replace(".", "_"), "kind": "mesh", "peer": address, "up": up, "state": state, "since": "", "info": ""}


if __name__ == "__main__":
    print(json.dumps(judged(int(sys.argv[1]), json.load(sys.stdin), sys.argv[2:] == ["cluster"])))
