# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the runtimes' journal complains about, where the complaint is a known one."""

from __future__ import annotations

import re

from ._daemons import UNITS, unit

LINES, SINCE = 200, "-6h"

# what it means, and how it has been said over the years; the first that matches counts
SIGNATURES = (
    (
        "docker_lost_containerd",
        r"dockerd\[\d+\]: .{0,400}?(failed to dial \"?(unix://)?/(var/)?run/(docker/)?containerd/[a-z-]*containerd\.sock|all SubConns are in TransientFailure"
        r"|transport is closing|client connection is closing: failed precondition|addrConn\.createTransport failed to connect.{0,80}containerd)",
    ),
    ("inotify", r"failed to create fsnotify watcher|inotify_init|inotify_add_watch.{0,80}no space left"),
    ("disk_full", r"no space left on device"),
    ("database", r"panic: invalid page type|freepages: failed to get all reachable pages|panic: page \d+ already freed"),
    (
        "config",
        r"failed to load TOML|expected containerd config version|invalid (disabled )?plugin (key )?URI|unable to configure the Docker daemon",
    ),
    ("name_reserved", r"failed to reserve (sandbox|container) name"),
    ("sandbox_image", r"failed to (get|pull) sandbox image|failed to pull image .{0,120}pause"),
    ("systemd_silent", r"Failed to activate service 'org\.freedesktop\.systemd1'"),
    ("address_pool", r"could not find an available, non-overlapping IPv4 address pool"),
    ("files", r"too many open files"),
    ("pids", r"fork/exec .{0,160}resource temporarily unavailable|pthread_create failed|failed to create new OS thread"),
    ("oom", r"killed by the OOM killer|Failed with result 'oom-kill'"),
    ("deadline", r"context deadline exceeded"),
)


def journal(node):
    """The latest line of each known complaint, and how often it came; only asked where a runtime is installed."""
    units = [name for name in UNITS if unit(node, name)]
    if not units:
        return []
    wanted = ["--unit=" + name for name in units] + ["--lines=%d" % LINES, "--since=" + SINCE, "--output=short-unix", "--no-pager"]
    answer = node.run(["journalctl", "--quiet"] + wanted)
    if answer.state == "absent":
        node.problem("journalctl", "is not there", "error")
    if re.search(r"insufficient permissions|not seeing messages from other users|Permission denied", answer.err):
        node.problem("journalctl", "permission denied", "denied")
    return complaints(answer.out, node.clock())


def complaints(text, now):
    """In the order of their first line; the age is the latest line's."""
    found = {}
    for line in text.split("\n"):
        name = next((name for name, pattern in SIGNATURES if re.search(pattern, line[:2000], re.I)), None)
        if name:
            at = re.match(r"\d{1,12}", line)
            one = found.setdefault(name, {"signature": name, "count": 0})
            one.update(count=one["count"] + 1, age_s=round(now - int(at.group())) if at else None, line=_message(line[:2000]))
    return list(found.values())


def _message(line):
    """A journal line without its time and host, and without a password that a registry's address may hold."""
    return re.sub(r"://[^/@\s\"]+@", "://…@", re.sub(r"^\d+\.\d+ \S+ ", "", line)).strip()[:300]
