"""python -m lab: bring the lab up, look at it, use it, take it away."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from . import api_path, autodetect, faults, inventory, network, standing_fleet, tigera, twins
from .calico import calico
from .control_plane import ControlPlane, Plan
from .disk import Kind, disk
from .guest import Guest, guest_named, guests
from .kernel import kernel
from .kubernetes import MINORS
from .shell import LabError, able, need, say, wait_until
from .space import Space
from .tree import SUITES

LAYERS = ("nodes", "cluster", "calico")


def main() -> int:
    arguments = parser().parse_args()
    try:
        return arguments.do(arguments, Space(arguments.id)) or 0
    except LabError as error:
        print("lab: %s" % error, file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    top.add_argument("--id", default="lab", help="which lab; several can stand side by side")
    commands = top.add_subparsers(required=True, metavar="command")

    def command(name: str, do, words: str, **settings) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=words, description=words, **settings)
        made.set_defaults(do=do)
        return made

    start = command("up", up, "build what is missing, then start the nodes")
    start.add_argument("--nodes", type=int, default=2)
    start.add_argument("--layer", choices=(*LAYERS, "fleet"), default=LAYERS[-1], help="how much of it; each contains the ones before, but for the fleet")
    start.add_argument("--suite", choices=SUITES, default=SUITES[0], help="the nodes' Debian")
    start.add_argument("--docker", action="store_true", help="with docker.io on the nodes")
    start.add_argument("--kubernetes", choices=MINORS, default=next(iter(MINORS)), help="its minor version")
    start.add_argument("--etcd", type=int, choices=(1, 3), default=1, help="its members")
    start.add_argument("--api-servers", type=int, choices=(1, 2), default=1)
    start.add_argument("--memory", default="1536M", help="of each node, at most")
    command("check", check, "whether this machine can run a lab at all")
    command("down", down, "end everything of this lab, also after a crash")
    command("status", status, "what runs")
    command("kubeconfig", kubeconfig, "the file by which the API server lets in its administrator, for `exec`")
    command("old-calico-start", old_calico_start, "let calico-node pods that start from now on choose their address as an old Calico did")
    inventory.commands(command)
    standing_fleet.commands(command)
    faults.commands(command)
    api_path.commands(command)
    autodetect.commands(command)
    tigera.commands(command)
    twins.commands(command)
    for name, do, words in (
        ("ssh", ssh, "a shell or a command on a node"),
        ("exec", execute, "a command of this machine in the lab's network"),
        ("kubectl", kubectl, "ask the lab's API server"),
        ("calicoctl", ask_calico, "ask Calico's datastore, which is that API server"),
    ):
        made = command(name, do, words, prefix_chars="\0", add_help=False)  # every option is for the program
        if name == "ssh":
            made.add_argument("node")
        made.add_argument("words", nargs=argparse.REMAINDER)
    for name, words in {
        "cut": "pull a node's plug, or kill a member of the control plane",
        "start": "power a node on again, or start such a member",
        "freeze": "stop the time of a node or member",
        "thaw": "let a frozen node or member go on",
        "forget": "throw a node's disk away",
    }.items():
        made = command(name, power, words)
        made.add_argument("node", help="such as n1, etcd-1 or kube-apiserver-1" if name != "forget" else None)
        made.set_defaults(act=name)
    return top


def up(arguments: argparse.Namespace, space: Space) -> None:
    if arguments.layer == "fleet":
        return standing_fleet.show(space, arguments.nodes)
    need()
    least = 0 if arguments.layer == "cluster" else 1  # a control plane by itself is enough for many questions
    if not least <= arguments.nodes <= 9:
        raise LabError("a lab with the layer %s has %d to 9 nodes, not %d" % (arguments.layer, least, arguments.nodes))
    plan = Plan(MINORS[arguments.kubernetes], arguments.etcd, arguments.api_servers)
    kind = Kind(arguments.suite, arguments.docker, plan.kubernetes if arguments.layer != "nodes" else "", calico=arguments.layer == "calico")
    wanted = {"kind": asdict(kind), "control-plane": asdict(plan) if kind.kubernetes else {}}
    with space.at_work():
        earlier = {name: space.noted(name) for name in wanted}
        if earlier["kind"] and earlier != wanted:
            if space.keeper:
                raise LabError("lab %s stands with %s; take it down first: python -m lab --id %s down" % (space.id, earlier, space.id))
            _forget_all(space)
        kernel_of = kernel()
        base = disk(kernel_of, kind)
        space.open()
        for name, what in wanted.items():
            space.note(name, what)
        plane = ControlPlane(space) if kind.kubernetes else None
        if plane:
            plane.start()
        guests = [Guest(space, number) for number in range(1, arguments.nodes + 1)]
        for guest in guests:
            guest.start(kernel_of, base, arguments.memory, plane.node_files(guest.name) if plane else None)
        if plane and kind.calico:
            network.apply(plane, calico())
        with ThreadPoolExecutor(max(1, len(guests))) as pool:
            for guest, seconds in zip(guests, pool.map(Guest.wait, guests)):
                say("%s answers at %s after %.0f s" % (guest.name, guest.address, seconds))
        if plane:
            seconds = wait_until("the kubelets to register", lambda: all(plane.knows(guest.name) for guest in guests), 240)
            say("all nodes are registered after %.0f s" % seconds)
        if plane and kind.calico:
            seconds = network.wait(plane, [guest.name for guest in guests])
            say("Calico and kube-proxy are ready everywhere after %.0f s" % seconds)
        say("lab %s is up, with %.1f GiB of memory" % (space.id, space.memory() / 2**30))


def check(_arguments: argparse.Namespace, _space: Space) -> None:
    able()


def down(_arguments: argparse.Namespace, space: Space) -> None:
    with space.at_work():
        space.close()
    shutil.rmtree(space.place, ignore_errors=True)
    say("lab %s is gone" % space.id)


def status(_arguments: argparse.Namespace, space: Space) -> int:
    if space.keeper is None:
        print("lab %s is not up" % space.id)
        return 3
    for guest in guests(space):
        state = "answers" if guest.answers() else "runs, but does not answer" if guest.running else "off"
        print("%-4s %-12s %s" % (guest.name, guest.address, state))
    if space.noted("control-plane"):
        for name, state in ControlPlane(space).states().items():
            print("%-24s %s" % (name, state))
    for line in api_path.told(space):
        print(line)
    print("memory %.1f GiB" % (space.memory() / 2**30))
    return 0


def kubeconfig(_arguments: argparse.Namespace, space: Space) -> None:
    print(ControlPlane(space).kubeconfig)


def old_calico_start(_arguments: argparse.Namespace, space: Space) -> None:
    with space.at_work():
        network.old_start(ControlPlane(space), guests(space))


def ssh(arguments: argparse.Namespace, space: Space) -> None:
    _become(guest_named(space, arguments.node).ssh(*arguments.words))


def execute(arguments: argparse.Namespace, space: Space) -> None:
    _become(space.inside(*arguments.words[arguments.words[:1] == ["--"] :], network_only=True))


def kubectl(arguments: argparse.Namespace, space: Space) -> None:
    _become(ControlPlane(space).kubectl(*arguments.words))


def ask_calico(arguments: argparse.Namespace, space: Space) -> None:
    datastore = ("env", "DATASTORE_TYPE=kubernetes", "KUBECONFIG=%s" % ControlPlane(space).kubeconfig)
    _become(space.inside(*datastore, calico().place / "calicoctl", *arguments.words, network_only=True))


def power(arguments: argparse.Namespace, space: Space) -> None:
    plane = ControlPlane(space)
    if arguments.node in plane.members() and arguments.act != "forget":
        return plane.power(arguments.node, arguments.act)
    guest = guest_named(space, arguments.node)
    if arguments.act == "start":
        made_with = kernel()
        guest.start(made_with, disk(made_with, Kind(**space.noted("kind"))))
        guest.wait()
    elif arguments.act in ("freeze", "thaw"):
        guest.freeze(arguments.act == "freeze")
    else:
        getattr(guest, arguments.act)()


def _forget_all(space: Space) -> None:
    for guest in guests(space):
        shutil.rmtree(guest.place)
    shutil.rmtree(space.place / "control-plane", ignore_errors=True)


def _become(argv: list[str]) -> None:
    os.execvp(argv[0], argv)


sys.exit(main())
