# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who else writes packet filter rules, and whether they are written in two places at once."""

from __future__ import annotations

import re

OURS = re.compile("KUBE-|cali-")


def firewalls(node):
    """Firewall managers that run. ufw's unit is active even where ufw is off; its own file tells."""
    running = [name for name, unit in node.units("firewalld.service", "nftables.service").items() if unit.get("ActiveState") == "active"]
    if re.search(r"(?mi)^\s*ENABLED\s*=\s*yes", node.read("/etc/ufw/ufw.conf") or ""):
        running.append("ufw.service")
    return sorted(running)


def iptables(node):
    """Which iptables is the default here and, only where the older kind's tables are in the kernel, what both kinds hold."""
    said = re.match(r"iptables v?([0-9][0-9.]{0,20})( \(nf_tables\))?", node.run(["iptables", "--version"]).out)
    facts = {"version": said.group(1) if said else None, "default": ("nft" if said.group(2) else "legacy") if said else None}
    facts["legacy_tables"] = (node.read("/proc/net/ip_tables_names") or "").split()[:10]
    if facts["legacy_tables"]:
        legacy = node.run(["iptables-legacy-save"])
        chains = node.run(["nft", "list", "chains"])
        if legacy.ok:
            facts["legacy_rules"] = len(re.findall("(?m)^-A ", legacy.out))
            facts["legacy_ours"] = bool(OURS.search(legacy.out))
        if chains.ok:
            facts["nft_tables"] = sorted(set(re.findall(r"(?m)^table ip ((?:filter|nat|mangle|raw))\b", chains.out)))
            facts["nft_ours"] = bool(OURS.search(chains.out))
    return facts
