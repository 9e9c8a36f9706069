"""The path to the API server, made slow, refusing or silent for all nodes, for one, or for the users of kubectl.

The control plane's own programs are not disturbed, so they see what becomes of the nodes. An API server that itself is
gone or hangs: ``cut`` and ``freeze`` with kube-apiserver-1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .control_plane import ADDRESSES, OWN_GROUP, PORT
from .daemon import Daemon
from .guest import guest_named, guests
from .shell import LabError, need, run, say
from .space import Space

SLOW_PATH = Path(__file__).with_name("slow_path.py")
SLOW_PORT = 16443
NODES, USERS, EVERYONE = "nodes", "users", "everyone"
NOTE = "api-path"
KINDS = {"slow": "every answer takes longer", "refuse": "connections are refused", "drop": "packets get lost", "heal": "as it should be"}
RESET, LOSE = "reject with tcp reset", "drop"
# The first rule of each chain spares what the control plane itself sends, and what slow_path.py passes on.
TABLE = """\
table inet lab_api_path
delete table inet lab_api_path
table inet lab_api_path {
 chain nodes_redirected { type nat hook prerouting priority -100; %(nodes_redirected)s }
 chain nodes_stopped { type filter hook input priority 0; %(nodes_stopped)s }
 chain users_redirected { type nat hook output priority -100; meta skgid %(own)d accept; %(users_redirected)s }
 chain users_stopped { type filter hook output priority 0; meta skgid %(own)d accept; %(users_stopped)s }
}
"""
Disturbance = dict[str, object]  # its kind, and with slow the milliseconds


def commands(command) -> None:
    made = command("api", disturb, "make the path to the API server slow, refusing or silent, or heal it")
    made.add_argument("kind", choices=KINDS, help="; ".join("%s: %s" % one for one in KINDS.items()))
    made.add_argument("--for", dest="whom", default=None, metavar="WHOM", help="nodes (the default; heal: everyone), users, everyone, or a node's name")
    made.add_argument("--ms", type=int, default=1000, help="how much later an answer comes, if slow (1000)")


def disturb(arguments: argparse.Namespace, space: Space) -> None:
    need(("nft",))
    if space.keeper is None or not space.noted("control-plane"):
        raise LabError("lab %s has no control plane; start one with: python3 -m lab --id %s up --layer cluster" % (space.id, space.id))
    heal = arguments.kind == "heal"
    whom = arguments.whom or (EVERYONE if heal else NODES)
    if whom not in (NODES, USERS, EVERYONE):
        guest_named(space, whom)
    with space.at_work():
        paths = noted(space)
        if heal:
            paths = {} if whom == EVERYONE else {name: path for name, path in paths.items() if name != whom}
        else:
            path = {"kind": arguments.kind, **({"ms": arguments.ms} if arguments.kind == "slow" else {})}
            paths |= dict.fromkeys((NODES, USERS) if whom == EVERYONE else (whom,), path)
        space.note(NOTE, {"keeper": space.keeper, "paths": paths})
        _apply(space, paths)
    say("; ".join(told(space)) or "the path to the API server is as it should be")


def told(space: Space) -> list[str]:
    return ["API path of %s: %s" % (whom, " ".join(str(word) for word in path.values())) for whom, path in noted(space).items()]


def noted(space: Space) -> dict[str, Disturbance]:
    """Whose path is disturbed, and how; what was noted of a network that is gone is not true any more."""
    note = space.noted(NOTE)
    return note["paths"] if note.get("keeper") and note["keeper"] == space.keeper else {}


def _apply(space: Space, paths: dict[str, Disturbance]) -> None:
    slow = Daemon(space, "slow-path", space.place)
    seconds = _seconds(space, paths)
    slow.kill()
    if seconds:
        own = ("setpriv", "--regid", OWN_GROUP, "--clear-groups")
        slow.start(*own, sys.executable, SLOW_PATH, SLOW_PORT, json.dumps(seconds))
        slow.wait(lambda: _listens(space), 30)
    run(*space.inside("nft", "-f", "-"), stdin=_table(space, paths))


def _seconds(space: Space, paths: dict[str, Disturbance]) -> dict[str, float]:
    """How much later, by the address that asks; users ask from the control plane's own addresses."""
    addresses = {guest.name: guest.address for guest in guests(space)}
    later = {whom: float(path["ms"]) / 1000 for whom, path in paths.items() if path["kind"] == "slow"}
    found = {addresses[whom]: value for whom, value in later.items() if whom in addresses}
    found |= {address: later[USERS] for address in (*ADDRESSES, "127.0.0.1") if USERS in later}
    return {**found, "others": later[NODES]} if NODES in later else found


def _table(space: Space, paths: dict[str, Disturbance]) -> str:
    addresses = {guest.name: "ip saddr %s " % guest.address for guest in guests(space)}
    # A node's own fault comes before the one of all nodes.
    nodes = sorted((path for path in paths.items() if path[0] != USERS), key=lambda one: one[0] == NODES)
    matches = [('iifname "lan0" %stcp dport %d' % (addresses.get(whom, ""), PORT), path["kind"]) for whom, path in nodes]
    users = [('oifname "lo" tcp dport %d' % PORT, paths[USERS]["kind"])] if USERS in paths else []
    rules = {"own": OWN_GROUP}
    for name, found in (("nodes", matches), ("users", users)):
        rules[name + "_redirected"] = " ".join(_rule(match, "redirect to :%d" % SLOW_PORT if kind == "slow" else "accept") for match, kind in found)
        # What still comes here although the path is slow is a connection from before: it has to be made anew.
        rules[name + "_stopped"] = " ".join(_rule(match, LOSE if kind == "drop" else RESET) for match, kind in found)
    return TABLE % rules


def _rule(match: str, verdict: str) -> str:
    return "%s %s;" % (match, verdict)


def _listens(space: Space) -> bool:
    return ":%d" % SLOW_PORT in run(*space.inside("ss", "-Hltn", "sport = :%d" % SLOW_PORT, network_only=True))
