# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Swap: may it be on, is it on, will it come back, can it be turned off?"""

from __future__ import annotations

import re

from ...module_utils import _swap
from ...module_utils._swap import MASK_WORKS_SINCE, held, tolerates, unread
from .._policy import threshold
from ._rule import by_hand, fail, passed, proven, repaired_by, rule, skip, unknown, warn

RESERVE_MIB = threshold(
    "swap_off_reserve_mib",
    _swap.RESERVE_MIB,
    "How many MiB of memory must stay available above the kubelet's eviction limit after swapoff has moved everything back.",
)
RESERVE_PERCENT = threshold(
    "swap_off_reserve_percent", _swap.RESERVE_PERCENT, "How many percent of the memory must stay available after swapoff, if that is more."
)

# How each mechanism is turned off for good; the playbook knows the same, and chooses among the ways. None of this touches the swap area.
MASK_GENERATOR = "mkdir -p /etc/systemd/system-generators && ln -s /dev/null /etc/systemd/system-generators/"
MASK_TARGET = "systemctl mask swap.target"
STOP_GPT_AUTO = MASK_GENERATOR.replace("-s ", "-sf ") + "systemd-gpt-auto-generator"
REPAIR = "repair_swap"
COMMENT_LINE = "sed -i.before-nodecare --follow-symlinks %(line)ss/^/#/ /etc/fstab && systemctl daemon-reload"
REMEDIES = {
    "fstab": repaired_by(REPAIR, COMMENT_LINE),
    "gpt_auto": repaired_by(REPAIR, MASK_TARGET),
    "gpt_auto of an old systemd": repaired_by(REPAIR, STOP_GPT_AUTO),
    "fstab, then gpt_auto": repaired_by(REPAIR, MASK_TARGET + " && " + COMMENT_LINE),
    "fstab, then gpt_auto of an old systemd": repaired_by(REPAIR, STOP_GPT_AUTO + " && " + COMMENT_LINE),
    "unit": repaired_by(REPAIR, "systemctl disable %(unit)s"),
    "vendor's unit": repaired_by(REPAIR, "systemctl mask %(unit)s"),
    "generator": repaired_by(REPAIR, MASK_GENERATOR + "%(by)s"),
    "zram_generator": repaired_by(REPAIR, MASK_GENERATOR + "zram-generator"),
    "rpi_swap": repaired_by(REPAIR, MASK_GENERATOR + "rpi-swap-generator"),
    "kernel_command_line": repaired_by(REPAIR, "take systemd.swap_extra= out of the boot loader's configuration"),
    "waagent": repaired_by(REPAIR, "sed -i 's/^ResourceDisk.EnableSwap=.*/ResourceDisk.EnableSwap=n/' /etc/waagent.conf && systemctl restart walinuxagent"),
    "NixOS": by_hand("set swapDevices = lib.mkForce [ ]; and zramSwap.enable = false; in the system's configuration, then nixos-rebuild switch"),
    "ostree": by_hand("turn it off where the machine is described: in its Ignition, Butane or MachineConfig, its kickstart, or the build of its image"),
}
SERVICE = repaired_by(REPAIR, "systemctl disable --now %(unit)s && systemctl mask %(unit)s")
IN_CONTAINER = by_hand("turn swap off on the machine that runs this container, or set the container's swap to 0")


@rule("swap.active", "Swap is on", needs="swap.active", uses=("kubelet.config", "swap.boot"), remedy=repaired_by(REPAIR, "swapoff %(device)s"))
def active(areas, config, boot, policy):
    """A kubelet with its default settings refuses to start while any swap is on, and reads that only once: at its start.

    So a node can look well for months and fail at the next restart of its kubelet. Partitions, files and zram count alike.
    """
    if not areas:
        return proven("no swap is on")
    if tolerates(config):
        return skip(tolerates(config))
    if unread(config):
        return unknown("%s is on, and %s" % (areas[0]["device"], unread(config)), **areas[0])
    where = boot and boot["container"]
    remedy = IN_CONTAINER if where else REMEDIES.get((boot or {}).get("declared_by"))
    said = "%(device)s is on (%(kind)s, %(size_kib)d KiB, in use: %(used_kib)d KiB)" + (", as %s shows it" % where if where else "")
    return [fail(said % area, remedy=remedy, **area) for area in areas]


@rule("swap.returns", "Swap will come back at the next boot", needs="swap.sources", uses=("swap.boot", "kubelet.config"))
def returns(sources, boot, config, policy):
    """Swap that is off now and back after a reboot keeps the kubelet from starting when nobody expects it.

    fstab is only one of many ways. Commenting out its last swap line even wakes systemd-gpt-auto-generator, which turns on a swap
    partition of the root disk whenever fstab names no swap. Masking swap.target is not enough before systemd 244.
    """
    alive = [source for source in sources if source["activates"] is not False]
    if not alive:
        off = ", ".join("%s by %s: %s" % (source["what"], source["by"], source["why"]) for source in sources[:3])
        return proven("nothing turns swap on at the next boot" + (" (%s)" % off if off else ""), sources=len(sources))
    if tolerates(config):
        return skip(tolerates(config))
    verdicts = [verdict(source, sources, boot or {}) for source in alive]
    if unread(config) and any(one.status == "fail" for one in verdicts):
        return unknown("%s, but %s" % (next(one.message for one in verdicts if one.status == "fail"), unread(config)))
    return verdicts


def verdict(source, sources, boot):
    """Whether one source is stopped by what stands outside it."""
    mask, version = boot.get("target_masked"), boot.get("systemd")
    evidence = {
        "source": source["mechanism"],
        **{key: source[key] for key in ("what", "device", "by", "generator", "unit", "line", "through") if source.get(key) is not None},
    }
    evidence = {**evidence, "systemd": version, "swap_target_masked": mask}
    stopped, why = held(source, boot)
    if stopped is not False:
        return passed(why, **evidence) if stopped else unknown(why, **evidence)
    if source["activates"] is None:
        return unknown("%s by %s: %s" % (source["what"], source["by"], source["why"]), **evidence)
    return fail(sentence(source, sources) + beyond_mask(source, mask, version), remedy=remedy(source, sources, boot), **evidence)


def sentence(source, sources):
    if source["mechanism"] == "gpt_auto":
        return "GPT swap partition %s on the root disk is activated by systemd-gpt-auto-generator, because fstab names no swap" % source["what"]
    heir = dormant(source, sources)
    then = "; once fstab names no swap, systemd-gpt-auto-generator activates %s instead" % heir["what"] if heir else ""
    return "%s is activated by %s%s" % (source["what"], source["by"], then)


def beyond_mask(source, mask, version):
    """Why a mask of swap.target does not help."""
    if not mask:
        return ""
    if source["through"] == "swap.target":
        return "; that swap.target is masked does not stop a device on systemd %d (before %d)" % (version, MASK_WORKS_SINCE)
    return "; that swap.target is masked does not stop it, for %s starts it" % source["through"]


def dormant(source, sources):
    """The GPT partition that waits for the last fstab line to go."""
    return next((one for one in sources if one.get("dormant")), None) if source["mechanism"] == "fstab" else None


def remedy(source, sources, boot):
    kind = source["mechanism"]
    if boot.get("declared_by"):
        kind = boot["declared_by"]
    elif dormant(source, sources):
        kind = "fstab, then gpt_auto"
    elif kind == "unit" and not source["by"].startswith("/etc/"):  # what its package enabled, only a mask turns off
        kind = "vendor's unit"
    if kind.endswith("gpt_auto") and (boot.get("systemd") or 0) < MASK_WORKS_SINCE:
        kind += " of an old systemd"
    return REMEDIES.get(kind, SERVICE)


@rule("swap.suspects", "Something else on the node knows how to turn swap on", severity="warning", needs="swap.suspects", uses="kubelet.config")
def suspects(found, config, policy):
    """A script, a service of the administrator's own or a cloud-init setting can bring swap back in a way that nobody can predict.

    cloud-init writes swap into fstab again for a new instance, after ``cloud-init clean`` or from a new image.
    """
    if not found:
        return proven("no script, service or cloud-init setting that turns swap on was found")
    if tolerates(config):
        return skip(tolerates(config))
    return [suspicion(one) for one in found]


def suspicion(one):
    if one["kind"] == "cloud_init":
        return warn("%(by)s makes swap on a new instance" % one, remedy=by_hand("set swap: {size: 0} in %(by)s, or in the instance's user data"), **one)
    return warn("%(by)s calls swapon in line %(line)s" % one, remedy=by_hand("read %(by)s near line %(line)s and take the call of swapon out"), **one)


@rule(
    "swap.kubelet_policy",
    "The kubelet's swap settings contradict each other or the node",
    severity="warning",
    needs=("kubelet.installed", "kubelet.config"),
    uses=("kubelet.cgroup", "kubelet.version", "swap.active"),
    remedy=by_hand("set failSwapOn and memorySwap.swapBehavior in /var/lib/kubelet/config.yaml, then systemctl restart kubelet"),
)
def kubelet_policy(installed, config, cgroup, version, areas, policy):
    """failSwapOn says whether the kubelet starts with swap on, swapBehavior whether pods may use it; they only make sense together.

    LimitedSwap needs cgroup v2, and a kubelet since 1.30 refuses to start with it on v1; UnlimitedSwap is gone since then.
    """
    if not installed["variant"]:
        return skip("no kubelet is installed yet; without settings it refuses to start with swap on")
    fails, behavior = config["fail_swap_on"], config["swap_behavior"]
    if fails is None or (behavior is None and not fails):
        return unknown("failSwapOn or memorySwap.swapBehavior could not be read")
    evidence = {"fail_swap_on": fails, "swap_behavior": behavior, "cgroup": cgroup, "from": config["from"]["swap_behavior"]}
    limited, numbers = behavior == "LimitedSwap", [int(number) for number in re.findall(r"\d+", version or "")[:2]]
    chosen = not str(config["from"]["fail_swap_on"]).startswith("default of")
    troubles = [
        (fail, behavior == "UnlimitedSwap" and numbers >= [1, 30], "swapBehavior UnlimitedSwap is gone since Kubernetes 1.30, this is %s" % version),
        (fail, limited and cgroup == 1, "swapBehavior LimitedSwap needs cgroup v2, this node has v1"),
        (warn, limited and fails, "swapBehavior LimitedSwap lets pods use swap, but failSwapOn is true, so the kubelet does not start with swap on"),
        (warn, limited and areas == [], "swapBehavior LimitedSwap lets pods use swap, but no swap is on"),
        (
            warn,
            behavior == "NoSwap" and not fails and areas and chosen,
            "swap is on and tolerated, but swapBehavior NoSwap keeps pods from it: only system services use it",
        ),
    ]
    found = next((says(message, **evidence) for says, holds, message in troubles if holds), None)
    return found or passed("failSwapOn is %s, swapBehavior is %s" % (str(fails).lower(), behavior), **evidence)


@rule(
    "swap.unsafe_to_disable",
    "Swap cannot be turned off safely now",
    severity="warning",
    needs=("swap.active", "swap.memory"),
    uses="kubelet.config",
    remedy=by_hand("kubectl drain %(node)s --ignore-daemonsets, then swapoff %(device)s", disruptive=True),
)
def unsafe_to_disable(areas, memory, config, policy):
    """swapoff moves everything back into memory; where that does not fit, the kernel kills swapoff first and pods starve before."""
    if not areas:
        return proven("no swap is on")
    if tolerates(config):
        return skip(tolerates(config))
    need = _swap.needed(areas, memory, config, policy[RESERVE_MIB], policy[RESERVE_PERCENT])
    if need is None:
        return unknown("the node does not say how much memory is available")
    evidence = {**need, "device": max(areas, key=lambda area: area["used_kib"])["device"]}
    if _swap.shortage(need):
        return fail(_swap.shortage(need), **evidence)
    return proven("%.0f MiB in swap fit into %.0f MiB of available memory" % (need["used_kib"] / 1024, need["available_kib"] / 1024), **evidence)
