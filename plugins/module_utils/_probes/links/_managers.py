# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. NetworkManager and systemd-networkd: do they run, and which links are they told to leave alone?"""

from __future__ import annotations

import re

MOST = 60
NETWORKD = ("/etc/systemd/network", "/run/systemd/network", "/usr/local/lib/systemd/network", "/usr/lib/systemd/network")


def managers(node):
    found = {name: _state(node, name) for name in ("NetworkManager.service", "systemd-networkd.service", "nm-cloud-setup.service", "nm-cloud-setup.timer")}
    running = {name: found[name] in ("active", "reloading") for name in found}
    return {
        "networkmanager": {"state": found["NetworkManager.service"], **(network_manager(node) if running["NetworkManager.service"] else {})},
        "networkd": {"state": found["systemd-networkd.service"], **(networkd(node) if running["systemd-networkd.service"] else {})},
        "cloud_setup": sorted(name for name, state in found.items() if name.startswith("nm-cloud") and state != "absent"),
    }


def _state(node, name):
    unit = node.unit(name)
    if name.startswith("nm-cloud"):
        return unit.get("UnitFileState") if unit.get("UnitFileState") == "enabled" or unit.get("ActiveState") == "active" else "absent"
    return unit.get("ActiveState") or "absent"


def network_manager(node):
    """Its configuration as it reads it: packages' files, then those of this boot, the main file, the administrator's; a later value wins."""
    listed, sections, where = [], {}, None
    for path in _network_manager_files(node):
        for section, key, value in settings(node.read(path) or ""):
            if section == "keyfile" and key.rstrip("+-") == "unmanaged-devices":
                devices = [one.strip() for one in re.split(r"[;,]", value) if one.strip()]
                if key.endswith("-"):
                    listed = [one for one in listed if one not in devices]
                else:
                    listed = (listed if key.endswith("+") else []) + devices
                    where = path
            elif section.startswith("device") and key in ("match-device", "managed"):
                sections.setdefault(section, {})[key] = value
    rules = (node.read(base + "/udev/rules.d/85-nm-unmanaged.rules") or "" for base in ("/usr/lib", "/lib"))
    return {
        "unmanaged": listed[:MOST],
        "said_in": where,
        "devices": [one for one in list(sections.values())[:MOST] if len(one) == 2],
        "leaves_veth": any("veth" in text and "NM_UNMANAGED" in text for text in rules),
    }


def _network_manager_files(node):
    """A file in /etc hides one of the same name in /run, and that one in /usr/lib."""
    base = "/NetworkManager/conf.d"
    names = {where: [one for one in node.list(where + base) if one.endswith(".conf")] for where in ("/usr/lib", "/run", "/etc")}
    files = ["/usr/lib" + base + "/" + one for one in names["/usr/lib"] if one not in names["/run"] + names["/etc"]]
    files += ["/run" + base + "/" + one for one in names["/run"] if one not in names["/etc"]]
    return files + ["/etc/NetworkManager/NetworkManager.conf"] + ["/etc" + base + "/" + one for one in names["/etc"]]


def networkd(node):
    """The .network files in the order in which the first that matches a link wins, with what they match; drop-ins included."""
    where = {}
    for directory in reversed(NETWORKD):
        where.update({name: directory + "/" + name for name in node.list(directory) if name.endswith(".network")})
    networks = []
    for name in sorted(where)[:MOST]:
        text = [node.read(where[name]) or ""] if node.target(where[name]) != "/dev/null" else []
        text += [node.read(path) or "" for directory in reversed(NETWORKD) for path in node.glob("%s/%s.d/*.conf" % (directory, name))]
        match, unmanaged = {}, False
        for section, key, value in settings("\n".join(text)):
            if section == "Match":
                match[key] = " ".join(filter(None, (match.get(key), value))) if value else ""
            elif section == "Link" and key == "Unmanaged":
                unmanaged = value.lower() in ("yes", "true", "1", "on")
        if text:
            networks.append({"file": where[name], "match": match, **({"unmanaged": True} if unmanaged else {})})
    return {"networks": networks}


def settings(text):
    """(section, key, value) of an ini-like file as both programs write it; comments and nonsense are passed over."""
    section, found = "", []
    for line in map(str.strip, re.sub(r"\\\n", " ", text).splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif "=" in line and not line.startswith(("#", ";")):
            key, value = line.split("=", 1)
            found.append((section, key.strip(), value.strip()[:2000]))
    return found
