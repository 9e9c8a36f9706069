"""The removal of bridges over a real sshd, as users start it: what is stopped by which fault at which step, and that no further node is touched.

Its nodes are four network namespaces, and it needs no cluster; tests/lab/test_repair_bridges.py has real nodes and a real one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from patients import CALM, LINK

from lab.fleet import CHECKOUT, Face, Fleet, Target, missing

NODES = ("s1", "s2", "s3", "s4")
STRAY = """
ip link add br-3a10a9384428 type bridge
ip address add 172.18.0.1/16 dev br-3a10a9384428
ip link set br-3a10a9384428 addrgenmode none
ip link set br-3a10a9384428 up
mount -t tmpfs face /var/lib
"""
STATE = "ip -o -f inet address; ls -A /var/lib"
# A callback that does something to a node when a task begins.
PLUG = """
import os, subprocess
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = "name: plug\\ntype: aggregate\\nshort_description: do something to a node\\ndescription: [do something to a node]\\n"

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "aggregate", "plug", True

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().endswith(os.environ["PLUG_AT"]):
            subprocess.run(["sh", "-c", os.environ["PLUG"]], check=True)
"""


@dataclass
class Bridged:
    fleet: Fleet
    place: Path

    def __post_init__(self):
        self.kept = {node: (self.fleet.place / (node + ".sh")).read_text() for node in NODES}  # what sshd runs there
        for node, text in self.kept.items():
            (self.place / (node + ".sh")).write_text(text)

    def on(self, node, command):
        """What a command says there, however the node is reached."""
        done = subprocess.run(
            ["sh", self.place / (node + ".sh")], env={**os.environ, "SSH_ORIGINAL_COMMAND": command}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cut(self, node):
        return "echo exit 255 >%s" % (self.fleet.place / (node + ".sh"))

    def heal(self):
        for node, text in self.kept.items():
            (self.fleet.place / (node + ".sh")).write_text(text)

    def bridged(self):
        return [node for node in NODES if "br-3a10a9384428" in self.on(node, "ip -br link")]

    def play(self, playbook, *words, expect=0, plug=("never", "true"), **variables):
        callbacks = self.place / "callbacks"
        callbacks.mkdir(exist_ok=True)
        (callbacks / "plug.py").write_text(PLUG)
        more = {"ANSIBLE_CALLBACK_PLUGINS": str(callbacks), "ANSIBLE_CALLBACKS_ENABLED": "plug", "ANSIBLE_TIMEOUT": "5", "PLUG_AT": plug[0], "PLUG": plug[1]}
        argv = [Path(sys.executable).with_name("ansible-playbook"), "playbooks/%s.yml" % playbook, "-i", self.fleet.inventory, *words]
        done = subprocess.run(
            [*argv, "-e", json.dumps({"nodecare_cluster": False, **variables})],
            cwd=CHECKOUT,
            env=self.fleet.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.returncode == 0) is (expect == 0), done.stdout
        return done.stdout


@pytest.fixture
def nodes(tmp_path_factory):
    """Four nodes, each with a bridge that docker left."""
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    with Fleet({node: Target(Face({**CALM}, LINK % number + STRAY)) for number, node in enumerate(NODES, 1)}) as fleet:
        yield Bridged(fleet, tmp_path_factory.mktemp("run"))


def changed(said):
    return {node: int(number) for node, number in re.findall(r"^(\S+)\s+: ok=.*? changed=(\d+)", said, re.M)}


def diff(said):
    return re.findall(r"^(?:---|\+\+\+|@@|[-+]).*$", said, re.M)


def test_predicted_done_repeated_and_undone(nodes):
    before = {node: nodes.on(node, STATE) for node in NODES}
    predicted = nodes.play("repair_bridges", "--check", "--diff")
    assert {node: nodes.on(node, STATE) for node in NODES} == before
    done = nodes.play("repair_bridges", "--diff")
    assert nodes.bridged() == []
    assert changed(predicted) == changed(done) == dict.fromkeys(NODES, 1)
    assert diff(predicted) == diff(done) != []
    assert changed(nodes.play("repair_bridges")) == dict.fromkeys(NODES, 0)
    nodes.play("undo", "--limit", "s1,s2")
    assert nodes.bridged() == ["s1", "s2"]
    assert [nodes.on(node, STATE).replace("nodecare\n", "") for node in ("s1", "s2")] == [before["s1"], before["s2"]]
    assert changed(nodes.play("undo", "--limit", "s1,s2")) == {"s1": 0, "s2": 0}


LOOK, ACT, PROVE = (
    "Read the node",
    "Remove the bridges by their owners' means",
    "Wait until the probe finds no stray bridge, and Calico takes no other address than the node's own",
)
# what happens to s1: at the beginning of which task, what, and the variables of the run
FAULTS = {
    "cut off at the first look": (LOOK, "CUT", {}),
    "cut off before anything is changed": (ACT, "CUT", {}),
    "cut off at the last look": (PROVE, "CUT", {"nodecare_wait": 4}),
    "somebody takes the bridge into use": (ACT, "ON ip link add veth9 type veth peer name pod9; ip link set veth9 master br-3a10a9384428", {}),
    "the bridge is made again": (PROVE, "ON ip link add br-3a10a9384428 type bridge; ip address add 172.18.0.1/16 dev br-3a10a9384428", {"nodecare_wait": 4}),
    "the disk is full": (ACT, "ON mount -o remount,size=4k,nr_inodes=2 /var/lib", {}),
}


@pytest.mark.parametrize("serial", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_further_node_is_touched(fault, serial, nodes):
    task, what, variables = FAULTS[fault]
    inside = "SSH_ORIGINAL_COMMAND='%s' sh %s" % (what.removeprefix("ON "), nodes.place / "s1.sh")
    said = nodes.play("repair_bridges", expect=2, plug=(task, nodes.cut("s1") if what == "CUT" else inside), nodecare_serial=serial, **variables)
    later = list(NODES[serial:])
    assert [node for node in nodes.bridged() if node in later] == later and not any("nodecare" in nodes.on(node, "ls /var/lib") for node in later), said
    assert not re.search(r"\b(%s)\b" % "|".join(later), said), "they were looked at:\n" + said
    assert "No further node is touched" in said, said
    nodes.heal()


def test_a_refusal_names_who_needs_the_bridge(nodes):
    nodes.on("s1", "ip link add veth9 type veth peer name pod9; ip link set veth9 master br-3a10a9384428")
    said = nodes.play("repair_bridges", expect=2)
    assert "br-3a10a9384428 is needed by the port veth9 (the end of a container's link)" in said and "On this one nothing was changed" in said
    assert nodes.bridged() == list(NODES)
