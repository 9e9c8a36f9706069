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
CLOUD_FILES = ("/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/*.cfg")
CLOUD_INSTANCE = tuple("/var/lib/cloud/instance/%s.txt" % name for name in ("vendor-data", "vendor-data2", "user-data"))
CLOUD_MERGED = "/run/cloud-init/combined-cloud-config.json"


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
    base = {path: wishes(node.read(path) or "") for pattern in CLOUD_FILES for path in node.glob(pattern)}
    last = next((path for path in reversed(list(base)) if base[path][0] is not None), None)
    told_none = last and base[last][0] is False
    if node.exists(CLOUD_MERGED) and not (told_none and _written(node, last) > _written(node, CLOUD_MERGED)):
        asking = [CLOUD_MERGED] if any(wishes(node.read(CLOUD_MERGED) or "")) else []
    else:  # among the administrator's files the last has its way with the size; what the instance brings along wins over them
        asking = [path for path, (size, listed) in base.items() if listed or (size and not told_none)]
        asking += [path for path in CLOUD_INSTANCE if any(wishes(node.read(path) or ""))]
    return [{"kind": "cloud_init", "by": path, "line": None} for path in asking]


def wishes(text):
    """What a cloud-config wants: (swap by its size: True, False where that is 0, None where it does not say; whether a list of file systems has swap)."""
    config = read(text) if "swap" in text else {}
    if config is None:  # lists in brackets are more than is read here: only the plainest spelling is recognised then
        plain = r"^swap:[ \t]*(\{.*size:[ \t]*[\"']?(?!0\b)\w|\n(?:[ \t]+\S.*\n)*?[ \t]+size:[ \t]*[\"']?(?!0\b)\w)"
        return True if re.search(plain, text + "\n", re.M) else None, False
    size = at(config, "swap", "size") if isinstance(at(config, "swap"), dict) else None
    listed = [one for key in ("mounts", "fs_setup") for one in (at(config, key) if isinstance(at(config, key), list) else [])]
    kinds = [one[2] if isinstance(one, list) and len(one) > 2 else one.get("filesystem") if isinstance(one, dict) else None for one in listed]
    return None if size is None else size is UNREAD or size not in (0, "0"), "swap" in [kind for kind in kinds if isinstance(kind, str)]


def _written(node, path):
    stat = node.stat(path)
    return stat.st_mtime if stat else 0


SUSPECTS = (scripts, own_services, cloud_init)
