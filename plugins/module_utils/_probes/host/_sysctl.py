# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Kernel settings: what they are now, and what the files of sysctl.d will make of them at the next boot."""

from __future__ import annotations

import fnmatch
import re

from ._confd import fragments

WATCHED = (
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.may_detach_mounts",
    "kernel.panic",
    "kernel.panic_on_oops",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-iptables",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.default.rp_filter",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.conf.default.forwarding",
    "user.max_user_namespaces",
    "vm.max_map_count",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)
# One setting under two names.
ALSO = {"net/ipv4/conf/all/forwarding": "net/ipv4/ip_forward"}
VALUE = 100


def sysctls(node):
    """For each setting that Kubernetes depends on: its value now, the one at the next boot and which file sets that."""
    wanted = {key: key.replace(".", "/") for key in WATCHED}
    boot = next_boot(sources(node), wanted.values())
    if re.search(r"(?mi)^\s*ENABLED\s*=\s*yes", node.read("/etc/ufw/ufw.conf") or ""):  # ufw has settings of its own, and is later
        boot.update(next_boot([("/etc/ufw/sysctl.conf", node.read("/etc/ufw/sysctl.conf") or "")], wanted.values()))
    old = "/etc/sysctl.conf"
    ignored = {} if _reads_old(node) else next_boot([(old, node.read(old) or "")], wanted.values())
    found = {}
    for key, path in wanted.items():
        now = node.read("/proc/sys/" + path)
        one = {} if now is None else {"now": " ".join(now.split())[:VALUE]}
        if path in boot:
            one["boot"], one["by"] = boot[path]
        if path in ignored:
            one["ignored"] = ignored[path][0]
        if one:
            found[key] = one
    return found


def sources(node):
    """(name, text) of all that sets kernel settings at boot, in order."""
    early = [word[7:] for word in (node.read("/proc/cmdline") or "").split() if word.startswith("sysctl.")]
    found = [("kernel command line", "\n".join(early))] + fragments(node, "sysctl.d")
    return found + ([] if _systemd(node) else [("/etc/sysctl.conf", node.read("/etc/sysctl.conf") or "")])


def _systemd(node):
    return node.exists("/usr/lib/systemd/systemd-sysctl") or node.exists("/lib/systemd/systemd-sysctl")


def _reads_old(node):
    """systemd knows nothing of /etc/sysctl.conf; it is read only where the distribution links it into sysctl.d."""
    return not _systemd(node) or any((node.target(path) or "").endswith("sysctl.conf") for path in node.glob("/etc/sysctl.d/*.conf"))


def next_boot(texts, wanted):
    """{path below /proc/sys: (value, source)}: later lines win, a full name wins over any pattern, "-name" shields it from patterns."""
    lines = {}
    for source, text in texts:
        for name, value in assignments(text):
            if name in lines and lines[name][0] == value:
                continue
            lines.pop(name, None)  # an overridden line loses its place, too
            lines[name] = (value, source)
    names = {**{path: path for path in wanted}, **ALSO}
    found = {}
    for name, (value, source) in lines.items():
        if value is None:
            continue
        pattern = re.search(r"[*?[]", name)
        hit = [path for path in names if (path not in lines and _matches(path, name) if pattern else path == name)]
        for path in hit:
            if names[path] in wanted:
                found[names[path]] = (value[:VALUE], source)
    return found


def assignments(text):
    """(path, value) of each line; a value of None shields the path from patterns."""
    for line in map(str.strip, text.split("\n")):
        if not line or line[0] in "#;":
            continue
        name, sign, value = line.partition("=")
        if not sign and not name.startswith("-"):
            continue
        name = _path((name[1:] if name.startswith("-") else name).strip())
        if name:
            yield name, " ".join(value.split()) if sign else None


def _path(name):
    """Dots and slashes change places where the first of them is a dot."""
    first = re.search(r"[./]", name)
    if first and first.group() == ".":
        name = name.translate({ord("."): "/", ord("/"): "."})
    return "/".join(part for part in name.split("/") if part)


def _matches(path, pattern):
    parts, signs = path.split("/"), pattern.split("/")
    return len(parts) == len(signs) and all(fnmatch.fnmatchcase(part, sign) for part, sign in zip(parts, signs))
