"""Real sshd on loopback: many SSH targets on one machine, each at an address of its own, some with a face of their own.

A *face* is what the commands of one target see: its own mounts, links and host name, made of namespaces that hang on one
process. sshd itself stays outside, so that the target can be reached. Faces need root; plain targets run as anybody.

Benchmarks and integration tests open fleets of their own; standing_fleet.py keeps one in a lab.

Everything ends with the process that opened the fleet, even when that is killed: the kernel ends the listeners and the
faces with it, and their namespaces vanish with them.
"""

from __future__ import annotations

import getpass
import itertools
import json
import os
import pwd
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .shell import LabError

CHECKOUT = Path(__file__).parents[1]
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
# How the environment names a cluster: the user's own, which is not to be asked for a fleet.
CLUSTER = re.compile(r"K8S_AUTH_|KUBECONFIG$|KUBERNETES_SERVICE_(HOST|PORT)$")
FACE_AT_MOST = 120  # seconds until a face is made, which takes less than one where nothing else is done
LISTEN_AT_MOST = 13  # sshd takes up to 16 addresses
MORTAL = ["setpriv", "--pdeathsig", "KILL"]
PROGRAMS = {"sshd": "openssh-server", "ssh": "openssh-client", "ssh-keygen": "openssh-client", "setpriv": "util-linux"}
FACE_PROGRAMS = {"nsenter": "util-linux", "unshare": "util-linux", "mount": "mount", "ip": "iproute2"}


class FleetError(LabError):
    """Why the targets could not be started."""


@dataclass
class Face:
    """What the commands of one target see instead of this machine."""

    files: Mapping[str, str] = field(default_factory=dict)  # below /etc, /run, /usr/local/sbin, or one that exists below /proc
    setup: str = ""  # shell lines, run inside as root; $PYTHON is the targets' Python
    user: str = ""  # who runs the commands, instead of who logged in


@dataclass
class Target:
    face: Face | None = None
    listens: bool = True
    variables: Mapping[str, object] = field(default_factory=dict)


def missing(faces: bool = False) -> str | None:
    """Why this machine cannot run a fleet; None where it can."""
    wanted = {**PROGRAMS, **(FACE_PROGRAMS if faces else {})}
    absent = sorted({package for program, package in wanted.items() if not shutil.which(program, path=PATH)})
    if absent:
        return "these packages are not installed: %s" % " ".join(absent)
    if faces and os.geteuid() != 0:
        return "only root can give a target its own mounts and links"
    if faces and subprocess.run(["unshare", "--mount", "--net", "--uts", "mount", "-t", "sysfs", "face", "/sys"], capture_output=True, check=False).returncode:
        return "this machine lets nobody make mounts of their own"
    return None


class Fleet:
    """Targets by name; ``with Fleet(...)`` starts them and ends them."""

    def __init__(self, targets: Mapping[str, Target], place: Path | None = None) -> None:
        """Its files are in ``place``, else in a directory that vanishes with the fleet."""
        self.targets = dict(targets)
        self.place = place
        self.addresses = {name: "127.77.%d.%d" % divmod(number, 250) for number, name in enumerate(self.targets, start=1)}
        self.user = getpass.getuser()
        self.python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
        self.port = 0
        self._listeners: list[subprocess.Popen] = []
        self._open = ExitStack()

    def __enter__(self) -> Fleet:
        with self._open:
            # Short, because a path to a socket may have 107 bytes; private, because whoever can open a control socket is logged in.
            self.place = self.place or Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="nc-")))
            self.log = self.place / "sshd.log"
            self._keys()
            self._listen({name: self._wear(name, target.face) for name, target in self.targets.items() if target.face and target.listens})
            self.inventory = self._write("inventory.json", json.dumps(self._inventory(), indent=1))
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def environment(self, **more: str) -> dict[str, str]:
        """The environment for ansible; each call has control sockets of its own, so that it begins without connections."""
        sockets = tempfile.mkdtemp(dir=self.place, prefix="c")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_") and not CLUSTER.match(name)}
        own = {"ANSIBLE_SSH_CONTROL_PATH_DIR": sockets, "ANSIBLE_LOCAL_TEMP": str(self.place / "tmp"), "ANSIBLE_NOCOLOR": "1"}
        return {**clean, "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"), **own, **more}

    def hang_up(self) -> None:
        """End all connections that were made so far; the clients' control sockets go with them."""
        for listener in self._listeners:
            for session in _children(listener.pid):
                _end(session)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _keys(self) -> None:
        for name in ("host", "client"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "fleet", "-f", str(self.place / name))
        self._write("known_hosts", "* %s" % (self.place / "host.pub").read_text())

    def _wear(self, name: str, face: Face) -> str:
        """Start a face; answers the command that sshd has to run for every command sent to its target."""
        files = self.place / name
        for path, text in face.files.items():
            file = files / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if "/sbin/" in path else 0o644)
        script = self._write(name + ".face", FACE % face.setup)
        argv = [*MORTAL, "unshare", "--mount", "--net", "--uts", "sh", "-e", str(script), name, str(files)]
        holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": PATH, "PYTHON": self.python})
        self._open.callback(_finish, holder)
        said = _told(holder)
        if said != READY:
            raise FleetError("the face of %s was not made: %s" % (name, said.decode(errors="replace")))
        become = "setpriv --reuid %s --regid %s --clear-groups env HOME=/ USER=%s LOGNAME=%s " % (*_ids(face.user), face.user, face.user) if face.user else ""
        command = self._write(name + ".sh", 'exec nsenter --target %d --mount --net --uts -- %ssh -c "$SSH_ORIGINAL_COMMAND"\n' % (holder.pid, become))
        return "sh %s" % command

    def _listen(self, commands: Mapping[str, str]) -> None:
        listening = iter([name for name, target in self.targets.items() if target.listens])
        groups = list(iter(lambda: list(itertools.islice(listening, LISTEN_AT_MOST)), []))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, whatever its configuration says
        for _attempt in range(3):
            self.port = _free_port(self.addresses[groups[0][0]])
            self._listeners = [self._sshd("sshd%d" % number, group, commands) for number, group in enumerate(groups)]
            if all(self._greets(listener, self.addresses[name]) for listener, group in zip(self._listeners, groups) for name in group):
                self._open.callback(lambda: [_finish(listener) for listener in self._listeners])
                self._open.callback(self.hang_up)
                return
            for listener in self._listeners:
                _finish(listener)
        raise FleetError("sshd does not answer:\n%s" % "\n".join(self.log.read_text().splitlines()[-10:]))

    def _sshd(self, name: str, group: list[str], commands: Mapping[str, str]) -> subprocess.Popen:
        lines = ["HostKey %s" % (self.place / "host"), "AuthorizedKeysFile %s" % (self.place / "client.pub"), "Port %d" % self.port, *SSHD]
        lines += ["ListenAddress %s" % self.addresses[one] for one in group]
        lines += ["PerSourcePenalties no"] if self._knows("PerSourcePenalties=no") else []
        for one in group:
            if one in commands:
                lines += ["Match LocalAddress %s" % self.addresses[one], "ForceCommand %s" % commands[one]]
        config = self._write(name + ".conf", "\n".join(lines) + "\n")
        with self.log.open("ab") as log:
            argv = [*MORTAL, shutil.which("sshd", path=PATH), "-D", "-e", "-f", str(config)]
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _knows(self, option: str) -> bool:
        argv = [shutil.which("sshd", path=PATH), "-t", "-f", "/dev/null", "-h", str(self.place / "host"), "-o", option]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def _greets(self, listener: subprocess.Popen, address: str) -> bool:
        until = time.monotonic() + 20
        while listener.poll() is None and time.monotonic() < until:
            try:
                with socket.create_connection((address, self.port), timeout=5) as link:
                    return link.recv(4) == b"SSH-"
            except OSError:
                time.sleep(0.02)
        return False

    def _inventory(self) -> dict:
        ssh = "-F /dev/null -o IdentitiesOnly=yes -o UserKnownHostsFile=%s" % (self.place / "known_hosts")
        common = {
            "ansible_port": self.port,
            "ansible_user": self.user,
            "ansible_python_interpreter": self.python,
            "ansible_ssh_private_key_file": str(self.place / "client"),
            "ansible_ssh_common_args": ssh,
        }
        hosts = {name: {"ansible_host": self.addresses[name], **target.variables} for name, target in self.targets.items()}
        return {"all": {"hosts": hosts, "vars": common}}

    def _write(self, name: str, text: str) -> Path:
        file = self.place / name
        file.write_text(text)
        return file


SSHD = [
    "UsePAM no",
    "StrictModes no",
    "MaxStartups 200",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "PermitUserRC no",
    "PrintMotd no",
    "PrintLastLog no",
    "UseDNS no",
    "PidFile none",
    "Subsystem sftp internal-sftp",
]

READY = b"ready\n"
# Runs inside the new namespaces. /run and /etc become the face's own, and /sys shows its links; then it stays until its input ends.
FACE = """\
exec 2>&1
name=$1 files=$2
mount -t tmpfs -o mode=755 face /run
mkdir /run/etc /run/cgroup /run/lock
cp -a /etc/. /run/etc/ && mount --bind /run/etc /etc
mount --rbind /sys/fs/cgroup /run/cgroup && mount -t sysfs face /sys && mount --move /run/cgroup /sys/fs/cgroup
mount -t tmpfs -o mode=755 face /usr/local/sbin
hostname "$name"
echo "$name" > /etc/hostname
echo "127.0.1.1 $name" >> /etc/hosts
printf %%s "$name" | md5sum | cut -c 1-32 > /etc/machine-id
for top in /etc /run /usr/local/sbin; do
    if test -d "$files$top"; then cp -r "$files$top/." "$top/"; fi
done
if test -d "$files/proc"; then
    (cd "$files" && find proc -type f) | while read -r path; do mount --bind "$files/$path" "/$path"; done
fi
ip link set lo up
%s
echo ready
exec cat
"""


def plain(count: int) -> dict[str, Target]:
    """So many targets that show this machine as it is."""
    return {"node-%03d" % number: Target() for number in range(1, count + 1)}


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def _ids(user: str) -> tuple[int, int]:
    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


def _children(pid: int) -> Iterator[int]:
    try:
        yield from map(int, Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split())
    except OSError:
        return


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _finish(process: subprocess.Popen) -> None:
    process.kill()
    with process:  # its pipes are closed, whoever else may still hold their other ends
        pass


def _told(holder: subprocess.Popen) -> bytes:
    """What a face says until it is ready, has ended, or has had its time."""
    said, until = b"", time.monotonic() + FACE_AT_MOST
    while not said.endswith(READY):
        if not select.select([holder.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            return said + b"it is not ready after %d s" % FACE_AT_MOST
        more = os.read(holder.stdout.fileno(), 1 << 16)
        if not more:
            break
        said += more
    return said


def _run(*argv: str) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FleetError("%s: %s" % (argv[0], done.stderr.strip()))
