# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Every mechanism that can turn swap on at the next boot, each under the name that its users give it.

A source is {mechanism, what, by, activates, why, through}: ``activates`` is false where the mechanism is turned off, with the
reason, and None where that cannot be told; ``through`` names the target, unit or program that pulls it in.
"""

from __future__ import annotations

import re

from ._boot import setting, swap_unit

SWAP_PARTITION = "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
NO_AUTO = 1 << 63
TAGS = {"UUID": "uuid", "LABEL": "label", "PARTUUID": "partuuid", "PARTLABEL": "partlabel", "ID": "id"}
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


def fstab(node, boot):
    """An entry counts by its third field alone; the second may be anything."""
    return [_fstab_source(node, boot, entry) for entry in entries(node.read("/etc/fstab") or "")]


def _fstab_source(node, boot, entry):
    path = udev_path(entry["what"])
    choice = [option for option in entry["options"] if option in ("auto", "noauto")]
    reasons = [
        ("its options say noauto", choice[-1:] == ["noauto"]),
        ("systemd.swap=0 is on the kernel command line", boot.switch("systemd.swap") is False and boot.since(246)),
        ("fstab=no is on the kernel command line", boot.systemd and boot.switch("fstab") is False),
        ("%s is masked" % swap_unit(path), boot.systemd and boot.masked(swap_unit(path))),
        ("systemd leaves swap alone in a container", boot.systemd and boot.container),
    ]
    why = next((reason for reason, holds in reasons if holds), None)
    through = "remote-fs.target" if "_netdev" in entry["options"] and boot.since(261) else "swap.target"
    return {
        "mechanism": "fstab",
        "what": entry["what"],
        "device": device(node, path),
        "by": "/etc/fstab line %d" % entry["line"],
        "line": entry["line"],
        "activates": why is None,
        "why": why,
        "through": through if boot.systemd else "swapon -a",
        "cloud_init": "comment=cloudconfig" in entry["options"],
    }


def entries(text):
    """The swap lines of an fstab, as getmntent of the C library reads them: fields end at blanks and tabs, and nothing else."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        fields = re.split(r"[ \t]+", line.strip(" \t"))
        if len(fields) >= 3 and not fields[0].startswith("#") and fields[2] == "swap":
            found.append({"line": number, "what": unescape(fields[0])[:300], "options": unescape(fields[3]).split(",") if len(fields) > 3 else []})
    return found


def unescape(text):
    """fstab and /proc/swaps write blanks and backslashes as octal numbers."""
    return re.sub(r"\\(040|011|012|134|043|\\)", lambda match: "\\" if match.group(1) == "\\" else chr(int(match.group(1), 8)), text)


def udev_path(what):
    """The path that systemd makes of a first field; the value of a tag may be quoted, and udev escapes all but plain characters."""
    tag, sign, value = what.partition("=")
    if not sign or tag not in TAGS:
        return what
    quoted = re.match(r"([\"'])(.*)\1$", value)
    plain = re.sub(r"[^A-Za-z0-9#+.:=@_\u0080-\U0010ffff-]", lambda match: "\\x%02x" % ord(match.group()), quoted.group(2) if quoted else value)
    return "/dev/disk/by-%s/%s" % (TAGS[tag], plain)


def device(node, path):
    """The device behind a name that udev gave it; the path itself where there is none."""
    target = node.target(path) if path.startswith(("/dev/disk/", "/dev/mapper/")) else None
    return "/dev/" + target.rsplit("/", 1)[-1] if target else path


def gpt_auto(node, boot):
    """systemd-gpt-auto-generator turns on a swap partition of the root disk, but only while fstab names no swap."""
    if not boot.systemd:
        return []
    program, mask = boot.generator("systemd-gpt-auto-generator")
    if not program:
        return []
    made = [one for one in boot.generated() if one["maker"] == "systemd-gpt-auto-generator"]
    reasons = [
        ("its generator is masked by %s" % mask, mask),
        ("systemd.gpt_auto=0 is on the kernel command line", boot.switch("systemd.gpt-auto") is False),
        ("systemd.swap=0 is on the kernel command line", boot.switch("systemd.swap") is False and boot.since(254)),
        ("systemd leaves swap alone in a container", boot.container),
        ("it stands down while /etc/fstab names any swap", entries(node.read("/etc/fstab") or "")),
    ]
    off = next((reason for reason, holds in reasons if holds), None)
    found = []
    for name, flags in swap_partitions(node):
        if flags is None:
            if not off and not made:
                node.problem("/dev/" + name, "udev does not know its partition type", "error")
            continue
        unit = next((one["unit"] for one in made if one["what"] == "/dev/" + name), None) or (made[0]["unit"] if len(made) == 1 else swap_unit("/dev/" + name))
        own = "the partition has the no-auto attribute (bit 63)" if flags & NO_AUTO else "%s is masked" % unit if boot.masked(unit) else None
        found.append(_gpt_source(program, "/dev/" + name, own or off, unit, dormant=not own and off == reasons[-1][0]))
    if not found:  # what it made of this boot says it as well, where udev's data are not there
        found = [
            _gpt_source(program, one["what"] or one["unit"], off or ("%s is masked" % one["unit"] if boot.masked(one["unit"]) else None), one["unit"])
            for one in made
        ]
    return found


def _gpt_source(program, what, why, unit, dormant=False):
    return {
        "mechanism": "gpt_auto",
        "what": what,
        "device": what,
        "by": "systemd-gpt-auto-generator",
        "generator": program,
        "unit": unit,
        "activates": why is None,
        "why": why,
        "dormant": dormant,
        "through": "swap.target",
    }


def swap_partitions(node):
    """(name, attributes) of the GPT swap partitions on the disk that holds the root file system, as udev knows them; None where it does not."""
    disk = root_disk(node)
    found = []
    for name in node.list(disk) if disk else []:
        if node.exists("%s/%s/partition" % (disk, name)):
            said = udev(node, (node.read("%s/%s/dev" % (disk, name)) or "").strip())
            if not said:
                found.append((name, None))
            elif said.get("ID_PART_ENTRY_SCHEME", "gpt") == "gpt" and said.get("ID_PART_ENTRY_TYPE", "").lower() == SWAP_PARTITION:
                flags = said.get("ID_PART_ENTRY_FLAGS", "0")
                found.append((name, int(flags, 16) if re.match(r"(0x)?[0-9a-fA-F]{1,16}$", flags) else 0))
    return found


def root_disk(node):
    """The directory in /sys of the one disk below /; None where there is none, or several."""
    number = None
    for line in node.lines("/proc/self/mountinfo"):
        fields = line.split(" ")
        if len(fields) > 6 and fields[4] == "/" and " - " in line:
            source = line.split(" - ", 1)[1].split(" ")[1:2]
            number = fields[2] if not fields[2].startswith("0:") else block_number(node, source[0] if source else "")
    for _step in range(8):  # a mapping on a mapping on a partition
        link = node.target("/sys/dev/block/" + number) if number else None
        if not link:
            return None
        path = "/sys/dev/block/" + link
        slaves = node.list(path + "/slaves")
        if not slaves:
            return path.rsplit("/", 1)[0] if node.exists(path + "/partition") else path
        number = (node.read("%s/slaves/%s/dev" % (path, slaves[0])) or "").strip() if len(slaves) == 1 else None
    return None


def block_number(node, source):
    """btrfs hides its device behind a number of its own; several devices are more than the generator looks at."""
    name = device(node, source).rsplit("/", 1)[-1] if source.startswith("/dev/") else ""
    for fs in node.list("/sys/fs/btrfs") if name else []:
        members = node.list("/sys/fs/btrfs/%s/devices" % fs)
        if name in members and len(members) > 1:
            return None
    return (node.read("/sys/class/block/%s/dev" % name) or "").strip() if name else None


def udev(node, number):
    """What udev knows about a block device."""
    return dict(line[2:].split("=", 1) for line in node.lines("/run/udev/data/b" + number) if line.startswith("E:") and "=" in line)


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
            why = "its generator is masked by %s" % mask if mask else None if one["wanted_by"] else "nothing wants it"
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
        total = re.search(r"MemTotal:\s+(\d+)", node.read("/proc/meminfo") or "")
        reasons = [
            ("its generator is masked by %s" % mask, mask),
            ("systemd.zram=0 is on the kernel command line", boot.switch("systemd.zram") is False),
            ("systemd leaves swap alone in a container", boot.container),
            ("it is mounted, not swap", values.get("mount-point") or values.get("fs-type", "swap") not in ("", "swap")),
            ("its size is 0", re.match(r"0+$", values.get("zram-size", ""))),
            ("the node has more memory than its limit of %s MiB" % limit, limit.isdigit() and total and int(total.group(1)) / 1024 > int(limit)),
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
