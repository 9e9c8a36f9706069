# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who keeps the clock, and what the kernel thinks of it."""

from __future__ import annotations

import re

from ._identity import uptime

KEEPERS = ("chrony*.service", "ntp*.service", "openntpd.service", "systemd-timesyncd.service", "phc2sys*.service")
GUESTS = ("vmtoolsd.service", "open-vm-tools.service")
TRACES = {"/run/chrony/chronyd.pid": "chronyd", "/run/chronyd.pid": "chronyd", "/run/ntpd.pid": "ntpd", "/var/run/ntpd.pid": "ntpd"}


def time(node):
    """The kernel's own word on whether its clock is kept, whichever daemon does it; only if it is not, who tries to."""
    kernel = node.timex()
    if kernel is None or kernel["synchronised"]:
        return {"kernel": kernel}
    told = [node.read(path) for path in ("/etc/chrony.conf", "/etc/chrony/chrony.conf")]
    text = "\n".join(one for one in told if one)
    return {
        "kernel": kernel,
        "keepers": _active(node, KEEPERS) or sorted({name for path, name in TRACES.items() if node.exists(path)}),
        "guests": _active(node, GUESTS),
        # Without this word chronyd never tells the kernel that the clock is kept.
        "rtcsync": bool(re.search(r"(?m)^\s*rtcsync\b", text)) if text else None,
        "uptime_s": uptime(node),
    }


def _active(node, patterns):
    return sorted(name for name, unit in node.units(*patterns).items() if unit.get("ActiveState") == "active" and unit.get("SubState") == "running")
