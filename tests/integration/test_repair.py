"""Repairs over a real sshd, as users start them: what is stopped by which fault at which step, and that no further node is touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from cores import NEWEST, OLDEST, installed
from patients import CALM, LINK

from lab.fleet import CHECKOUT, Face, Fleet, Target, missing

NODES = ("s1", "s2", "s3", "s4")
SWAPS = CALM["/proc/swaps"] + "/dev/sdb1\tpartition\t524284\t4\t-2\n"
FSTAB = "/dev/sda1 / ext4 defaults 0 1\n/dev/sdb1\tnone swap sw 0 0\r\n"
ASKED = "#!/bin/sh\nif test -e HOOKS/$(hostname); then . HOOKS/$(hostname); fi\n"
SWAPOFF = ASKED + 'grep -v "^$1" /proc/swaps >/run/new; cat /run/new >/proc/swaps\n'
# A hook that waits until there is a file go, or until the test has failed and all is gone.
WAIT = "until test -e HOOKS/go -o ! -e HOOKS; do sleep 0.1; done\n"
SWAPON = ASKED + 'for device; do :; done; printf "%s\\tpartition\\t524284\\t4\\t-2\\n" "$device" >>/proc/swaps\n'
UNREACHABLE = "exit 255\n"

# A callback that pulls a node's plug when a task begins.
PLUG = """
import json, os
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = "name: plug\\ntype: aggregate\\nshort_description: cut a node off\\ndescription: [cut a node off]\\n"

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "aggregate", "plug", True

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().endswith(os.environ["PLUG_AT"]):
            with open(os.environ["PLUG"], "w") as command:
                command.write("exit 255\\n")
"""
LOOK, ACT = "Read the node", "Turn swap off, and stop what would turn it on again"
PROVE = "Wait until the probe finds no swap, no source of any, and no kubelet that refuses to start"


@dataclass
class Swapping:
    fleet: Fleet
    hooks: Path
    place: Path

    def on(self, node, command):
        """What a command says there, however the node is reached."""
        script = Path(self.commands[node])
        done = subprocess.run(["sh", script], env={**os.environ, "SSH_ORIGINAL_COMMAND": command}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def __post_init__(self):
        self.commands = {}
        for node in NODES:  # what sshd runs there, in a copy that no fault reaches
            copy = self.place / (node + ".kept")
            copy.write_text(self.command(node).read_text())
            self.commands[node] = copy

    def command(self, node):
        return self.fleet.place / (node + ".sh")

    def heal(self):
        for node in NODES:
            self.command(node).write_text(self.commands[node].read_text())
            (self.hooks / node).unlink(missing_ok=True)

    def hook(self, node, text):
        """What its swapoff and swapon do first."""
        (self.hooks / node).write_text(text.replace("COMMAND", str(self.command(node))).replace("HOOKS", str(self.hooks)))

    def untouched(self):
        """The nodes on which nothing was changed."""
        return [node for node in NODES if self.on(node, "cat /proc/swaps /etc/fstab; ls /var/lib") == SWAPS + FSTAB]

    def repaired(self):
        wanted = CALM["/proc/swaps"] + FSTAB.replace("/dev/sdb1", "# off by nodecare: /dev/sdb1")
        return [node for node in NODES if self.on(node, "cat /proc/swaps /etc/fstab") == wanted]

    def start(self, playbook, *words, core=NEWEST, plug=("", ""), **variables):
        callbacks = self.place / "callbacks"
        callbacks.mkdir(exist_ok=True)
        (callbacks / "plug.py").write_text(PLUG)
        more = {"ANSIBLE_CALLBACK_PLUGINS": str(callbacks), "ANSIBLE_CALLBACKS_ENABLED": "plug", "ANSIBLE_TIMEOUT": "5"}
        more.update({"PLUG_AT": plug[0] or "never", "PLUG": str(self.command(plug[1])) if plug[1] else "/dev/null"})
        said = json.dumps({"nodecare_cluster": False, **variables})
        argv = [installed(core) / "ansible-playbook", "playbooks/%s.yml" % playbook, "-i", self.fleet.inventory, *words, "-e", said]
        return subprocess.Popen(
            argv, cwd=CHECKOUT, env=self.fleet.environment(**more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def play(self, playbook, *words, expect=0, **more):
        with self.start(playbook, *words, **more) as run:
            said = run.communicate(timeout=300)[0]
        assert (run.returncode == 0) is (expect == 0), said
        assert "DEPRECATION" not in said, said
        return said


@pytest.fixture
def nodes(tmp_path_factory):
    """Four nodes that all swap."""
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    hooks, place = tmp_path_factory.mktemp("hooks"), tmp_path_factory.mktemp("run")
    files = {**CALM, "/etc/fstab": FSTAB, "/proc/swaps": SWAPS, "/run/systemd/system/.keep": "x"}
    files.update({"/usr/local/sbin/" + name: text.replace("HOOKS", str(hooks)) for name, text in (("swapoff", SWAPOFF), ("swapon", SWAPON))})
    with Fleet({node: Target(Face(files, LINK % number + "mount -t tmpfs face /var/lib\n")) for number, node in enumerate(NODES, 1)}) as fleet:
        yield Swapping(fleet, hooks, place)
        shutil.rmtree(hooks)


def changed(said):
    return {node: int(number) for node, number in re.findall(r"^(\S+)\s+: ok=.*? changed=(\d+)", said, re.M)}


# -- when all is well ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("core", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_predicted_done_repeated_and_undone(nodes, core):
    """Each play takes its time, so that it is given two of the nodes only, or one, and the others must not change."""
    some = NODES[:2]
    limit, one = ("--limit", ",".join(some)), ("--limit", "s1")
    predicted = nodes.play("repair_swap", "--check", "--diff", *limit, core=core)
    assert nodes.untouched() == list(NODES)
    done = nodes.play("repair_swap", "--diff", *limit, core=core)
    assert nodes.repaired() == list(some) and nodes.untouched() == list(NODES[2:])
    assert changed(predicted) == changed(done) == dict.fromkeys(some, 1)
    assert diff(predicted) == diff(done) != []
    assert changed(nodes.play("repair_swap", *one, core=core)) == {"s1": 0}
    nodes.play("undo", "--check", "--diff", *one, core=core)
    assert nodes.repaired() == list(some)
    nodes.play("undo", *one, core=core)
    assert nodes.repaired() == list(some[1:])
    assert nodes.on("s1", "cat /proc/swaps /etc/fstab") == SWAPS + FSTAB
    assert changed(nodes.play("undo", *one, core=core)) == {"s1": 0}


def diff(said):
    return re.findall(r"^(?:---|\+\+\+|@@|[-+]).*$", said, re.M)


def test_progress_is_visible(nodes):
    nodes.hook("s1", WAIT)
    with nodes.start("repair_swap", "--limit", "s1") as run:
        said = ""
        for line in run.stdout:
            said += line
            if "waiting for swapoff" in line:
                (nodes.hooks / "go").touch()
    assert re.search(r"^s1: \d+ of 600 s: waiting for swapoff, /dev/sdb1: 0 MiB left$", said, re.M), said
    assert nodes.repaired() == ["s1"]


# -- when it is not ------------------------------------------------------------------------------------------------------

# what happens to s1: the task at whose beginning it is cut off, what its swapoff does, variables
FAULTS = {
    "cut off at the first look": (LOOK, "", {}),
    "cut off before anything is changed": (ACT, "", {}),
    "cut off while swap is being turned off": ("", "printf 'exit 255\\n' >COMMAND; " + WAIT, {"nodecare_swap_wait": 4}),
    "cut off at the last look": (PROVE, "", {"nodecare_wait": 4}),
    "refused": ("", "", {"nodecare_thresholds": {"swap_off_reserve_mib": 100000000}}),
    "swapoff fails": ("", "echo Cannot allocate memory; exit 4\n", {}),
    "swapoff does not end": ("", WAIT, {"nodecare_swap_wait": 4}),
}
HARD = "cut off while swap is being turned off"
# Batches of two end by a node that fails and by one that is cut off; these fail like the other, so that the least batch is enough for them.
ALONE = ("refused", "swapoff does not end")
RUNS = [(fault, 1 if fault in ALONE else 2, NEWEST) for fault in FAULTS] + [(HARD, 1, NEWEST), (HARD, 2, OLDEST)]


@pytest.mark.parametrize(("fault", "serial", "core"), [pytest.param(*run, id="%s, %d at a time, core %s" % (*run[:2], run[2].version)) for run in RUNS])
def test_no_further_node_is_touched(fault, serial, core, nodes):
    task, hook, variables = FAULTS[fault]
    if hook:
        nodes.hook("s1", hook)
    said = nodes.play("repair_swap", expect=2, core=core, plug=(task, "s1"), nodecare_serial=serial, **variables)
    later = list(NODES[serial:])
    assert [node for node in nodes.untouched() if node in later] == later, said
    assert not re.search(r"\b(%s)\b" % "|".join(later), said.replace("nodecare_serial", "")), "they were looked at:\n" + said
    assert "No further node is touched" in said, said
    (nodes.hooks / "go").touch()
    nodes.heal()
    if (fault, serial, core) == (HARD, 2, NEWEST):
        nodes.play("repair_swap", "--limit", "s1,s2", nodecare_serial=serial)
        assert nodes.repaired() == ["s1", "s2"]


@pytest.mark.parametrize("serial", [0, -1, "50%"])
def test_a_number_that_would_take_all_at_once_is_refused(serial, nodes):
    said = nodes.play("repair_swap", expect=2, nodecare_serial=serial)
    assert "It has to be a whole number from 1 on" in said or "'nodecare_serial' is of type" in said
    assert nodes.untouched() == list(NODES)


def test_a_play_that_forgets_serial_is_refused(nodes):
    play = nodes.place / "play.yml"
    play.write_text("- hosts: all\n  gather_facts: false\n  roles: [nodecare.kubernetes.disable_swap]\n")
    said = nodes.play("../" * 9 + str(play)[1:].removesuffix(".yml"), expect=2)
    assert "4 nodes are in one batch and nodecare_serial is 1" in said
    assert nodes.untouched() == list(NODES)


@pytest.mark.slow
def test_a_controller_that_is_killed_leaves_what_the_next_run_finishes(nodes):
    nodes.hook("s1", WAIT)
    with nodes.start("repair_swap") as run:
        for line in run.stdout:
            if "waiting for swapoff" in line:
                run.send_signal(signal.SIGKILL)
                break
    time.sleep(1)
    assert [node for node in NODES[1:] if node not in nodes.untouched()] == []
    (nodes.hooks / "go").touch()
    nodes.play("repair_swap", "--limit", "s1")
    assert nodes.repaired() == ["s1"]
    nodes.play("undo", "--limit", "s1")
    assert all(nodes.on(node, "cat /etc/fstab") == FSTAB for node in NODES)


def test_nothing_of_fstab_but_its_swap_lines_is_told(nodes):
    secret = "//files/x /x cifs password=hunter2 0 0"
    nodes.on("s1", "echo '%s' >>/etc/fstab" % secret)
    said = nodes.play("repair_swap", "-vvv", "--diff", "--limit", "s1") + nodes.play("undo", "-vvv", "--diff", "--limit", "s1")
    assert "hunter2" not in said
