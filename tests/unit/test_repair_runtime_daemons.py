"""The repair of a silent runtime on daemons that really run: Debian's own containerd where the lab's cache has one, and a stand-in that can be worse.

The machine is a directory. Its systemctl is a stand-in, its /proc holds the daemon and containers that are only files.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._changes import Paths
from ansible_collections.nodecare.kubernetes.plugins.module_utils._journal import TOLD, Journal
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.runtime import _processes
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs import Failed, undo
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs import runtime as repair
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.runtime import Settings, _acts, restarted
from recorded import encoded
from test_repair_runtime import STAT
from test_runtime_parsers import answer

from lab.cache import CACHE

SETTINGS = Settings(settle=0.3, deadline=1.5)
SOCKET = "/run/containerd/containerd.sock"
POD = "/kubepods.slice/kubepods-podd1b7ac3e_9a64_4bd5_8b5f_6a1ea3d8c9f0.slice/cri-containerd-%s.scope"
UNCHANGED = {"before": 2, "after": 2, "gone_count": 0, "new_count": 0, "gone": [], "new": []}
QUICKER = (
    (repair, "PATIENCE_S", 1.5),
    (repair, "EVERY_S", 0.1),
    (repair, "CONTINUE_S", 1.0),
    (_acts, "KILL_AFTER_S", 0.5),
    (_processes, "LOOKS", (0.05,)),
)
IDS = [character * 64 for character in "abc"]

SYSTEMCTL = """#!/bin/sh
cd %(root)s/units
case $1 in
show)
  active=inactive main=0
  if read -r pid <pid && read -r _pid _name state _rest <"/proc/$pid/stat" && [ "$state" != Z ]; then active=active main=$pid; fi
  if [ -e failed ]; then active=failed; fi
  echo "Id=containerd.service"; echo "LoadState=loaded"; echo "ActiveState=$active"; echo "SubState=x"; echo "Result=exit-code"
  echo "NRestarts=0"; echo "KillMode=process"; echo "MainPID=$main"
  exit;;
*) echo "$*" >>asked; exec %(python)s -S %(root)s/units/orders.py;;
esac 2>/dev/null
"""
# Ends the daemon that runs, where one does, and starts another, beside whoever has ordered that.
ORDERS = """
import os, signal, subprocess, time
here = %(root)r
def state(pid):
    try:
        return open("/proc/%%d/stat" %% pid).read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
if os.fork():
    os._exit(0)
os.setsid()
log = open(here + "/log", "a")
for number in (0, 1, 2):
    os.dup2(log.fileno(), number)
pid = int(open(here + "/units/pid").read()) if os.path.exists(here + "/units/pid") else 0
if pid and state(pid) != "Z":
    os.kill(pid, signal.SIGTERM)
while pid and state(pid) != "Z":
    time.sleep(0.02)
if os.path.exists(here + "/units/broken"):
    open(here + "/units/failed", "w").close()
    os._exit(0)
daemon = subprocess.Popen(%(start)r, start_new_session=True, env={**os.environ, "TMPDIR": here + "/tmp"})
os.symlink("/proc/%%d" %% daemon.pid, here + "/proc/%%d" %% daemon.pid)
with open(here + "/units/pids", "a") as file:
    file.write("%%d " %% daemon.pid)
with open(here + "/units/new", "w") as file:
    file.write("%%d\\n" %% daemon.pid)
os.rename(here + "/units/new", here + "/units/pid")
daemon.wait()
"""
# Answers as a containerd does, until SIGUSR2 makes it accept and say no more; in a file "deaf" it does not heed SIGTERM then.
STAND_IN = """
import ctypes, os, signal, socket, sys
root, said = %(root)r, %(said)r
ctypes.CDLL(None).prctl(15, b"containerd")
wedged = []
def stop(*_):
    if not (wedged and os.path.exists(root + "/units/deaf")):
        os._exit(0)
def stacks(*_):
    with open("%%s/tmp/containerd.%%d.stacks.log" %% (root, os.getpid()), "w") as file:
        file.write("goroutine 1 [semacquire]:\\n" * 100000)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGUSR2, lambda *_: wedged.append(1))
signal.signal(signal.SIGUSR1, stacks)
door = socket.socket(socket.AF_UNIX)
door.bind(root + "/run/containerd/new")
door.listen(64)
os.rename(root + "/run/containerd/new", root + "/run/containerd/containerd.sock")
held = []
while True:
    client = door.accept()[0]
    if wedged:
        held.append(client)
        continue
    try:
        asked = client.recv(65536)
        client.sendall(next((what for name, what in said.items() if name in asked), said[b"Version/"]))
    except OSError:
        pass
    client.close()
"""
SAID = {
    b"RuntimeService/Status": answer(encoded({1: {1: [{1: "RuntimeReady", 2: 1}, {1: "NetworkReady", 2: 1}]}})),
    b"RuntimeService/ListPodSandbox": answer(encoded({1: [{1: IDS[0], 2: {1: "web-0", 2: "u", 3: "shop"}}]})),
    b"RuntimeService/ListContainers": answer(encoded({1: [{1: IDS[1], 2: IDS[0], 3: {1: "nginx"}}]})),
    b"RuntimeService/RuntimeConfig": answer(b"", status=b"12"),
    b"Version/": answer(encoded({1: "1.7.24"})),
}


class Machine:
    def __init__(self, root):
        self.root = root

    def put(self, path, text, mode=0o644):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def systemctl(self, *words):
        subprocess.run([self.root / "usr/bin/systemctl", *words], check=True)

    @property
    def main(self):
        return int((self.root / "units/pid").read_text())

    @property
    def asked(self):
        """The orders that systemd got."""
        return [line for line in (self.root / "units/asked").read_text().splitlines() if line]

    def container(self, number, cgroup=None):
        """A container in which something runs."""
        pid = 4000000 + number  # beyond those that the kernel gives
        self.put("/proc/%d/stat" % pid, STAT % (pid, "nginx", "S"))
        self.put("/proc/%d/cgroup" % pid, "0::%s\n" % (cgroup or POD % IDS[number]))

    def ends(self, number):
        (self.root / ("proc/%d/stat" % (4000000 + number))).unlink()

    def stop(self, how):
        os.kill(self.main, how)
        time.sleep(0.1)

    def repair(self, **settings):
        """As the action does it: until nothing is waited for any more; (all answers)."""
        answers, end = [], time.monotonic() + 120
        while not answers or answers[-1]["waiting"]:
            assert time.monotonic() < end, answers[-1]["waiting"]
            answers.append(restarted(SETTINGS._replace(**settings), root=str(self.root)))
        return answers

    @property
    def entries(self):
        return Journal(Paths(str(self.root))).entries()


def untimed(diff):
    """Without how long was waited, which is never the same twice."""
    return [{side: re.sub(r"within [0-9.]+ s", "in time", text) for side, text in one.items()} for one in diff]


@pytest.fixture(scope="session")
def real_containerd(tmp_path_factory):
    """Debian's containerd 1.7, out of a tree of the lab's."""
    trees = sorted(CACHE.glob("tree-trixie-*/root.tar"))
    if not trees:
        pytest.skip("the lab has built no tree that holds a containerd")
    place = tmp_path_factory.mktemp("containerd")
    subprocess.run(["tar", "xf", trees[0], "-C", place, "--occurrence=1", "./usr/bin/containerd"], check=True)
    program = place / "usr/bin/containerd"
    if subprocess.run([program, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("the lab's containerd does not run on this machine")
    return program


@pytest.fixture
def made(tmp_path_factory, monkeypatch):
    """A function that makes a machine whose containerd runs and answers."""
    machines = []
    for where, name, value in QUICKER:
        monkeypatch.setattr(where, name, value)

    def make(real=None):
        root = Path(tmp_path_factory.mktemp("m"))
        one = Machine(root)
        machines.append(one)
        for path in ("run/systemd/system", "run/containerd", "units", "tmp", "proc"):
            (root / path).mkdir(parents=True)
        one.put("/proc/uptime", "90000.00 1000.00\n")
        one.put("/proc/sys/kernel/random/boot_id", "one\n")
        one.put("/units/daemon.py", STAND_IN % {"root": str(root), "said": SAID})
        one.put("/etc/config.toml", 'version = 2\nroot = "%s/lib"\nstate = "%s/state"\n[grpc]\naddress = "%s%s"\n' % (root, root, root, SOCKET))
        start = [str(real), "--config", str(root / "etc/config.toml")] if real else [sys.executable, "-S", str(root / "units/daemon.py")]
        words = {"python": sys.executable, "root": str(root), "start": start}
        one.put("/units/orders.py", ORDERS % words)
        one.put("/usr/bin/systemctl", SYSTEMCTL % words, 0o755)
        one.put("/usr/bin/containerd", "#!/bin/sh\necho containerd v1.7.24\n", 0o755)
        one.systemctl("--no-block", "start", "containerd.service")
        until = time.monotonic() + 20
        while not (root / SOCKET[1:]).exists():
            assert time.monotonic() < until, (root / "log").read_text()
            time.sleep(0.02)
        (root / "units/asked").write_text("")
        one.container(0)
        one.container(1)
        return one

    yield make
    for one in machines:
        for pid in (one.root / "units/pids").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


# -- Debian's own containerd ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_containerd_that_a_signal_has_stopped_goes_on(made, real_containerd):
    machine = made(real_containerd)
    main = machine.main
    machine.stop(signal.SIGSTOP)
    foreseen = restarted(SETTINGS, check=True, root=str(machine.root))
    assert [one["act"] for one in foreseen["steps"]] == ["continue"] and not (machine.root / "var").exists()
    answers = machine.repair()
    assert answers[0]["changed"] and untimed(answers[0]["diff"]) == untimed(foreseen["diff"])
    assert machine.main == main and machine.asked == []
    assert answers[-1]["containers"] == UNCHANGED
    assert machine.repair() == [{**machine.repair()[0], "changed": False, "steps": []}]


@pytest.mark.slow
def test_a_real_containerd_leaves_its_stacks_in_the_journal_before_it_is_restarted(made, real_containerd):
    """It is silent because nobody finds its socket any more, while it itself lives."""
    machine = made(real_containerd)
    main = machine.main
    (machine.root / SOCKET[1:]).unlink()
    answers = machine.repair()
    assert machine.main != main and machine.asked == ["--no-block restart containerd.service"]
    stacks = list((machine.root / "var/lib/nodecare/journal").glob("*/stacks-%d" % main))
    assert len(stacks) == 1 and "goroutine" in stacks[0].read_text() and stat.S_IMODE(stacks[0].stat().st_mode) == 0o600
    assert answers[-1]["silent_s"] > 0 and answers[-1]["steps"][0]["seconds"] > 0


# -- a stand-in that can be worse ------------------------------------------------------------------------------------------


def test_a_stand_in_that_accepts_and_never_answers_is_restarted_with_its_containers_as_they_were(made):
    machine = made()
    main = machine.main
    machine.stop(signal.SIGUSR2)
    foreseen = restarted(SETTINGS, check=True, root=str(machine.root))
    assert machine.asked == [] and not (machine.root / "var").exists(), "check mode has changed something"
    answers = machine.repair()
    last = answers[-1]
    assert answers[0]["changed"] and untimed(answers[0]["diff"]) == untimed(foreseen["diff"]) and machine.main != main
    assert machine.asked == ["--no-block restart containerd.service"]
    assert last["containers"] == UNCHANGED and last["kills_pods"] == []
    assert last["steps"][0]["done"] and 0 < last["steps"][0]["seconds"] <= last["silent_s"] < 20
    stacks = next((machine.root / "var/lib/nodecare/journal").glob("*/stacks-%d" % main))
    assert stacks.stat().st_size == 1 << 20, "what a daemon tells about itself has a limit"
    assert [one.said["state"] for one in machine.entries] == [TOLD]
    again = machine.repair()
    assert len(again) == 1 and not again[0]["changed"] and len(machine.entries) == 1
    assert not undo.take_back(root=str(machine.root))["changed"], "there is nothing to take back"


def test_a_stand_in_that_does_not_heed_its_end_is_killed_and_nothing_else_is(made):
    machine = made()
    machine.put("/units/deaf", "")
    main = machine.main
    machine.stop(signal.SIGUSR2)
    last = machine.repair()[-1]
    assert machine.main != main and last["steps"][0]["killed"]
    assert machine.asked == ["--no-block restart containerd.service"], "no signal went to the unit"


def test_a_stand_in_that_was_stopped_and_is_stuck_as_well_is_restarted(made):
    machine = made()
    main = machine.main
    machine.stop(signal.SIGUSR2)
    machine.stop(signal.SIGSTOP)
    last = machine.repair()[-1]
    assert [one["act"] for one in last["steps"]] == ["continue", "restart"] and machine.main != main


def test_a_stand_in_that_was_stopped_and_is_stuck_is_not_restarted_where_pods_would_end(made):
    machine = made()
    main = machine.main
    machine.put("/usr/bin/containerd", "#!/bin/sh\necho containerd v1.6.12\n", 0o755)
    machine.stop(signal.SIGUSR2)
    machine.stop(signal.SIGSTOP)
    with pytest.raises(Failed, match="goes on since a signal told it to.*1.6.12 forgets.*drain the node first"):
        machine.repair()
    assert machine.main == main and machine.asked == []
    with pytest.raises(repair.DrainFirst, match="1.6.12"):
        restarted(SETTINGS, check=True, root=str(machine.root))


def test_containers_that_are_gone_or_new_are_named(made):
    machine = made()
    machine.stop(signal.SIGUSR2)
    restarted(SETTINGS._replace(settle=3.0), root=str(machine.root))
    machine.ends(1)
    machine.container(2)
    last = machine.repair()[-1]["containers"]
    assert last["gone"] == [{"id": IDS[1], "pod_uid": "d1b7ac3e-9a64-4bd5-8b5f-6a1ea3d8c9f0", "name": "shop/web-0/nginx"}]
    assert [one["id"] for one in last["new"]] == [IDS[2]] and last["new"][0]["name"] is None


def test_a_repair_that_is_cut_off_is_finished_by_the_next(made, monkeypatch):
    machine = made()
    machine.stop(signal.SIGUSR2)
    with monkeypatch.context() as cut:
        cut.setattr(_acts, "do", _cut)
        with pytest.raises(KeyboardInterrupt):
            machine.repair()
    entry = machine.entries[0].name
    answers = machine.repair()
    assert machine.asked == ["--no-block restart containerd.service"], "it was restarted twice"
    assert {one["journal"] for one in answers} == {entry} and answers[-1]["containers"]["gone"] == []


def _cut(node, step):
    """The order is given, and nothing is noted any more."""
    node.run(["systemctl", "--no-block", step["act"], step["unit"]])
    raise KeyboardInterrupt


def _cut_before(node, step):
    raise KeyboardInterrupt


def test_an_entry_that_nobody_goes_on_with_is_begun_anew(made, monkeypatch):
    machine = made()
    machine.stop(signal.SIGUSR2)
    with monkeypatch.context() as cut:
        cut.setattr(_acts, "do", _cut_before)
        with pytest.raises(KeyboardInterrupt):
            machine.repair()
    monkeypatch.setattr(repair, "STALE_S", 0.0)
    answers = [restarted(SETTINGS, root=str(machine.root))]
    monkeypatch.setattr(repair, "STALE_S", 60.0)
    answers += machine.repair()
    assert machine.asked == ["--no-block restart containerd.service"] and [one.said["state"] for one in machine.entries] == [TOLD, TOLD]
    assert answers[0]["changed"]


def test_one_that_does_not_come_up_again_ends_the_repair_with_the_way_to_look(made):
    machine = made()
    machine.stop(signal.SIGUSR2)
    machine.put("/units/broken", "")
    with pytest.raises(Failed, match="containerd.service did not come up .exit-code.: journalctl -u containerd.service -n 50"):
        machine.repair()
