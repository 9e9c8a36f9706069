"""One removal of bridges, told step by step from inside a network namespace: python bridge_story.py <root> <JSON of settings> <step> ….

Prints, for each step, what was answered, how the links are then, as iproute2 sees them, and the files below /etc.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / ".collections"))

from ansible_collections.nodecare.kubernetes.plugins.module_utils._journal import Busy, Conflict
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs import Failed, Refused, bridge, undo

RUNS = ("hello_timer", "tcn_timer", "topology_change_timer", "gc_timer", "valid_life_time", "preferred_life_time")  # clocks
SEEN = ("operstate", "NO-CARRIER", "LOWER_UP", "tentative", "bridge_id", "root_id")  # what the kernel finds out by itself, some of it after a while


def without_clocks(said):
    if isinstance(said, list):
        return [without_clocks(one) for one in said if one and one not in SEEN]
    return {key: without_clocks(value) for key, value in said.items() if key not in RUNS + SEEN} if isinstance(said, dict) else said


def links():
    """All links but the loopback, by name; each with its settings below /proc/sys."""
    seen = {}
    for words in ("link", "address"):
        told = subprocess.run(["ip", "-d", "-j", words], capture_output=True, check=True).stdout.decode("utf-8", "replace")
        for one in without_clocks(json.loads(told)):
            seen.setdefault(one["ifname"], []).append(one)
    seen.pop("lo", None)
    return {name: [*told, *(settings(family, name) for family in ("ipv4", "ipv6"))] for name, told in seen.items()}


def settings(family, name):
    where = Path("/proc/sys/net", family, "conf", name)
    return {one.name: one.read_text() for one in sorted(where.iterdir()) if one.name != "stable_secret"} if where.exists() else {}


def files(root):
    return {"/" + str(one.relative_to(root)): one.read_text() for one in Path(root, "etc").rglob("*") if one.is_file()}


def step(name, given, root):
    try:
        if "undo" in name:
            return undo.take_back(check=name.startswith("check"), root=root)
        return bridge.absent(bridge.Settings(**given), check=name.startswith("check"), root=root)
    except (Refused, Failed, Conflict, Busy) as why:
        return {type(why).__name__.lower(): str(why)}


if __name__ == "__main__":
    root, given, *steps = sys.argv[1:]
    told = [{"links": links(), "files": files(root)}]
    for name in steps:
        told.append({"answer": step(name, json.loads(given), root), "links": links(), "files": files(root)})
    print(json.dumps(told))
