"""The fleet layer: SSH targets on loopback that stand in a lab's namespaces, for benchmarks, until the lab is taken down."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

from .daemon import Daemon
from .fleet import CHECKOUT, Fleet, missing, plain
from .shell import LabError, need, say
from .space import Space

MOST = 1000


def commands(command) -> None:
    made = command("fleet", lambda arguments, space: show(space, arguments.count), "so many SSH targets on loopback, for benchmarks; prints their inventory")
    made.add_argument("count", type=int, metavar="N")


def show(space: Space, count: int) -> None:
    with space.at_work():
        inventory = start(space, count)
    print(inventory.read_text())
    say("run Ansible against it inside: python3 -m lab --id %s exec -- ansible all -m ping -i %s" % (space.id, inventory))


def start(space: Space, count: int) -> Path:
    """The targets' inventory, once all of them answer."""
    if not 1 <= count <= MOST:
        raise LabError("a fleet has 1 to %d targets, not %d" % (MOST, count))
    need(("ip", "nsenter", "unshare"))
    why = missing()
    if why:
        raise LabError(why)
    space.open()
    place, ready = _place(space), _place(space) / "ready"
    daemon = Daemon(space, "fleet", space.place)
    if daemon.running:
        if ready.exists() and ready.read_text() != str(count):
            raise LabError("lab %s has a fleet of %s; take it down first: python3 -m lab --id %s down" % (space.id, ready.read_text(), space.id))
    else:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        daemon.start(sys.executable, "-m", __name__, count, place, env={"PYTHONPATH": str(CHECKOUT)})
    seconds = daemon.wait(ready.exists, 20 + count)
    say("%d targets answer after %.1f s" % (count, seconds))
    return place / "inventory.json"


def _place(space: Space) -> Path:
    return space.place / "targets"


def main() -> None:
    """Inside the lab: be the fleet until the end."""
    count, place = int(sys.argv[1]), Path(sys.argv[2])
    with Fleet(plain(count), place):
        (place / "ready").write_text(str(count))
        signal.pause()


if __name__ == "__main__":
    main()
