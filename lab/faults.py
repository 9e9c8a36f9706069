"""Faults as the incidents had them, made on a running node, and their exact taking-away.

A fault is noted in the node's place before it is made, with its options. Making it once more changes nothing; other
options replace it. What it does on the node stands in fault-scripts/<kind>.sh, which is sent there.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .guest import NICS, Guest, guest_named, guests
from .shell import LabError, need, run, say, succeeds, wait_until
from .space import Space

SCRIPTS = Path(__file__).parent / "fault-scripts"
PATIENCE = 180  # seconds for a node that is overloaded, and so slow to let us in
Options = dict[str, object]


@dataclass(frozen=True)
class Fault:
    words: str
    arguments: tuple[tuple[str, dict], ...] = ()  # for argparse
    script: Callable[[Guest, Options], list[str]] = lambda _guest, _options: []  # the words that the fault's script gets
    outside: Callable[[Guest, Options], str | None] = lambda _guest, _options: None  # nft's rules, where it is not made on the node


# -- commands ----------------------------------------------------------------------------------------------------------


def commands(command) -> None:
    made = command("fault", fault, "give a node a fault")
    made.add_argument("node")
    kinds = made.add_subparsers(dest="kind", required=True, metavar="kind")
    for name, one in FAULTS.items():
        kind = kinds.add_parser(name, help=one.words, description=one.words)
        for flag, settings in one.arguments:
            kind.add_argument(flag, **settings)
    made = command("heal", heal, "take a node's fault away")
    made.add_argument("node")
    made.add_argument("kind", choices=(*FAULTS, "all"))
    command("faults", show, "the faults that the nodes were given")


def fault(arguments: argparse.Namespace, space: Space) -> None:
    options = {name: value for name, value in vars(arguments).items() if name not in ("id", "do", "node", "kind")}
    with space.at_work():
        guest = _running(space, arguments.node)
        if noted(guest).get(arguments.kind, options) != options:
            _take_away(guest, arguments.kind)
        _note(guest, arguments.kind).parent.mkdir(exist_ok=True)
        _note(guest, arguments.kind).write_text(json.dumps(options))
        try:
            _do(guest, "make", arguments.kind, options)
        except LabError:  # half of it may be there
            _take_away(guest, arguments.kind)
            raise
    say("%s has the fault %s" % (guest.name, _told(arguments.kind, options)))


def heal(arguments: argparse.Namespace, space: Space) -> None:
    with space.at_work():
        guest = _running(space, arguments.node)
        kinds = [kind for kind in FAULTS if arguments.kind in (kind, "all") and kind in noted(guest)]
        for kind in kinds:
            _take_away(guest, kind)
    say("%s is rid of %s" % (guest.name, ", ".join(kinds)) if kinds else "%s has no such fault" % guest.name)


def show(_arguments: argparse.Namespace, space: Space) -> None:
    for guest in guests(space):
        for kind, options in noted(guest).items():
            print(guest.name, _told(kind, options))


def noted(guest: Guest) -> dict[str, Options]:
    """The faults that a node was given, with their options. A fresh disk has none."""
    return {note.stem: json.loads(note.read_text()) for note in sorted(_note(guest, "any").parent.glob("*.json"))}


def _take_away(guest: Guest, kind: str) -> None:
    _do(guest, "heal", kind, noted(guest)[kind])
    _note(guest, kind).unlink()


def _do(guest: Guest, act: str, kind: str, options: Options) -> None:
    rules = FAULTS[kind].outside(guest, options)
    if rules:
        _filter(guest, rules if act == "make" else "")
    else:
        _tell(guest, (SCRIPTS / (kind + ".sh")).read_text(), act, *FAULTS[kind].script(guest, options))


def _tell(guest: Guest, script: str, *words: str) -> None:
    """Run a script on the node, reached through a NIC that no fault disturbs, or that is only slow."""
    faults = noted(guest)
    disturbed = [faults[kind]["nic"] for kind in ("one-way", "slow-link") if kind in faults]
    address = guest.second_address if disturbed[:1] == [NICS[0]] else guest.address
    wait_until("%s to let us in at %s" % (guest.name, address), lambda: succeeds(*guest.ssh("true", address=address), timeout=60), PATIENCE)
    try:  # the time limit: a connection that a fault cuts in the middle would otherwise wait for ever
        run("timeout", 2 * PATIENCE, *guest.ssh(shlex.join(["sh", "-eus", "--", *words]), address=address), stdin=script)
    except LabError as error:
        raise LabError("%s says: %s" % (guest.name, str(error).partition(":\n")[2] or error)) from None


def _filter(guest: Guest, rules: str) -> None:
    """The filters at the node's ports of the lab's bridges; without rules there are none."""
    need(("nft",))
    table = "table bridge %s" % guest.name
    orders = [table, "delete " + table, *(["%s {\n%s}" % (table, rules)] if rules else [])]
    run(*guest.space.inside("nft", "-f", "-", network_only=True), stdin="\n".join(orders) + "\n")


def _note(guest: Guest, kind: str) -> Path:
    return guest.place / "faults" / (kind + ".json")


def _running(space: Space, name: str) -> Guest:
    guest = guest_named(space, name)
    if not guest.running:
        raise LabError("%s is off; start it with: python -m lab --id %s start %s" % (name, space.id, name))
    return guest


def _told(kind: str, options: Options) -> str:
    return " ".join([kind, *("%s=%s" % item for item in options.items() if item[1] not in (None, False))])


# -- the faults --------------------------------------------------------------------------------------------------------


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError("%s is no number from %d to %d" % (text, least, most))
        return int(text)

    return number


def _address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise argparse.ArgumentTypeError("%s is no IPv4 address" % text) from None


def _slow(_guest: Guest, options: Options) -> list[str]:
    netem = ["delay", "%dms" % options["delay"], "loss", "%d%%" % options["loss"]]
    return [str(options["nic"]), str(options["towards"] or "all"), *netem]


def _at_the_bridge(guest: Guest, options: Options) -> str | None:
    if not options["outside"]:
        return None
    port, peer, way = guest.port_on_bridge(NICS.index(str(options["nic"]))), options["peer"], options["way"]
    rules = ""
    if way in ("outgoing", "both"):
        rules += 'chain from { type filter hook prerouting priority -300; iifname "%s" %s drop; }\n' % (port, "ip daddr %s" % peer if peer else "")
    if way in ("incoming", "both"):
        rules += 'chain to { type filter hook postrouting priority 300; oifname "%s" %s drop; }\n' % (port, "ip saddr %s" % peer if peer else "")
    return rules


NIC = ("--nic", {"choices": NICS, "default": NICS[0]})
FAULTS = {  # healed in this order: first what makes the node slow
    "busy": Fault(
        "processes that do nothing but compute; until a reboot",
        (
            ("processes", {"type": _between(1, 99)}),
            ("--weight", {"type": _between(1, 10000), "default": 100, "help": "what they get of a CPU that others want too: all pods together get 39"}),
        ),
        lambda _guest, options: [str(options["processes"]), str(options["weight"])],
    ),
    "clock": Fault(
        "the clock is ahead by some seconds, or behind, and nobody corrects it; also after a reboot",
        (("seconds", {"type": int, "help": "negative: behind"}),),
        lambda _guest, options: ["%+d" % options["seconds"]],
    ),
    "disk": Fault(
        "the root file system is full; also after a reboot",
        (("percent", {"type": _between(1, 99)}),),
        lambda _guest, options: [str(options["percent"])],
    ),
    "slow-link": Fault(
        "what the node sends comes late or not at all; until a reboot",
        (
            NIC,
            ("--delay", {"type": _between(0, 60000), "default": 100, "metavar": "MS", "help": "milliseconds"}),
            ("--loss", {"type": _between(0, 100), "default": 0, "metavar": "PERCENT"}),
            ("--towards", {"type": _address, "metavar": "ADDRESS", "help": "only what goes there, such as 10.0.0.1, the API server"}),
        ),
        _slow,
    ),
    "one-way": Fault(
        "packets pass in one direction only; until a reboot, or outside of the node until it is healed",
        (
            ("way", {"choices": ("incoming", "outgoing", "both"), "help": "what is dropped, seen from the node"}),
            NIC,
            ("--peer", {"type": _address, "metavar": "ADDRESS", "help": "only what comes from there, or goes there"}),
            ("--outside", {"action": "store_true", "help": "dropped at the bridge instead of on the node, where nothing can be seen of it"}),
        ),
        lambda _guest, options: [str(options["nic"]), str(options["way"]), str(options["peer"] or "all")],
        _at_the_bridge,
    ),
    "swap": Fault("the swap partition is on; until a reboot"),
    "swap-returns": Fault("systemd turns the swap partition on at the next boot"),
    "stray-bridge": Fault(
        "docker's bridge of a network that nobody needs; until a reboot",
        (("--name", {"default": "br-3a10a9384428"}), ("--address", {"default": "172.18.0.1/16"})),
        lambda _guest, options: [str(options["name"]), str(options["address"])],
    ),
    "wrong-nic": Fault(
        "the second network's address comes last, where Calico's default detection takes it; until a reboot",
        script=lambda guest, _options: [guest.second_address + "/24"],
    ),
    "hung-containerd": Fault("containerd runs and answers nothing; until a reboot"),
}
