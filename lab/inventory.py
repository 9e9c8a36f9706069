"""The nodes for Ansible. Their names work from everywhere on this machine: ssh finds the way into the lab's network by itself."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from .guest import Guest, guests
from .policy import POLICY
from .space import Space

DOOR = Path(__file__).parent / "door.py"


def commands(command) -> None:
    made = command("inventory", show, "an Ansible inventory as JSON; for lab/hosts.sh with --list as Ansible asks programs for it")
    made.add_argument("--list", action="store_true")


def show(arguments: argparse.Namespace, space: Space) -> None:
    hosts = {guest.name: _variables(guest) for guest in guests(space)} if space.keeper else {}
    print(json.dumps({"all": {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}} if arguments.list else {"all": {"hosts": hosts}}, indent=1))


def _variables(guest: Guest) -> dict[str, object]:
    door = shlex.join(guest.space.inside(sys.executable, DOOR, network_only=True)) + " %h %p"
    options = {"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null", "LogLevel": "ERROR", "ProxyUseFdpass": "yes", "ProxyCommand": door}
    return {
        "ansible_host": guest.address,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(guest.key),
        # Nodes of other labs have the same addresses, by which alone ssh would find a connection of theirs that is still open.
        "ansible_control_path": "%%(directory)s/lab-%s-%s-%s" % (guest.space.id, guest.space.keeper, guest.name),
        "ansible_ssh_common_args": " ".join("-o " + shlex.quote("%s=%s" % option) for option in options.items()),
        "ansible_python_interpreter": "/usr/bin/python3",
        **POLICY,
    }
