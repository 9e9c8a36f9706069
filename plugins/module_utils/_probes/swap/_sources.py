# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Every mechanism that can turn swap on at the next boot, each under the name that its users give it.

A source is {mechanism, what, by, activates, why, through}: ``activates`` is false where the mechanism is turned off, with the
reason, and None where that cannot be told; ``through`` names the target, unit or program that pulls it in.
"""

from __future__ import annotations

import re

from ..._node import whole
from ._boot import setting
from ._fstab import device, fstab, udev_path
from ._gpt import gpt_auto

KNOWN_MAKERS = ("systemd-fstab-generator", "systemd-gpt-auto-generator", "zram-generator")

# Services that make swap by themselves. What each is called by its users, its unit, and what it does.
SERVICES = (
    ("zram-tools", "zramswap.service", "zram swap"),
    ("zram-config", "zram-config.service", "zram swap"),
    ("zram-swap", "zram-swap.service", "zram swap"),
    ("zram-init", "zram-init.service", "zram swap"),
    ("armbian", "armbian-zram-config.service", "zram swap"),
    ("systemd-swap", "systemd-swap.service", "swap files, zram and swap partitions that it finds"),
    ("swapspace", "swapspace.service", "swap files, later, when memory gets short"),
    ("dphys-swapfile", "dphys-swapfile.service", "a swap file"),
)


def swap_units(node, boot):
    """Unit files of their own, and what wants them."""
    found = []
    for name in sorted({name for names in boot.units.values() for name in names if name.endswith(".swap")}):
        path, mask, wants = boot.unit(name), boot.masked(name), boot.wants.get(name, [])
        what = setting(node.read(path, 1 << 14) or "", "What") if not mask else None
        if mask or what:
            targets = {directory.rsplit("/", 1)[-1].rsplit(".", 1)[0] for directory in wants}
            why = "it is masked by %s" % mask if mask else None if wants else "nothing wants it"
            found.append(
                {
                    "mechanism": "unit",
                    "what": what or name,
                    "device": device(node, udev_path(what)) if what else None,
                    "by": path,
                    "unit": name,
                    "activates": why is None,
                    "why": why,
                    "through": ", ".join(sorted(targets)) or None,
                }
            )
    return found


def generated_units(node, boot):
    """Swap units that a generator unknown here made of this boot; it will make them again."""
    found = []
    for one in boot.generated():
        if one["maker"] and one["maker"].rsplit("/", 1)[-1] not in KNOWN_MAKERS and not one["maker"].endswith("rpi-swap-generator"):
            program, mask = boot.generator(one["maker"].rsplit("/", 1)[-1])
            reasons = [("its generator is masked by %s" % mask, mask), ("%s is masked" % one["unit"], boot.masked(one["unit"]))]
            why = next((reason for reason, holds in reasons if holds), None if one["wanted_by"] else "nothing wants it")
            found.append(_by_generator("generator", one["what"] or one["unit"], program or one["maker"], why, one["unit"]))
    return found


def _by_generator(mechanism, what, program, why, unit=None):
    return {
        "mechanism": mechanism,
        "what": what,
        "device": what if what.startswith("/") else None,
        "by": program.rsplit("/", 1)[-1],
        "generator": program,
        "unit": unit,
        "activates": why is None,
        "why": why,
        "through": "swap.target",
    }


def zram_generator(node, boot):
    """One zram device for each section of its files. An empty file in /etc masks the vendor's, but not the vendor's drop-ins."""
    program, mask = boot.generator("zram-generator") if boot.systemd else (None, None)
    if not program:
        return []
    found = []
    for name, values in zram_sections(node).items():
        unit = "dev-%s.swap" % name
        limit = values.get("host-memory-limit", values.get("memory-limit", "none"))
        total = re.search(r"MemTotal: +(\d{1,15}) kB", node.read("/proc/meminfo") or "")
        reasons = [
            ("its generator is masked by %s" % mask, mask),
            ("systemd.zram=0 is on the kernel command line", boot.switch("systemd.zram") is False),
            ("systemd leaves swap alone in a container", boot.container),
            ("it is mounted, not swap", values.get("mount-point") or values.get("fs-type", "swap") not in ("", "swap")),
            ("its size is 0", re.match(r"0+$", values.get("zram-size", ""))),
            ("the node has more memory than its limit of %s MiB" % limit, whole(limit) is not None and total and int(total.group(1)) / 1024 > whole(limit)),
            ("%s is masked" % unit, boot.masked(unit)),
            ("systemd-zram-setup@%s.service is masked" % name, boot.masked("systemd-zram-setup@%s.service" % name)),
        ]
        why = next((reason for reason, holds in reasons if holds), None)
        found.append(_by_generator("zram_generator", "/dev/" + name, program, why, unit))
    return found


def zram_sections(node):
    """{device: {key: value}} of the main file that wins and of all drop-ins, as they will be after the next boot."""
    directories = ("/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd")
    main = next((path for path in (directory + "/zram-generator.conf" for directory in directories) if node.exists(path)), None)
    drop_ins = {}
    for directory in reversed(directories):
        drop_ins.update({path.rsplit("/", 1)[-1]: path for path in node.glob(directory + "/zram-generator.conf.d/*.conf")})
    sections = {}
    for path in ([main] if main else []) + [drop_ins[name] for name in sorted(drop_ins)]:
        if node.target(path) != "/dev/null":
            for name, values in ini(node.read(path, 1 << 16) or "").items():
                if re.match(r"zram\d{1,4}$", name):
                    sections.setdefault(name, {}).update(values)
    return sections


def ini(text):
    """{section: {key: value}}"""
    found, section = {}, {}
    for line in map(str.strip, text.split("\n")):
        if line.startswith("[") and line.endswith("]"):
            section = found.setdefault(line[1:-1], {})
        elif "=" in line and line[0] not in "#;":
            key, value = line.split("=", 1)
            section[key.strip()] = value.strip()
    return found


def rpi_swap(node, boot):
    """Raspberry Pi OS makes zram, a file or both by a generator, unless its mechanism is none."""
    program, mask = boot.generator("rpi-swap-generator") if boot.systemd else (None, None)
    if not program:
        return []
    mechanism = "auto"
    for path in ["/etc/rpi/swap.conf"] + node.glob("/etc/rpi/swap.conf.d/*.conf"):
        mechanism = ini(node.read(path, 1 << 16) or "").get("Main", {}).get("Mechanism", mechanism)
    reasons = [("its generator is masked by %s" % mask, mask), ("Mechanism=none in /etc/rpi/swap.conf", mechanism == "none")]
    why = next((reason for reason, holds in reasons if holds), None)
    return [_by_generator("rpi_swap", "swap by %s" % mechanism, program, why)]


def services(node, boot):
    """Services that call swapon themselves: masking swap.target does not stop them."""
    found = []
    for mechanism, unit, makes in SERVICES:
        path, wants, mask = boot.unit(unit), boot.wants.get(unit, []), boot.masked(unit) if boot.systemd else None
        script = unit.rsplit(".", 1)[0]
        if not path and node.exists("/etc/init.d/" + script):
            path, wants = "/etc/init.d/" + script, node.glob("/etc/rc[2345S].d/S[0-9][0-9]" + script)
        if path:
            activates, why = (False, "masked by %s" % mask) if mask else (True, None) if wants else (False, "nothing wants it")
            if activates and mechanism == "dphys-swapfile" and re.search(r"^CONF_SWAPSIZE=[\"']?0+[\"']?\s*$", node.read("/etc/dphys-swapfile") or "", re.M):
                activates, why = None, "it is enabled with CONF_SWAPSIZE=0, which not every version takes for none"
            found.append({"mechanism": mechanism, "what": makes, "device": None, "by": unit, "unit": unit, "activates": activates, "why": why, "through": unit})
    return found


def kernel_command_line(node, boot):
    """systemd.swap-extra= names swap as an fstab line would; the name is followed by options behind a colon."""
    found = []
    for key, value in boot.options if boot.systemd else []:
        if key == "systemd.swap-extra" and value:
            what, _sign, said = value.partition(":")
            given = said.split(",")
            why = (
                "its options say noauto"
                if "noauto" in given
                else "systemd.swap=0 is on the kernel command line"
                if boot.switch("systemd.swap") is False
                else None
            )
            by = "systemd.swap_extra= on the kernel command line"
            found.append(
                {
                    "mechanism": "kernel_command_line",
                    "what": what[:300],
                    "device": device(node, udev_path(what)),
                    "by": by,
                    "activates": why is None,
                    "why": why,
                    "through": "swap.target",
                }
            )
    return found


def waagent(node, boot):
    """The Azure agent makes a swap file on the resource disk and turns it on itself, at every start of the agent."""
    said = dict(re.findall(r"^[ \t]*ResourceDisk\.(\w+)[ \t]*=[ \t]*(\S+)", node.read("/etc/waagent.conf") or "", re.M))
    if said.get("EnableSwap", "n").lower() != "y":
        return []
    reasons = [("ResourceDisk.Format is not y", said.get("Format", "n").lower() != "y"), ("ResourceDisk.SwapSizeMB is 0", said.get("SwapSizeMB", "0") == "0")]
    why = next((reason for reason, holds in reasons if holds), None)
    return [
        {
            "mechanism": "waagent",
            "what": "a swap file of %s MiB on the resource disk" % said.get("SwapSizeMB", "0")[:12],
            "device": None,
            "by": "/etc/waagent.conf",
            "activates": why is None,
            "why": why,
            "through": "waagent",
        }
    ]


def crypttab(node, boot):
    """The option swap maps and formats a device; it takes an fstab line, a unit or gpt-auto to turn it on."""
    found = []
    for number, line in enumerate((node.read("/etc/crypttab") or "").split("\n"), 1):
        fields = line.split()
        if len(fields) > 3 and not fields[0].startswith("#") and "swap" in fields[3].split(","):
            path = "/dev/mapper/" + fields[0][:200]
            by = "/etc/crypttab line %d" % number
            found.append(
                {
                    "mechanism": "crypttab",
                    "what": path,
                    "device": path,
                    "by": by,
                    "activates": False,
                    "why": "crypttab only maps it; nothing here turns it on",
                    "through": None,
                }
            )
    return found


MECHANISMS = (fstab, gpt_auto, swap_units, generated_units, zram_generator, rpi_swap, services, kernel_command_line, waagent, crypttab)
