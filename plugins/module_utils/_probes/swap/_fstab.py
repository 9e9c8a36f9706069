# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap that /etc/fstab names, read as the C library reads it and named as systemd and udev name it."""

from __future__ import annotations

import re

from ._boot import swap_unit

TAGS = {"UUID": "uuid", "LABEL": "label", "PARTUUID": "partuuid", "PARTLABEL": "partlabel", "ID": "id"}


def fstab(node, boot):
    """An entry counts by its third field alone; the second may be anything."""
    return [_fstab_source(node, boot, entry) for entry in entries(node.read("/etc/fstab") or "")]


def _fstab_source(node, boot, entry):
    path = udev_path(entry["what"])
    choice = [option for option in entry["options"] if option in ("auto", "noauto")]
    reasons = [
        ("its options say noauto", choice[-1:] == ["noauto"]),
        ("systemd.swap=0 is on the kernel command line", boot.switch("systemd.swap") is False and boot.since(246)),
        ("fstab=no is on the kernel command line", boot.systemd and boot.switch("fstab") is False),
        ("%s is masked" % swap_unit(path), boot.systemd and boot.masked(swap_unit(path))),
        ("systemd leaves swap alone in a container", boot.systemd and boot.container),
    ]
    why = next((reason for reason, holds in reasons if holds), None)
    through = "remote-fs.target" if "_netdev" in entry["options"] and boot.since(261) else "swap.target"
    return {
        "mechanism": "fstab",
        "what": entry["what"],
        "device": device(node, path),
        "by": "/etc/fstab line %d" % entry["line"],
        "line": entry["line"],
        "activates": why is None,
        "why": why,
        "through": through if boot.systemd else "swapon -a",
        "cloud_init": "comment=cloudconfig" in entry["options"],
    }


def entries(text):
    """The swap lines of an fstab, as getmntent of the C library reads them: fields end at blanks and tabs, and nothing else."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = re.split(r"[ \t]+", line.strip(" \t"))
        if len(fields) >= 3 and not fields[0].startswith("#") and fields[2] == "swap":
            found.append({"line": number, "what": unescape(fields[0])[:300], "options": unescape(fields[3]).split(",") if len(fields) > 3 else []})
    return found


def unescape(text):
    """fstab and /proc/swaps write blanks and backslashes as octal numbers."""
    return re.sub(r"\\(040|011|012|134|043|\\)", lambda match: "\\" if match.group(1) == "\\" else chr(int(match.group(1), 8)), text)


def udev_path(what):
    """The path that systemd makes of a first field; the value of a tag may be quoted, and udev escapes all but plain characters."""
    tag, sign, value = what.partition("=")
    if not sign or tag not in TAGS:
        return what
    quoted = re.match(r"([\"'])(.*)\1$", value)
    plain = re.sub(r"[^A-Za-z0-9#+.:=@_\u0080-\U0010ffff-]", lambda match: "\\x%02x" % ord(match.group()), quoted.group(2) if quoted else value)
    return "/dev/disk/by-%s/%s" % (TAGS[tag], plain)


def device(node, path):
    """The device behind a name that udev gave it; the path itself where there is none."""
    target = node.target(path) if path.startswith(("/dev/disk/", "/dev/mapper/")) else None
    return "/dev/" + target.rsplit("/", 1)[-1] if target else path
