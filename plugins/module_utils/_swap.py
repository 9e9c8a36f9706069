# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the rules about swap and its repair both have to know, so that one never believes what the other denies."""

from __future__ import annotations

import re

MASK_WORKS_SINCE = 244  # before, a swap unit on a device is also wanted by that device's unit
RESERVE_MIB, RESERVE_PERCENT = 500, 10
KIB = {"": 1 / 1024, "K": 1000 / 1024, "M": 1e6 / 1024, "G": 1e9 / 1024, "Ki": 1, "Mi": 1024, "Gi": 1024**2}


def tolerates(config):
    """Why swap may be on, where the kubelet has been told so."""
    if config and config["fail_swap_on"] is False:
        return "the kubelet is told to tolerate swap (failSwapOn is false: %s)" % config["from"]["fail_swap_on"]
    return None


def unread(config):
    """Why nobody can say whether swap may be on."""
    return "the kubelet's failSwapOn could not be read" if config is None or config["fail_swap_on"] is None else None


def held(source, boot):
    """(True, False, or None where that cannot be told; why): whether a source is stopped by what stands outside of it."""
    mask, version = boot.get("target_masked"), boot.get("systemd")
    if source["through"] != "swap.target":
        return False, None
    if boot.get("container"):
        return True, "systemd leaves swap alone in a container"
    if not mask:
        return False, None
    on_device = (source.get("device") or source["what"]).startswith("/dev/")
    if not on_device or (version or 0) >= MASK_WORKS_SINCE:
        return True, "%s would be activated by %s, but swap.target is masked" % (source["what"], source["by"])
    if version is None:
        return None, "swap.target is masked, but the version of systemd is not known; before %d that does not stop a device" % MASK_WORKS_SINCE
    return False, None


def returning(sources, boot):
    """The sources that will turn swap on at the next boot, or may."""
    return [source for source in sources or [] if source["activates"] is not False and held(source, boot or {})[0] is not True]


def needed(areas, memory, config, reserve_mib=RESERVE_MIB, reserve_percent=RESERVE_PERCENT):
    """What swapoff has to move back, and what it may take, all in KiB; None where the node does not say how much memory it has."""
    if "available_kib" not in memory or "total_kib" not in memory:
        return None
    reserve = max(reserve_mib * 1024 + eviction(config, memory["total_kib"]), memory["total_kib"] * reserve_percent / 100)
    return {"used_kib": sum(area["used_kib"] for area in areas), "available_kib": memory["available_kib"], "reserve_kib": int(reserve)}


def shortage(need):
    """Why what is in swap cannot be moved back; None where it can."""
    if not need["used_kib"] or need["available_kib"] - need["used_kib"] >= need["reserve_kib"]:
        return None
    numbers = tuple(need[name] / 1024 for name in ("used_kib", "available_kib", "reserve_kib"))
    return "%.0f MiB in swap do not fit into %.0f MiB of available memory with %.0f MiB to spare" % numbers


def eviction(config, total_kib):
    """The kubelet's hard eviction limit for memory in KiB: a quantity or a percentage."""
    match = re.match(r"(\d+(?:\.\d+)?)(%|[KMG]i?|)$", str(config["eviction_memory"] if config else "100Mi"))
    if not match:
        return 100 * 1024
    number, unit = float(match.group(1)), match.group(2)
    return total_kib * number / 100 if unit == "%" else number * KIB[unit]
