# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What else on the node knows how to turn swap on: scripts and timers of unknown purpose, and cloud-init's plans for a new instance.

They are only named, with file and line; their text may hold anything.
"""

from __future__ import annotations

import re

from ..._yaml import UNREAD, at, read
from ._sources import SERVICES

SCRIPTS = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/crontab", "/etc/cron.d/*", "/var/spool/cron/crontabs/*", "/var/spool/cron/*", "/etc/rc[2345S].d/S*")
DISTRIBUTION = (
    "checkroot.sh",
    "mountall.sh",
    "mountall-bootclean.sh",
    "zram",
    "zramswap",
    "dphys-swapfile",
    "swapspace",
)  # these have their own rule, or never run with systemd
SWAPON = r"^(?![ \t]*[#;]).*?\bswapon\b(?![ \t]+(-s|--show|--summary|-V|--version|-h|--help)\b)"
KNOWN = tuple(unit for _mechanism, unit, _makes in SERVICES)
FILES = 200  # of each kind; a node with more has other worries
CLOUD_FILES = ("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/*.cfg", "/var/lib/cloud/instance/user-data.txt")


def scripts(node, boot):
    """Boot scripts and cron tables with a line that calls swapon."""
    found = []
    for path in [path for pattern in SCRIPTS for path in node.glob(pattern)[:FILES]]:
        stat = node.stat(path)
        if stat is None or stat.st_mode & 0o170000 != 0o100000 or re.sub(r"^S\d\d", "", path.rsplit("/", 1)[-1]) in DISTRIBUTION:
            continue
        if path.endswith("rc.local") and not stat.st_mode & 0o111:  # systemd runs it only where it may be executed
            continue
        found.extend({"kind": "script", "by": path, "line": number} for number in swapon(node.read(path, 1 << 16) or ""))
    return found


def own_services(node, boot):
    """Services of the administrator that call swapon, in their unit or in the script that this starts."""
    found = []
    for name in [name for name in boot.units.get("/etc/systemd/system", []) if name.endswith(".service")][:FILES]:
        path = "/etc/systemd/system/" + name
        text = node.read(path, 1 << 16) or "" if node.target(path) is None else ""
        started_by = boot.wants.get(name) or boot.wants.get(name.replace(".service", ".timer"))
        commands = re.findall(r"^Exec(?:Start|StartPre|StartPost)[ \t]*=[ \t]*[-+!@:]*(.*)$", text, re.M)
        if not started_by or not commands or name in KNOWN:
            continue
        if any(re.search(SWAPON, command) for command in commands):
            found.append({"kind": "service", "by": path, "line": swapon(text)[0]})
        for script in re.findall(r"(?:^|\s)(/(?:usr/local|opt|etc|root|home|srv)/[^\s\"';|&]+)", "\n".join(commands))[:8]:
            if node.exists(script):
                found.extend({"kind": "service", "by": script, "line": number, "unit": name} for number in swapon(node.read(script, 1 << 16) or "")[:1])
    return found


def swapon(text):
    """The numbers of the lines that call swapon to turn something on."""
    return [number for number, line in enumerate(text.split("\n"), 1) if "swapon" in line and re.search(SWAPON, line)]


def cloud_init(node, boot):
    """cloud-init writes swap into fstab once an instance; a new instance id, ``cloud-init clean`` or a new image brings it back."""
    if not node.exists("/etc/cloud/cloud.cfg") or node.exists("/etc/cloud/cloud-init.disabled"):
        return []
    combined = "/run/cloud-init/combined-cloud-config.json"
    paths = [combined] if node.exists(combined) else [path for pattern in CLOUD_FILES for path in node.glob(pattern)]
    return [{"kind": "cloud_init", "by": path, "line": None} for path in paths if asks_for_swap(node.read(path) or "")]


def asks_for_swap(text):
    """Whether a cloud-config makes swap: by ``swap`` with a size, or by an entry of type swap in ``mounts`` or ``fs_setup``."""
    config = read(text) if "swap" in text else {}
    if config is None:  # lists in brackets are more than is read here: only the plainest spelling is recognised then
        return bool(re.search(r"^swap:[ \t]*(\{.*size:[ \t]*[\"']?(?!0\b)\w|\n(?:[ \t]+\S.*\n)*?[ \t]+size:[ \t]*[\"']?(?!0\b)\w)", text + "\n", re.M))
    size = at(config, "swap", "size") if isinstance(at(config, "swap"), dict) else None
    listed = [one for key in ("mounts", "fs_setup") for one in (at(config, key) if isinstance(at(config, key), list) else [])]
    kinds = [one[2] if isinstance(one, list) and len(one) > 2 else one.get("filesystem") if isinstance(one, dict) else None for one in listed]
    return size is UNREAD or size not in (None, 0, "0") or "swap" in [kind for kind in kinds if isinstance(kind, str)]


SUSPECTS = (scripts, own_services, cloud_init)
