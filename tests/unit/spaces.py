"""Network namespaces for tests, and a recorder that turns one into a tree for the case tables.

    .venv/bin/python tests/unit/spaces.py docker_host tests/unit/trees/links-docker-host     # as root

builds the layout of that name in a namespace of its own, and writes the kernel's dumps and the directories in /sys that the
probe looks for. The links that play NICs are of kind ifb, which has no device; the tree gives them one.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

COLLECTIONS = Path(__file__).parents[2] / ".collections"
NUMBERS = itertools.count(1)
HOSTILE = ('a<b>"x', "$(reboot)", "{{ x }}".replace(" ", ""), "`id`;&|'", "-rf")

DOCKER_HOST = """
link set lo up
link add eth0 type ifb
link add eth1 type ifb
link add docker0 type bridge
link add br-3a10a9384428 type bridge
link add br-lan type bridge
link add veth8c2f1ab type veth peer name container0
link set veth8c2f1ab master br-3a10a9384428
link set eth1 master br-lan
address add 10.0.2.15/24 dev eth0
address add 10.0.2.200/32 dev eth0
address add 172.17.0.1/16 dev docker0
address add 172.18.0.1/16 dev br-3a10a9384428
address add 192.168.50.1/24 dev br-lan
link set eth0 up
link set eth1 up
link set br-3a10a9384428 up
link set veth8c2f1ab up
link set container0 up
link set br-lan up
route add default via 10.0.2.2
""".strip().splitlines()

CALICO_NODE = """
link set lo up
link add eth0 type ifb
address add 10.0.2.16/24 dev eth0
link set eth0 up
route add default via 10.0.2.2
link add cali0123456789a type veth peer name pod0
link add cali0123456789b type veth peer name pod1
link set cali0123456789a up
link set cali0123456789b up
link add vxlan.calico type vxlan id 4096 dstport 4789 dev eth0
address add 10.244.1.64/32 dev vxlan.calico
link set vxlan.calico up
route add 10.244.1.65/32 dev cali0123456789a
route add 10.244.1.66/32 dev cali0123456789b
route add blackhole 10.244.1.64/26 proto 80
route add 10.244.2.64/26 via 10.0.2.17 dev eth0 proto bird
""".strip().splitlines()

LAYOUTS = {"docker_host": (DOCKER_HOST, ("eth0", "eth1")), "calico_node": (CALICO_NODE, ("eth0",))}


@functools.cache  # each file of tests asks for it, and for its reason
def usable():
    """Why namespaces cannot be made here, or an empty text. Root of a container may be told that it is not permitted, so one is made."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "there is no ip command"
    try:
        with space([]):
            return ""
    except subprocess.CalledProcessError as error:
        return "this machine lets nobody make network namespaces (%s)" % error.stderr.strip()


def has_ipv6(address="::1"):
    """Whether an address of IPv6 is there; ``::`` is wherever the kernel knows IPv6, and new namespaces with it."""
    try:
        with socket.create_server((address, 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@contextmanager
def space(commands):
    """A network namespace in which these ``ip`` commands were run; only what was made here is taken away."""
    name = "nodecare-%d-%d" % (os.getpid(), next(NUMBERS))
    subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=True)
    try:
        for command in commands:
            ip(name, *(command.split() if isinstance(command, str) else command))
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def ip(name, *arguments):
    done = subprocess.run(["ip", "-n", name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError("ip %s: %s" % (" ".join(arguments), done.stderr.strip()))
    return done.stdout


def inside(name, code, python=sys.executable):
    """What a piece of Python prints as JSON inside the namespace."""
    program = ["ip", "netns", "exec", name, python, "-c", "import sys; sys.path.insert(0, %r)\n" % str(COLLECTIONS) + code]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def probe(name, python=sys.executable):
    """The real probe's facts from inside the namespace."""
    return inside(
        name,
        "import json\nfrom ansible_collections.nodecare.kubernetes.plugins.module_utils import _probes\nprint(json.dumps(_probes.read(['links'])))",
        python,
    )


DUMPS = """
import json
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
node = Node()
keys = {"18": (18, 0), "22": (22, 0), "26/%d": (26, %d), "26/%d": (26, %d)}
print(json.dumps({key: [payload.hex() for payload in node.dump(*asked)] for key, asked in keys.items()}))
""" % (socket.AF_INET, socket.AF_INET, socket.AF_INET6, socket.AF_INET6)


def record(layout, tree):
    commands, nics = LAYOUTS[layout]
    with space(commands) as name:
        dumps = inside(name, DUMPS)
        bridges = [link["ifname"] for link in json.loads(ip(name, "-j", "link", "show", "type", "bridge")) if link]
    for path in ["sys/class/net/%s/device" % nic for nic in nics] + ["sys/class/net/%s/bridge" % bridge for bridge in bridges]:
        (tree / path).mkdir(parents=True, exist_ok=True)
        (tree / path / ".gitkeep").touch()
    head = "# Recorded in a network namespace on Linux %s: python tests/unit/spaces.py %s <tree>\n" % (os.uname().release.split("-")[0], layout)
    rows = "".join('  "%s":\n%s' % (key, "".join("    - %s\n" % payload for payload in payloads)) for key, payloads in dumps.items())
    (tree / ".recorded.yml").write_text("---\n" + head + 'commands: {systemctl show: ""}\ndumps:\n' + rows)


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
