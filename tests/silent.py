"""Targets of a real sshd whose containerd is silent: stand-ins of containerd and of systemctl."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cores import NEWEST, installed
from patients import CALM, LINK

from lab.fleet import CHECKOUT, Face, Fleet, Target, missing

NODES = ("s1", "s2")
SYSTEMCTL = """#!/bin/sh
cd /run/unit
main=0 active=inactive
if read -r pid <pid && read -r _pid _name state _rest <"/proc/$pid/stat" && [ "$state" != Z ]; then active=active main=$pid; fi 2>/dev/null
if [ -e failed ]; then active=failed; fi
case $1 in
show)
  echo Id=containerd.service; echo LoadState=loaded; echo ActiveState=$active; echo SubState=running; echo Result=exit-code; echo NRestarts=0
  echo KillMode=process; echo MainPID=$main;;
--no-block)
  echo "$2" >>asked
  if [ -e hook ]; then . ./hook; fi
  setsid sh /etc/restart.sh $main PYTHON >/dev/null 2>&1 </dev/null;;
esac
"""
RESTART = """
kill -9 $1
rm -f /run/unit/wedged
if [ -e /run/unit/broken ]; then
  >/run/unit/failed
else
  setsid "$2" /etc/daemon.py &
fi
"""
# Answers what it is and how it is, and otherwise nothing; a file that says so makes it accept and say no more.
DAEMON = """
import ctypes, os, socket
ctypes.CDLL(None).prctl(15, b"containerd")
os.makedirs("/run/containerd", exist_ok=True)
door = socket.socket(socket.AF_UNIX)
door.bind("/run/containerd/new")
door.listen(64)
os.rename("/run/containerd/new", "/run/containerd/containerd.sock")
with open("/run/unit/new", "w") as file:
    file.write("%%d\\n" %% os.getpid())
os.rename("/run/unit/new", "/run/unit/pid")
said = {name: bytes.fromhex(text) for name, text in %(said)r.items()}
held = []
while True:
    client = door.accept()[0]
    if os.path.exists("/run/unit/wedged"):
        held.append(client)
        continue
    try:
        asked = client.recv(65536)
        client.sendall(next((what for name, what in said.items() if name.encode() in asked), said["nothing"]))
    except OSError:
        pass
    client.close()
"""


def frame(kind, flags, payload=b"", stream=1):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def answer(body):
    """What a gRPC server sends."""
    message = b"\0" + len(body).to_bytes(4, "big") + body
    return frame(4, 0, stream=0) + frame(1, 4, b"\x88") + frame(0, 0, message) + frame(1, 5, b"\x40\x0bgrpc-status\x010")


SAID = {
    "Version/": answer(b"\x0a\x061.7.24"),
    "RuntimeService/Status": answer(b"\x0a\x12\x0a\x10\x0a\x0cRuntimeReady\x10\x01"),
    "nothing": answer(b""),
}
QUICK = {"nodecare_cluster": False, "nodecare_runtime_settle": 1, "nodecare_timeout": 2, "nodecare_wait": 20, "nodecare_runtime_wait": 40}
PLUG = """
import os
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = "name: plug\\ntype: aggregate\\nshort_description: cut a node off\\ndescription: [cut a node off]\\n"

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME, CALLBACK_NEEDS_ENABLED = 2.0, "aggregate", "plug", True

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name().endswith(os.environ["PLUG_AT"]):
            with open(os.environ["PLUG"], "w") as command:
                command.write("exit 255\\n")
"""


@dataclass
class Silent:
    fleet: Fleet
    place: Path

    def __post_init__(self):
        self.kept = {node: (self.fleet.place / (node + ".sh")).read_text() for node in NODES}

    def on(self, node, command):
        """What a command says there, however the node is reached."""
        done = subprocess.run(["sh", "-c", self.kept[node]], env={**os.environ, "SSH_ORIGINAL_COMMAND": command}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def heal(self):
        for node in NODES:
            (self.fleet.place / (node + ".sh")).write_text(self.kept[node])

    def asked(self):
        """{node: what its systemctl was told to do}"""
        return {node: self.on(node, "cat /run/unit/asked 2>/dev/null; true").split() for node in NODES}

    def journals(self):
        return [node for node in NODES if self.on(node, "ls /var/lib/nodecare/journal 2>/dev/null; true")]

    def play(self, *words, expect=0, plug=("never", ""), **variables):
        callbacks = self.place / "callbacks"
        callbacks.mkdir(exist_ok=True)
        (callbacks / "plug.py").write_text(PLUG)
        more = {"ANSIBLE_CALLBACK_PLUGINS": str(callbacks), "ANSIBLE_CALLBACKS_ENABLED": "plug", "ANSIBLE_TIMEOUT": "5"}
        more.update({"PLUG_AT": plug[0], "PLUG": str(self.fleet.place / (plug[1] + ".sh")) if plug[1] else "/dev/null"})
        said = json.dumps({**QUICK, **variables})
        argv = [installed(NEWEST) / "ansible-playbook", "playbooks/repair_runtime.yml", "-i", self.fleet.inventory, *words, "-e", said]
        done = subprocess.run(argv, cwd=CHECKOUT, env=self.fleet.environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is (expect == 0), done.stdout + done.stderr
        return done.stdout


def targets(names):
    """Nodes whose containerd is silent."""
    files = {
        **CALM,
        "/etc/daemon.py": DAEMON % {"said": {name: said.hex() for name, said in SAID.items()}},
        "/etc/restart.sh": RESTART,
        "/run/systemd/system/.keep": "x",
        "/run/unit/.keep": "",
    }
    files["/usr/local/sbin/containerd"] = "#!/bin/sh\necho containerd v1.7.24\n"
    start = "mount -t tmpfs face /var/lib\nsed -i s,PYTHON,$PYTHON, /usr/local/sbin/systemctl\n"
    start += 'setpriv --pdeathsig KILL "$PYTHON" /etc/daemon.py >/dev/null 2>&1 &\nuntil test -e /run/unit/pid; do kill -0 $!; sleep 0.05; done\n'
    files["/usr/local/sbin/systemctl"] = SYSTEMCTL
    files["/run/unit/wedged"] = ""
    return {node: Target(Face(files, LINK % number + start)) for number, node in enumerate(names, 1)}


@contextmanager
def silent_nodes(place):
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    with Fleet(targets(NODES)) as fleet:
        made = Silent(fleet, place)
        yield made
        for node in NODES:
            made.on(node, "kill -9 $(cat /run/unit/pid) 2>/dev/null; true")


def changed(said):
    return {node: int(number) for node, number in re.findall(r"^(\S+)\s+: ok=.*? changed=(\d+)", said, re.M)}


def diff(said):
    return re.findall(r"^(?:---|\+\+\+|[-+]).*$", said, re.M)
