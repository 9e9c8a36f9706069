"""The lab as its users have it: by its commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
BOOT = 3600  # seconds for what takes minutes: this machine may be busy, and there may be much to build first

# For a node that will be lost: soon noticed, and not through a connection that an earlier, more patient run has left open.
IMPATIENT = {"ansible_ssh_args": "-o ControlMaster=no -o ControlPath=none -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -o ConnectTimeout=10"}


def own_name(letter):
    """A lab's id that no other run has."""
    return "%s%d" % (letter, os.getpid())


class Lab:
    def __init__(self, name):
        self.name = name

    def command(self, *words):
        return [sys.executable, "-m", "lab", "--id", self.name, *map(str, words)]

    def environment(self, **more):
        """For Ansible with lab/hosts.sh as its inventory, and with the lab's API server as its cluster."""
        own = {"LAB_ID": self.name, "PATH": "%s:%s" % (Path(sys.executable).parent, os.environ["PATH"]), "NO_COLOR": "1"}
        return {**os.environ, **own, "K8S_AUTH_KUBECONFIG": self.do("kubeconfig"), **more}

    @property
    def control_plane(self):
        """Where its certificates and kubeconfigs are."""
        return Path(self.do("kubeconfig")).parent

    def start(self, *words, **options):
        """A command of the lab that is not waited for."""
        return subprocess.Popen(self.command(*words), cwd=ROOT, stdin=subprocess.DEVNULL, **options)

    def ask(self, *words, timeout=300):
        """(exit code, what it said)"""
        done = subprocess.run(
            self.command(*words), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False
        )
        return done.returncode, done.stdout.strip()

    def do(self, *words, timeout=300):
        """What a command says that must succeed."""
        code, said = self.ask(*words, timeout=timeout)
        assert code == 0, "lab %s ended with %d:\n%s" % (" ".join(map(str, words)), code, said)
        return said

    def up(self, *words):
        """With its progress on the terminal; a boot that failed is tried once more, from the beginning."""
        for attempt in (1, 2):
            with self.start("up", *words) as booting:
                try:
                    if booting.wait(BOOT) == 0:
                        return
                finally:
                    booting.kill()
            if attempt == 1:
                self.do("down")
        raise AssertionError("lab %s did not come up, twice" % self.name)

    def on(self, node, command, timeout=300):
        """What a command on a node says that must succeed."""
        return self.do("ssh", node, command, timeout=timeout)

    def kubectl(self, *words, timeout=300):
        return self.do("kubectl", *words, timeout=timeout)

    def begin(self, playbook, *words, **variables):
        """A playbook that is not waited for, in the network that has both the nodes and the API server."""
        argv = [PLAYBOOK, "-i", "lab/hosts.sh", "playbooks/%s.yml" % playbook, *words, "-e", json.dumps(variables)]
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(self.command("exec", "--", *argv), cwd=ROOT, env=self.environment(), **how)

    def play(self, playbook, *words, expect=(0,), at=lambda line: None, **variables):
        """What a playbook says, which must end as expected; ``at`` is called with each line as it comes."""
        with self.begin(playbook, *words, **variables) as running:
            said = ""
            for line in running.stdout:
                said += line
                at(line)
        assert running.returncode in expect, said[-12000:]
        return said

    def network(self):
        """The lab's network namespace."""
        return self.do("exec", "readlink", "/proc/self/ns/net")

    def boot_id(self, node):
        return self.on(node, "cat /proc/sys/kernel/random/boot_id")

    def nodes(self):
        return re.findall(r"^(\S+) +10\.0\.0\.", self.do("status"), re.M)

    def state(self, node):
        return next(re.split(" {2,}", line)[-1] for line in self.do("status").splitlines() if line.split()[0] == node)


def eventually(what, holds, limit=600, every=2.0):
    """The first true answer of a condition, which must come within the limit."""
    end = time.monotonic() + limit
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < end, "gave up after %d s waiting for %s" % (limit, what)
        time.sleep(every)


def changed(said):
    """{node: number of changed tasks} of a recap."""
    return {node: int(number) for node, number in re.findall(r"^(\S+)\s+: ok=.*? changed=(\d+)", said, re.M)}


class Watch:
    """What there was to see all the while, once a second: (when, what) of each look that saw something."""

    def __init__(self, look):
        self.look, self.seen, self.over = look, [], threading.Event()
        self.thread = threading.Thread(target=self._work)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.over.set()
        self.thread.join()

    def _work(self):
        while not self.over.wait(1):
            found = self.look()
            if found:
                self.seen.append((time.monotonic(), found))


class Daemon:
    """A program that runs as long as a test needs it. A subclass says how it is started, and when it is ready."""

    def __enter__(self):
        self.running = self.started()
        try:
            eventually("%s to be ready" % type(self).__name__, self.ready, limit=300, every=0.3)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error):
        self.running.kill()
        self.running.wait()

    def started(self):
        raise NotImplementedError

    def ready(self):
        raise NotImplementedError


# -- what a lab could leave behind -------------------------------------------------------------------------------------


def processes_in(network):
    """All processes of this machine that live in a network namespace."""
    return {int(process.name) for process in Path("/proc").glob("[0-9]*") if _network_of(process) == network}


def _network_of(process):
    try:
        return os.readlink(process / "ns" / "net")
    except OSError:
        return None


def surroundings():
    """What of this machine a lab could change: links, named namespaces, mounts."""
    links, namespaces = (subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout for words in (["-o", "link"], ["netns", "list"]))
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    return {"links": set(re.findall(r"^\d+: ([^:@]+)", links, re.M)), "namespaces": set(namespaces.split()), "mounts": mounts}
