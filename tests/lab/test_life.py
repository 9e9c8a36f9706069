"""A lab comes up, survives what happens to its programs and its nodes, minds no other lab, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from labs import BOOT, ROOT, Lab, eventually, own_name, processes_in, surroundings

from lab.guest import Guest
from lab.space import Space

NODE = ("--layer", "nodes", "--nodes", 1)


@pytest.fixture(scope="module")
def lab():
    """One node. The tests go on from each other's end, so that a boot serves several."""
    before = surroundings()
    made = Lab(own_name("l"))
    yield made
    made.do("down")
    assert made.ask("status") == (3, "lab %s is not up" % made.name)
    # Other tests may make and take away namespaces of theirs meanwhile.
    eventually("nothing to be left", lambda: not any(now - before[what] for what, now in surroundings().items()))


def test_up_that_was_killed_goes_on(lab):
    """SIGKILL in the middle of a boot: the node boots on, and the next call finds it."""
    first = lab.start("up", *NODE)
    eventually("the node to be powered on", lambda: "runs, but does not answer" in lab.ask("status")[1] or first.poll() is not None, BOOT, 0.2)
    assert first.poll() is None
    first.kill()
    first.wait()
    assert lab.state("n1") != "off"
    lab.up(*NODE)
    assert lab.state("n1") == "answers"


def test_up_twice(lab):
    """What is up stays as it is."""
    boot, network = lab.boot_id("n1"), lab.network()
    lab.up(*NODE)
    assert (lab.boot_id("n1"), lab.network()) == (boot, network)


def test_registers(lab, tmp_path):
    """What programs have in the processor's vector registers is still theirs when they go on (lab/programs/uml/ptrace.c keeps account of it)."""
    program = tmp_path / "registers"
    subprocess.run(["cc", "-O2", "-static", "-pthread", "-o", program, Path(__file__).with_name("registers.c")], check=True)
    with open(program, "rb") as content:
        words = "cat >/root/registers && chmod 700 /root/registers && /root/registers"
        subprocess.run(lab.command("ssh", "n1", words), cwd=ROOT, stdin=content, check=True)


def test_freeze(lab):
    """A frozen node holds its connections and answers nothing; then it goes on as if nothing had been."""
    boot = lab.boot_id("n1")
    lab.do("freeze", "n1")
    assert lab.state("n1") == "runs, but does not answer"
    lab.do("thaw", "n1")
    assert lab.boot_id("n1") == boot


def test_power_cut(lab):
    """What was written to the disk is there after the power has come back."""
    boot = lab.boot_id("n1")
    lab.on("n1", "echo written >/root/kept && sync")
    lab.do("cut", "n1")
    assert lab.state("n1") == "off"
    lab.do("start", "n1", timeout=BOOT)
    assert lab.boot_id("n1") != boot
    assert lab.on("n1", "cat /root/kept") == "written"


def test_kernel_dies(lab):
    """Nothing of the guest lives on without its kernel: what its programs ask for would be asked of this machine."""
    guest = Guest(Space(lab.name), 1)
    boot = lab.boot_id("n1")
    os.kill(guest.kernel, signal.SIGKILL)
    eventually("all of the guest to be gone", lambda: not guest.running, 60, 0.2)
    lab.do("start", "n1", timeout=BOOT)
    assert lab.boot_id("n1") != boot


def test_two_side_by_side(lab):
    """Nodes of the same name and address that know nothing of each other; one lab goes and the other stays."""
    boot, network = lab.boot_id("n1"), lab.network()
    other = Lab(own_name("m"))
    try:
        other.up(*NODE)
        assert other.network() != network
        assert other.boot_id("n1") != boot
        assert other.on("n1", "hostname -I") == lab.on("n1", "hostname -I")
        assert other.on("n1", "cat /etc/machine-id") != lab.on("n1", "cat /etc/machine-id")
    finally:
        # Whoever waits for a program that was stopped must not keep the lab from ending.
        other.do("freeze", "n1")
        other.do("down")
    assert lab.boot_id("n1") == boot


def test_everything_is_killed(lab):
    """What is left is a record of something that is gone; the next lab starts from the same disks."""
    boot, network = lab.boot_id("n1"), lab.network()
    for process in processes_in(network):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    eventually("the lab's processes to be gone", lambda: not processes_in(network), 60, 0.2)
    assert lab.ask("status")[0] == 3
    lab.up(*NODE)
    assert lab.boot_id("n1") != boot
    assert lab.on("n1", "cat /root/kept") == "written"


def test_keeper_is_killed(lab):
    """All the rest ends with it, and nothing is left to find by its name."""
    network = lab.network()
    os.kill(Space(lab.name).keeper, signal.SIGKILL)
    eventually("the lab's processes to be gone", lambda: not processes_in(network), 60, 0.2)
    lab.do("down")
    assert not Space(lab.name).place.exists()
