# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What of the node's present state will be gone after the next boot."""

from __future__ import annotations

from .._rule import by_hand, fail, rule, warn
from ._kernel import wanted
from ._names import UNNAMED


@rule(
    "host.survives_reboot",
    "The node will not be the same after a reboot",
    needs=("host.sysctls", "host.modules", "host.units", "host.name", "host.security", "host.role"),
)
def survives_reboot(settings, modules, units, name, security, role, policy):
    """What was set by hand works until the node reboots, and then fails when nobody expects it."""
    return [
        *_settings_later(settings, units, policy),
        *_modules_later(settings, modules),
        *_units_later(units),
        *_name_later(name, role),
        *_selinux_later(security),
    ]


def _settings_later(settings, units, policy):
    for name, right in wanted(policy):
        one = settings.get(name, {})
        if one.get("now") != right or one.get("boot") == right:
            continue  # what is wrong already is host.sysctl's
        if name.endswith("forward") and "boot" not in one and any(unit.startswith(("k3s", "rke2")) for unit in units):
            continue  # these set it themselves
        remedy = by_hand("echo %(line)s >>/etc/sysctl.d/99-zz-kubernetes.conf")
        evidence = {"name": name, "wanted": right, "line": "%s = %s" % (name, right)}
        if "boot" in one:
            undo = by_hand("write %(line)s in place of the other value: %(by)s")
            yield fail(
                "%s is %s now, but %s sets it to %s at the next boot" % (name, right, one["by"], one["boot"]), undo, boot=one["boot"], by=one["by"], **evidence
            )
        elif one.get("ignored") == right:
            yield warn("%s = %s stands in /etc/sysctl.conf alone, which nothing reads at boot on this system" % (name, right), remedy, **evidence)
        else:
            yield warn("%s is %s now, but no file under sysctl.d sets it at the next boot" % (name, right), remedy, **evidence)


def _modules_later(settings, modules):
    bridge = [one for name, one in settings.items() if name.startswith("net.bridge.") and one.get("boot") == "1"]
    if bridge and modules["states"].get("br_netfilter") != "built in" and "br_netfilter" not in modules["boot"]:
        yield warn(
            "%s sets net.bridge.* at boot, but these exist only once br_netfilter is loaded, and no file under modules-load.d names it" % bridge[0]["by"],
            by_hand("echo br_netfilter >/etc/modules-load.d/kubernetes.conf"),
            module="br_netfilter",
            by=bridge[0]["by"],
        )


STARTS = ("enabled", "static", "alias", "generated", "linked", "indirect", "")


def _units_later(units):
    """A unit that is off at boot counts only where nothing else that starts pulls it in."""
    for name, unit in units.items():
        if name.endswith(".socket") or unit["enabled"] in STARTS or (name == "docker.service" and "cri-docker.service" not in units):
            continue
        socket = units.get(name.replace(".service", ".socket"), {})
        if socket.get("enabled") == "enabled" or any(_starts(units, other) for other in unit["wanted_by"]):
            continue
        evidence = {"unit": name, "enabled": unit["enabled"]}
        if unit["active"]:
            yield fail("%s runs, but is %s: it will not start at the next boot" % (name, unit["enabled"]), by_hand("systemctl enable %(unit)s"), **evidence)
        elif name == "kubelet.service":
            yield warn("%s is %s: it will not start at the next boot" % (name, unit["enabled"]), by_hand("systemctl enable %(unit)s"), **evidence)


def _starts(units, name):
    return name not in units or units[name]["enabled"] in STARTS


def _name_later(name, role):
    now, static = name["hostname"], name["static"]
    # systemd keeps a transient name where the static one is missing or localhost.
    if now and static and static.lower() != now.lower() and not UNNAMED.match(static):
        speak = fail if role["joined"] else warn
        yield speak(
            "the hostname is %s now, but /etc/hostname makes it %s at the next boot: the kubelet would look for another node" % (now, static),
            by_hand("hostnamectl set-hostname %(hostname)s"),
            hostname=now,
            static=static,
        )


def _selinux_later(security):
    if security["selinux"] == "permissive" and security["selinux_boot"] == "enforcing":
        yield warn(
            "SELinux is permissive now, but /etc/selinux/config makes it enforcing at the next boot",
            by_hand("either test with setenforce 1 now, or write SELINUX=permissive into /etc/selinux/config"),
            selinux="permissive",
            selinux_boot="enforcing",
        )
