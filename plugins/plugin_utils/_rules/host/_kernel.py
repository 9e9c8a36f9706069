# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The kernel: its age, its modules, its settings, its control groups."""

from __future__ import annotations

import re

from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, unknown, warn

MINIMUM = threshold("kernel_minimum", "4.18", "Kernels older than this are warned about. 4.18 is RHEL 8's, the oldest that Kubernetes and Calico still name.")
MODULES = threshold(
    "kernel_modules",
    [
        *("overlay", "nf_conntrack", "ip_set", "ip_set_hash_ip", "ip_set_hash_net", "xt_set", "ipt_rpfilter|xt_rpfilter"),
        *("xt_addrtype", "xt_comment", "xt_conntrack", "xt_mark", "xt_multiport", "ipip|vxlan"),
    ],
    "Kernel modules that must be in the kernel or loadable; one of several is enough where they are written as a|b. The default is what containers "
    "and Calico with iptables need.",
)


@rule(
    "host.kernel",
    "The kernel is old",
    severity="warning",
    needs="host.kernel",
    remedy=by_hand("install the distribution's current kernel, then reboot", reboot=True),
)
def kernel(facts, policy):
    """Kubernetes and Calico test neither kernels that are out of support nor what these lack."""
    have, least = (_numbers(facts["release"] or ""), _numbers(policy[MINIMUM]))
    if not have:
        return unknown("the kernel does not say which release it is")
    if have < least:
        return warn("kernel %s is older than %s" % (facts["release"], policy[MINIMUM]), release=facts["release"], minimum=policy[MINIMUM])
    return None


def _numbers(text):
    return [int(one) for one in re.findall(r"\d+", text)[:2]]


@rule("host.kernel_modules", "Kernel modules are missing", needs="host.modules", uses="host.virtualisation")
def kernel_modules(facts, virtualisation, policy):
    """Containers need the overlay file system, and Calico's policy needs ipset and a dozen matches of the packet filter.
    The kernel loads most of them on demand, so it is enough that they can be loaded.
    """
    states, lacking, blocked, unseen = facts["states"], [], [], []
    for wanted in policy[MODULES]:
        names = [name.replace("-", "_") for name in wanted.split("|")]
        found = [states.get(name) for name in names]
        if any(state in ("loaded", "built in") or (state == "loadable" and not facts["locked"]) for state in found):
            continue
        if "blocked" in found:
            blocked.append(names[found.index("blocked")])
        else:
            (unseen if None in found else lacking).append(wanted)
    verdicts = [
        fail(
            "%s cannot be loaded: %s tells modprobe to run another program instead" % (name, facts["blocked"].get(name)),
            remedy=by_hand("take the install line for %(module)s out of %(path)s, then: modprobe %(module)s"),
            module=name,
            path=facts["blocked"].get(name),
        )
        for name in blocked
    ]
    if lacking:
        verdicts.append(_lacking(lacking, facts))
    if unseen:
        verdicts.append(_unseen(unseen, facts, virtualisation or {}))
    return verdicts


def _lacking(names, facts):
    why = "loading modules is switched off until the next boot" if facts["locked"] else "kernel %s does not come with them" % facts["release"]
    return fail(
        "neither in the kernel nor loadable: %s; %s" % (", ".join(names), why),
        remedy=by_hand("install the rest of this kernel's modules: linux-modules-extra-%(release)s on Ubuntu, kernel-modules-extra-%(release)s on RHEL"),
        modules=names,
        release=facts["release"],
    )


def _unseen(names, facts, virtualisation):
    text = ", ".join(names)
    if facts["modular"] and not facts["tree"] and not virtualisation.get("container"):
        return fail(
            "not loaded: %s; and nothing can be loaded any more, because /lib/modules/%s is gone, as after an update of the kernel" % (text, facts["release"]),
            remedy=by_hand("reboot into the installed kernel", disruptive=True, reboot=True),
            modules=names,
            release=facts["release"],
        )
    return unknown("cannot tell whether the kernel has %s: it is not among the loaded modules, and there is no list of the others" % text, modules=names)


SETTINGS = threshold("sysctls", ["net.ipv4.ip_forward=1"], "Kernel settings that must have these values, now and after a reboot, as name=value.")


@rule(
    "host.sysctl",
    "A kernel setting is wrong",
    needs="host.sysctls",
    remedy=by_hand("echo %(name)s=%(wanted)s >>/etc/sysctl.d/99-zz-kubernetes.conf; sysctl -w %(name)s=%(wanted)s"),
)
def sysctl(settings, policy):
    """Without forwarding no packet passes between pods, and kubeadm refuses the node. A bridge whose packets bypass
    iptables lets pods on it bypass services and policies.
    """
    verdicts = []
    for name, right in wanted(policy):
        now = settings.get(name, {}).get("now")
        if now is None:
            verdicts.append(unknown("%s is not among the settings that were read" % name, name=name))
        elif now != right:
            verdicts.append(fail("%s is %s, but must be %s" % (name, now, right), name=name, now=now, wanted=right))
    for family in ("iptables", "ip6tables"):
        name = "net.bridge.bridge-nf-call-" + family
        if settings.get(name, {}).get("now") == "0":
            verdicts.append(
                warn(
                    "%s is 0: what pods on one Linux bridge send each other bypasses %s. Calico itself needs no bridge" % (name, family), name=name, wanted="1"
                )
            )
    detach = settings.get("fs.may_detach_mounts", {}).get("now")
    if detach == "0":
        verdicts.append(warn("fs.may_detach_mounts is 0: containers of this old kernel cannot always be removed", name="fs.may_detach_mounts", wanted="1"))
    return verdicts


def wanted(policy):
    """(name, value) of the settings that must be, IPv6 forwarding only for clusters with IPv6 pods."""
    found = dict(one.replace(" ", "").split("=", 1) for one in policy[SETTINGS] if "=" in one)
    if any(network.version == 6 for network in policy.networks.get("pods", [])):
        found.setdefault("net.ipv6.conf.all.forwarding", "1")
    return sorted(found.items())


MEMORY_OFF = "add cgroup_enable=memory to the kernel's command line (/boot/firmware/cmdline.txt on a Raspberry Pi), then reboot"


@rule("host.cgroup", "The kernel lacks control groups that the kubelet needs", needs="host.cgroup", uses="host.virtualisation")
def cgroup(facts, virtualisation, policy):
    """The kubelet refuses to start without the controllers for CPU, cpusets, memory and processes. Some small boards switch
    the one for memory off at boot.
    """
    if facts["version"] is None:
        return unknown("no control group file system is mounted on /sys/fs/cgroup")
    lacking = sorted({"cpu", "cpuset", "memory", "pids"} - set(facts["controllers"]))
    if lacking:
        return fail(
            "cgroup v%d lacks %s" % (facts["version"], ", ".join(lacking)),
            by_hand(
                MEMORY_OFF if lacking == ["memory"] else "install a kernel that has them, and take cgroup_disable= out of its command line; then reboot",
                reboot=True,
            ),
            version=facts["version"],
            lacking=lacking,
        )
    note = "; Kubernetes 1.35 and newer refuse v1 by default" if facts["version"] == 1 else ""
    return passed("cgroup v%d with %s%s" % (facts["version"], ", ".join(facts["controllers"]), note))
