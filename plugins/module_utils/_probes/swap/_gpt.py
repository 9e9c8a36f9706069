# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap partitions of the root disk, which systemd finds by their GPT type."""

from __future__ import annotations

import re

from ..._swap import MASK_WORKS_SINCE
from ._boot import swap_unit
from ._fstab import device, entries

SWAP_PARTITION = "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
NO_AUTO = 1 << 63


def gpt_auto(node, boot):
    """systemd-gpt-auto-generator turns on a swap partition of the root disk, but only while fstab names no swap."""
    if not boot.systemd:
        return []
    program, mask = boot.generator("systemd-gpt-auto-generator")
    if not program:
        return []
    made = [one for one in boot.generated() if one["maker"] == "systemd-gpt-auto-generator"]
    reasons = [
        ("its generator is masked by %s" % mask, mask),
        ("systemd.gpt_auto=0 is on the kernel command line", boot.switch("systemd.gpt-auto") is False),
        ("systemd.swap=0 is on the kernel command line", boot.switch("systemd.swap") is False and boot.since(254)),
        ("systemd leaves swap alone in a container", boot.container),
        ("it stands down while /etc/fstab names any swap", entries(node.read("/etc/fstab") or "")),
    ]
    off = next((reason for reason, holds in reasons if holds), None)
    found = []
    for name, flags in swap_partitions(node):
        if flags is None:
            if not off and not made and not (boot.masked("swap.target") and boot.since(MASK_WORKS_SINCE)):
                node.problem("/dev/" + name, "udev does not know its partition type", "error")
            continue
        unit = next((one["unit"] for one in made if one["what"] == "/dev/" + name), None) or (made[0]["unit"] if len(made) == 1 else swap_unit("/dev/" + name))
        own = "the partition has the no-auto attribute (bit 63)" if flags & NO_AUTO else "%s is masked" % unit if boot.masked(unit) else None
        found.append(_gpt_source(program, "/dev/" + name, own or off, unit, dormant=not own and off == reasons[-1][0]))
    if not found:  # what it made of this boot says it as well, where udev's data are not there
        found = [
            _gpt_source(program, one["what"] or one["unit"], off or ("%s is masked" % one["unit"] if boot.masked(one["unit"]) else None), one["unit"])
            for one in made
        ]
    return found


def _gpt_source(program, what, why, unit, dormant=False):
    return {
        "mechanism": "gpt_auto",
        "what": what,
        "device": what,
        "by": "systemd-gpt-auto-generator",
        "generator": program,
        "unit": unit,
        "activates": why is None,
        "why": why,
        "dormant": dormant,
        "through": "swap.target",
    }


def swap_partitions(node):
    """(name, attributes) of the GPT swap partitions on the disk that holds the root file system, as udev knows them; None where it does not."""
    disk = root_disk(node)
    found = []
    for name in node.list(disk) if disk else []:
        if node.exists("%s/%s/partition" % (disk, name)):
            said = udev(node, (node.read("%s/%s/dev" % (disk, name)) or "").strip())
            if not said:
                found.append((name, None))
            elif said.get("ID_PART_ENTRY_SCHEME", "gpt") == "gpt" and said.get("ID_PART_ENTRY_TYPE", "").lower() == SWAP_PARTITION:
                flags = said.get("ID_PART_ENTRY_FLAGS", "0")
                found.append((name, int(flags, 16) if re.match(r"(0x)?[0-9a-fA-F]{1,16}$", flags) else 0))
    return found


def root_disk(node):
    """The directory in /sys of the one disk below /; None where there is none, or several."""
    number = None
    for line in node.lines("/proc/self/mountinfo"):
        fields = line.split(" ")
        if len(fields) > 6 and fields[4] == "/" and " - " in line:
            source = line.split(" - ", 1)[1].split(" ")[1:2]
            number = fields[2] if not fields[2].startswith("0:") else block_number(node, source[0] if source else "")
    for _step in range(8):  # a mapping on a mapping on a partition
        link = node.target("/sys/dev/block/" + number) if number else None
        if not link:
            return None
        path = "/sys/dev/block/" + link
        slaves = node.list(path + "/slaves")
        if not slaves:
            return path.rsplit("/", 1)[0] if node.exists(path + "/partition") else path
        number = (node.read("%s/slaves/%s/dev" % (path, slaves[0])) or "").strip() if len(slaves) == 1 else None
    return None


def block_number(node, source):
    """btrfs hides its device behind a number of its own; several devices are more than the generator looks at."""
    name = device(node, source).rsplit("/", 1)[-1] if source.startswith("/dev/") else ""
    for fs in node.list("/sys/fs/btrfs") if name else []:
        members = node.list("/sys/fs/btrfs/%s/devices" % fs)
        if name in members and len(members) > 1:
            return None
    return (node.read("/sys/class/block/%s/dev" % name) or "").strip() if name else None


def udev(node, number):
    """What udev knows about a block device."""
    return dict(line[2:].split("=", 1) for line in node.lines("/run/udev/data/b" + number) if line.startswith("E:") and "=" in line)
