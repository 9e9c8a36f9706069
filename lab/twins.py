"""Twins: Calico nodes without a machine of their own, for what needs no kubelet.

A twin is the image of calico-node in network, mount, PID and UTS namespaces of its own, with one NIC on the lab's bridge.
Its start-up, Felix, BIRD and confd are the real ones, against the lab's real API server; three have their mesh in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import autodetect, network
from .calico import calico
from .control_plane import ControlPlane
from .daemon import Daemon
from .pod_images import root
from .shell import LabError, need, say, succeeds, wait_until
from .space import Space

MOST = 9
MESH_LIMIT = 300
NIC = "eth0"
ENVIRONMENT = {
    **network.SETTINGS,
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "SVDIR": "/etc/service/enabled",
    "DATASTORE_TYPE": "kubernetes",
    "KUBECONFIG": "/etc/calico/kubeconfig",
    "WAIT_FOR_DATASTORE": "true",
    "CALICO_NETWORKING_BACKEND": "bird",
    "CALICO_MANAGE_CNI": "false",
    "CALICO_DISABLE_FILE_LOGGING": "true",
    "CLUSTER_TYPE": "k8s,bgp",
    "IP": "autodetect",
    "FELIX_HEALTHENABLED": "true",
    "FELIX_IPV6SUPPORT": "false",
}
# The NIC is made inside: one that was moved there would keep a high number, and Calico looks at links in the order of their numbers.
BE = """
set -e; name=$1 place=$2 address=$3 lower=$4; shift 4
hostname "$name"
ip link set lo up
ip link add %(nic)s type veth peer name "$name" netns 1
ip address add "$address/24" dev %(nic)s; ip link set %(nic)s up; ip route add default via 10.0.0.1
nsenter --target 1 --net ip link set "$name" master lan0 up
cd "$place"; mkdir -p upper work root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=upper,workdir=work" root
mkdir -p root/dev
for one in dev sys; do mount --rbind /$one root/$one; done
mount -t tmpfs run root/run
mkdir -p root/run/secrets/kubernetes.io; cp -r serviceaccount root/run/secrets/kubernetes.io/
exec unshare --pid --fork --kill-child --mount-proc="$place/root/proc" chroot root env -i "$@" start_runit
""" % {"nic": NIC}
OLD_PROGRAM = "usr/bin/calico-node-old"
# An old start asks the API server as its pod's account would, whatever kubeconfig it has.
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "twin", "namespace": "kube-system"}}
KEPT = ("IPv4Address", "IPv4IPIPTunnelAddr", "IPv4VXLANTunnelAddr", "Interfaces")  # what Calico writes down of a node
FELIX_LIMIT, LIVE_LIMIT = 600, 120
# Runs in the twin's network with this machine's Python: says when, in seconds since this machine's boot, Felix says that it lives.
FELIX = """
import socket, time
while True:
    try:
        with socket.create_connection(("127.0.0.1", 9099), 1) as link:
            link.sendall(b"GET /liveness HTTP/1.0\\r\\n\\r\\n")
            if b" 20" in link.recv(100)[:15]:
                print(time.clock_gettime(time.CLOCK_BOOTTIME))
                break
    except OSError:
        pass
    time.sleep(0.03)
"""


@dataclass(frozen=True)
class Twin:
    space: Space
    number: int

    @property
    def name(self) -> str:
        return "t%d" % self.number

    @property
    def address(self) -> str:
        return "10.0.0.%d" % (100 + self.number)

    @property
    def place(self) -> Path:
        return self.space.place / self.name

    @property
    def daemon(self) -> Daemon:
        return Daemon(self.space, self.name, self.place)

    def start(self, lower: Path, plane: ControlPlane, old: bool) -> None:
        """Anew, as a pod that was deleted: nothing of an earlier life is left but the cluster's memory of it."""
        if self.daemon.running:
            return
        shutil.rmtree(self.place, ignore_errors=True)
        _write(self.place / "upper/etc/calico/kubeconfig", plane.kubeconfig.read_text())
        _write(self.place / "serviceaccount/token", plane.ask("-n", "kube-system", "create", "token", "twin", "--duration=24h").strip())
        _write(self.place / "serviceaccount/ca.crt", (plane.pki / "ca.crt").read_text())
        if old:
            _write(self.place / "upper" / OLD_PROGRAM, autodetect.calico_node_322().read_bytes(), 0o755)
            for script in ("etc/rc.local", "etc/service/available/monitor-addresses/run"):
                text = (lower / script).read_text()
                _write(self.place / "upper" / script, re.sub(r"calico-node -(startup|monitor)", r"/%s -\1" % OLD_PROGRAM, text), 0o755)
        variables = ["%s=%s" % one for one in {**ENVIRONMENT, "NODENAME": self.name}.items()]
        self.daemon.start("unshare", "--net", "--mount", "--uts", "sh", "-c", BE, "sh", self.name, self.place, self.address, lower, *variables)

    def inside(self, *argv: str) -> list[str]:
        first = self.first()
        if first is None:
            raise LabError("twin %s does not run; its last words:\n%s" % (self.name, self.daemon.last_words()))
        return ["nsenter", "--target", str(first), "--net", "--mount", "--pid", "--uts", "--root", "--wd", "env", "PATH=" + ENVIRONMENT["PATH"], *argv]

    def first(self) -> int | None:
        """The first process of the twin's own PID namespace, which becomes calico-node's start-up; none while others still make its place."""
        outer, inner = self.daemon.outer, self.daemon.inner
        try:
            return inner if outer and inner and os.readlink("/proc/%d/ns/pid" % outer) != os.readlink("/proc/%d/ns/pid" % inner) else None
        except OSError:
            return None

    def times(self) -> dict[str, float]:
        """Seconds from the start of its first process until Felix answers on 9099, and until Calico's own liveness probe is content."""
        wait_until("%s to begin" % self.name, lambda: self.first() is not None, 30, 0.01)
        first = self.first()
        begun = int(Path("/proc/%d/stat" % first).read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        watching = subprocess.Popen(["nsenter", "--target", str(first), "--net", sys.executable, "-c", FELIX], stdout=subprocess.PIPE, text=True)
        try:
            self.daemon.wait(lambda: watching.poll() is not None, FELIX_LIMIT)
            felix = float(watching.communicate()[0])
        finally:
            watching.kill()
        wait_until("%s to live" % self.name, lambda: succeeds(*self.inside("calico-node", "-felix-live", "-bird-live")), LIVE_LIMIT, 0.1)
        return {"felix": round(felix - begun, 2), "live": round(time.clock_gettime(time.CLOCK_BOOTTIME) - begun, 2)}

    def established(self) -> int | None:
        """How many peers BIRD has a session with; None while the twin still makes itself a place to run in."""
        if self.daemon.running and self.first() is None:
            return None
        question = self.inside("birdcl", "-s", "/var/run/calico/bird.ctl", "show", "protocols")
        return subprocess.run(question, capture_output=True, text=True, check=False).stdout.count("Established")


def commands(command) -> None:
    made = command("twins", start, "so many Calico nodes in network namespaces, without guests; those that run stay as they are")
    made.add_argument("count", type=int, metavar="N")
    made.add_argument("--old-calico-start", action="store_true", help="let them choose their address as an old Calico did; do not wait for their mesh")
    made = command("twin-restart", restart, "a twin anew; prints, as JSON, after how many seconds Felix answers and Calico's liveness probe is content")
    made.add_argument("twin")
    made.add_argument("--first", action="store_true", help="as if Calico had never seen this node")
    made.add_argument("--old-calico-start", action="store_true", help="with the start-up of an old Calico")
    made = command("in", execute, "a command in a twin", prefix_chars="\0", add_help=False)
    made.add_argument("twin")
    made.add_argument("words", nargs=argparse.REMAINDER)


def start(arguments: argparse.Namespace, space: Space) -> None:
    if not 1 <= arguments.count <= MOST:
        raise LabError("a lab has 1 to %d twins, not %d" % (MOST, arguments.count))
    need()
    with space.at_work():
        plane = ControlPlane(space)
        parts, lower = calico(), root(plane.plan.kubernetes)
        space.open()
        space.note("control-plane", asdict(plane.plan))
        plane.start()
        network.define(plane, parts)
        plane.ask(*network.APPLY, stdin=json.dumps(ACCOUNT))
        plane.grant("nodecare-lab:twins", "cluster-admin", "system:serviceaccount:kube-system:twin")
        twins = [Twin(space, number) for number in range(1, arguments.count + 1)]
        for twin in twins:
            plane.ask(*network.APPLY, stdin=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": twin.name}}))
            addresses = {"status": {"addresses": [{"type": "InternalIP", "address": twin.address}, {"type": "Hostname", "address": twin.name}]}}
            plane.ask("patch", "node", twin.name, "--subresource=status", "--patch", json.dumps(addresses))
            twin.start(lower, plane, arguments.old_calico_start)
        if not arguments.old_calico_start:
            seconds = wait_until("the twins' mesh", lambda: all(twin.established() == len(twins) - 1 for twin in twins), MESH_LIMIT)
            say("the twins' mesh is established after %.0f s" % seconds)


def restart(arguments: argparse.Namespace, space: Space) -> None:
    twin = _named(space, arguments.twin)
    with space.at_work():
        plane = ControlPlane(space)
        twin.daemon.kill()
        if arguments.first:
            plane.ask("annotate", "node", twin.name, *["projectcalico.org/%s-" % one for one in KEPT])
        twin.start(root(plane.plan.kubernetes), plane, arguments.old_calico_start)
        print(json.dumps(twin.times()))


def _named(space: Space, name: str) -> Twin:
    return Twin(space, int(name.removeprefix("t")))


def execute(arguments: argparse.Namespace, space: Space) -> None:
    command = _named(space, arguments.twin).inside(*arguments.words)
    os.execvp(command[0], command)


def _write(file: Path, content: str | bytes, mode: int = 0o600) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    file.chmod(mode)
