# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Felix's packet filter rules: in which of the kernel's places they are, and whom they have turned away."""

from __future__ import annotations

import re

# Felix names its rules; the word before is what it does with them.
FOREIGN = re.compile(r"\w+ (IPIP|(?:IPv[46] )?VXLAN) packets from non-\w+ hosts")
RULE = re.compile(r"(?m)^\[(\d{1,20}):\d+\] -A (\S+) (.*)$")
COUNTED = re.compile(r"counter packets (\d{1,20})")
LEGACY_TABLES = "/proc/net/ip_tables_names"


def filters(node):
    """{legacy: …, nft: …, tables: …} with {state, calico, kube, foreign} for each of the places that are in use.

    ``calico`` and ``kube`` count the chains of Felix and of kube-proxy and the kubelet, ``foreign`` the packets that came
    through a tunnel from hosts that Calico does not know: {"IPIP": 12}. ``tables`` is where Felix uses nftables by itself.
    Nothing is asked that would make the kernel load a module.
    """
    found, tables = {}, node.read(LEGACY_TABLES)
    if tables is None and node.exists(LEGACY_TABLES):
        found["legacy"] = {"state": "denied", "calico": 0, "kube": 0, "foreign": {}}
    elif "filter" in (tables or "").split():
        found["legacy"] = saved(node, "iptables-legacy-save", ("filter", "mangle"))
    if node.exists("/sys/module/nf_tables"):
        found["nft"] = saved(node, "iptables-nft-save", ("filter", "mangle"))
        if not any((one or {}).get("calico") for one in found.values()):
            found["tables"] = listed(node)
    return {name: one for name, one in found.items() if one}


def saved(node, program, tables):
    found = {"state": "answered", "calico": 0, "kube": 0, "foreign": {}}
    for table in tables:
        answer = node.run([program, "-c", "-t", table])
        if not answer.ok:
            if answer.state == "answered":
                node.problem(program, (answer.err.strip().splitlines() or ["ended with code %s" % answer.code])[0][:200], "error")
                return {**found, "state": "refused"}
            return {**found, "state": answer.state}
        found["calico"] += len(re.findall(r"(?m)^:cali-", answer.out))
        found["kube"] += len(re.findall(r"(?m)^:KUBE-", answer.out))
        count(found["foreign"], ((text, packets) for packets, chain, text in RULE.findall(answer.out) if chain.startswith("cali-")))
    return found


def listed(node):
    """Felix's own tables; None where there are none."""
    answer = node.run(["nft", "list", "tables"])
    if not re.search(r"(?m)^table ip calico$", answer.out):
        return None
    answer = node.run(["nft", "list", "table", "ip", "calico"])
    found = {"state": answer.state, "calico": len(re.findall(r"(?m)^\s*chain ", answer.out)), "kube": 0, "foreign": {}}
    rows = ((line, COUNTED.search(line)) for line in answer.out.split("\n") if "packets from non-" in line)
    count(found["foreign"], ((line, counted.group(1)) for line, counted in rows if counted))
    return found


def count(found, rows):
    for text, packets in rows:
        match = FOREIGN.search(text)
        if match:
            found[match.group(1)] = found.get(match.group(1), 0) + int(packets)


def ipsets(node):
    """The names of Felix's sets; None where there is no program to ask, empty where the kernel has none."""
    if not node.exists("/sys/module/ip_set"):
        return []
    answer = node.run(["ipset", "list", "-n"])
    return sorted(name for name in answer.out.split() if name.startswith("cali"))[:50] if answer.ok else None
