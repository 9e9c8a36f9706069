# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Kernel modules: in the kernel, at hand, or blocked; now and at the next boot."""

from __future__ import annotations

import re
import zlib

from ._confd import fragments

WATCHED = (
    *("overlay", "br_netfilter", "nf_conntrack", "nf_conntrack_netlink", "nf_tables", "nft_compat", "ip_tables", "ip6_tables"),
    *("ip_set", "ip_set_hash_ip", "ip_set_hash_net", "xt_set", "ipt_rpfilter", "xt_rpfilter"),
    *("xt_addrtype", "xt_bpf", "xt_comment", "xt_conntrack", "xt_mark", "xt_multiport", "xt_MASQUERADE", "ipt_MASQUERADE"),
    *("ip_vs", "ip_vs_rr", "ipip", "vxlan", "wireguard"),
)
# What tells that the kernel has it, where its list of modules does not.
SIGNS = {"br_netfilter": "/proc/sys/net/bridge", "nf_conntrack": "/proc/sys/net/netfilter/nf_conntrack_max", "ip_vs": "/proc/sys/net/ipv4/vs"}
# How the kernel's own configuration calls them: only looked at where the list of what can be loaded is missing.
SYMBOLS = {
    "overlay": "OVERLAY_FS",
    "br_netfilter": "BRIDGE_NETFILTER",
    "nf_conntrack": "NF_CONNTRACK",
    "nf_tables": "NF_TABLES",
    "nft_compat": "NFT_COMPAT",
    "ip_tables": "IP_NF_IPTABLES",
    "ip_set": "IP_SET",
    "ip_set_hash_ip": "IP_SET_HASH_IP",
    "ip_set_hash_net": "IP_SET_HASH_NET",
    "xt_set": "NETFILTER_XT_SET",
    "ipt_rpfilter": "IP_NF_MATCH_RPFILTER",
    "xt_rpfilter": "IP_NF_MATCH_RPFILTER",
    "xt_addrtype": "NETFILTER_XT_MATCH_ADDRTYPE",
    "xt_bpf": "NETFILTER_XT_MATCH_BPF",
    "xt_comment": "NETFILTER_XT_MATCH_COMMENT",
    "xt_conntrack": "NETFILTER_XT_MATCH_CONNTRACK",
    "xt_mark": "NETFILTER_XT_MARK",
    "xt_multiport": "NETFILTER_XT_MATCH_MULTIPORT",
    "ip_vs": "IP_VS",
    "ipip": "NET_IPIP",
    "vxlan": "VXLAN",
    "wireguard": "WIREGUARD",
}
TREES = ("/lib/modules", "/run/booted-system/kernel-modules/lib/modules")  # the latter on NixOS
INDEX = 8 << 20


def modules(node):
    """Of each module that Kubernetes or Calico may need: loaded, built in, loadable, blocked or absent; none of these where nobody can tell."""
    release = (node.read("/proc/sys/kernel/osrelease") or "").strip()
    tree = next((one + "/" + release for one in TREES if node.exists(one + "/" + release)), TREES[0] + "/" + release)
    listed = node.read("/proc/modules", INDEX)
    loaded = {line.split(" ", 1)[0] for line in (listed or "").split("\n")}
    index = node.read(tree + "/modules.dep", INDEX) if release else None
    builtin = (node.read(tree + "/modules.builtin", INDEX) or "") if release else ""
    blocked = dict(_blocked(node))
    systems = (node.read("/proc/filesystems") or "").split()
    config = _config(node, release) if index is None else ""
    states = {}
    for name in WATCHED:
        if name in loaded:
            states[name] = "loaded"
        elif _lists(builtin, name) or node.exists(SIGNS.get(name, "/sys/module/" + name)) or name in systems:
            states[name] = "built in"
        elif name in blocked:
            states[name] = "blocked"
        elif index is not None:
            states[name] = "loadable" if _lists(index, name) else "absent"
        elif config and name in SYMBOLS and "\nCONFIG_%s=m" % SYMBOLS[name] not in config:
            states[name] = "built in" if "\nCONFIG_%s=y" % SYMBOLS[name] in config else "absent"
    return {
        "states": states,
        "release": release,
        "tree": index is not None,
        "modular": listed is not None,
        "locked": node.number("/proc/sys/kernel/modules_disabled") == 1,
        "blocked": {name: path for name, path in blocked.items() if name in WATCHED},
        "boot": dict(_at_boot(node)),
    }


def _lists(index, name):
    """Whether modules.dep or modules.builtin names a module; its file may be spelt with dashes."""
    return any("/%s.ko" % one in index for one in (name, name.replace("_", "-")))


def _config(node, release):
    """The configuration that the kernel was built with, where the distribution or the kernel itself keeps it."""
    text = node.read("/boot/config-" + release)
    packed = node.glance("/proc/config.gz", INDEX) if text is None else None
    if packed and packed.startswith(b"\x1f\x8b"):
        text = zlib.decompressobj(31).decompress(packed, INDEX).decode("utf-8", "replace")
    return "\n" + (text or "") if "CONFIG_" in (text or "") else ""


def _blocked(node):
    """Modules that modprobe is told to replace by a program that does nothing, as hardening guides do. /lib is a vendor's folder, too."""
    vendors = [] if node.target("/lib") else [(path, node.read(path) or "") for path in node.glob("/lib/modprobe.d/*.conf")]
    for path, text in vendors + fragments(node, "modprobe.d"):
        for match in re.finditer(r"(?m)^[ \t]*install[ \t]+(\S+)[ \t]+(?:/usr)?/s?bin/(?:true|false|nologin)\b", text):
            yield match.group(1).replace("-", "_"), path


def _at_boot(node):
    """What systemd-modules-load loads at boot, and which file says so."""
    words = (node.read("/proc/cmdline") or "").split()
    named = [("kernel command line", word.partition("=")[2].replace(",", "\n")) for word in words if re.match(r"(rd\.)?modules[_-]load=", word)]
    old = [] if node.exists("/usr/lib/systemd/systemd-modules-load") else [("/etc/modules", node.read("/etc/modules") or "")]
    for path, text in fragments(node, "modules-load.d") + old + named:
        for line in text.split("\n"):
            words = line.split()
            name = words[0].replace("-", "_") if words else ""
            if name in WATCHED:
                yield name, path
