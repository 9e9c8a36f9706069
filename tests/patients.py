"""The targets of the integration tests: each is ill, or well, in a way of its own."""

from __future__ import annotations

from lab.fleet import Face, Target

# A quiet machine, whatever the one that the tests run on has: no swap, nothing that brings it back, no units, one link that leads out.
CALM = {
    "/etc/fstab": "# nothing here\n",
    "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
    "/proc/cmdline": "quiet systemd.gpt_auto=0\n",
    "/usr/local/sbin/systemctl": "#!/bin/sh\n",
}
LINK = """
ip link add eth0 type veth peer name uplink
ip address add 10.77.0.%d/24 dev eth0
ip link set eth0 up && ip link set uplink up
ip route add default via 10.77.0.254
"""
# Accepts and never answers. It gets its name only once it listens; where it has ended before, so does the face.
SILENT = """
mkdir -p /run/containerd
setpriv --pdeathsig KILL "$PYTHON" -c '
import os, socket
door = socket.socket(socket.AF_UNIX)
door.bind("/run/containerd/new")
door.listen(64)
os.rename("/run/containerd/new", "/run/containerd/containerd.sock")
held = []
while True:
    held.append(door.accept())
' > /dev/null 2>&1 &
until test -S /run/containerd/containerd.sock; do kill -0 $!; sleep 0.02; done
"""
HOSTILE_LINKS = ("<b>x", "{{7*7}}", "$(reboot)", "'\"`id`;&|", "\x1b[2J\x07", "-rf")
HOSTILE_FSTAB = (
    "/swap<script>alert(1)</script>{{7*7}}$(reboot)'\";id none swap sw 0 0\n/\x1b[31mred\x07 none swap sw 0 0\n%s none swap sw 0 0\n\xff\xfe none none none\n"
) % ("/" + "x" * 100_000)
HOSTILE = "\n".join(
    "ip link add name %s type bridge; ip address add 172.%d.0.1/16 dev %s" % (quoted, number, quoted)
    for number, quoted in enumerate(("'%s'" % name.replace("'", "'\\''") for name in HOSTILE_LINKS), start=18)
)


def calm(number: int, setup: str = "", user: str = "", **files: str) -> Face:
    return Face({**CALM, **files}, LINK % number + setup, user)


TARGETS = {
    "well-1": Target(calm(1)),
    "well-2": Target(calm(2)),
    "swapping": Target(calm(3, **{"/etc/fstab": "/dev/sdb1 none swap sw 0 0\n", "/proc/swaps": CALM["/proc/swaps"] + "/dev/sdb1\tpartition\t524284\t0\t-2\n"})),
    "silent": Target(calm(4, SILENT)),
    "hostile": Target(calm(5, HOSTILE, **{"/etc/fstab": HOSTILE_FSTAB})),
    "mortal": Target(calm(6, "chmod 600 /etc/fstab", user="nobody")),
    "sudoer": Target(
        calm(7, "chmod 600 /etc/fstab", user="nobody", **{"/etc/sudoers": "nobody ALL=(ALL) NOPASSWD: ALL\n"}),
        variables={"ansible_become": True, "ansible_become_method": "ansible.builtin.sudo"},
    ),
    "garbled": Target(
        calm(8, **{"/usr/local/sbin/python-garbled": "#!/bin/sh\necho '{\"changed\": tr'; echo '<b>no module named json</b>' >&2; exit 1\n"}),
        variables={"ansible_python_interpreter": "/usr/local/sbin/python-garbled"},
    ),
    "gone": Target(listens=False),
}
