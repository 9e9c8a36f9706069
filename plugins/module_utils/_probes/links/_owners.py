# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whose bridges they are: docker's, podman's, libvirt's, or an administrator's."""

from __future__ import annotations

import re

from ..runtime._daemons import sleeps

CONFIGURATION = (
    "/etc/network/interfaces",
    "/etc/network/interfaces.d/*",
    "/etc/netplan/*.yaml",
    "/run/netplan/*.yaml",
    "/etc/systemd/network/*.netdev",
    "/run/systemd/network/*.netdev",
    "/usr/lib/systemd/network/*.netdev",
    "/etc/NetworkManager/system-connections/*",
    "/run/NetworkManager/system-connections/*",
    "/etc/sysconfig/network-scripts/ifcfg-*",
    "/etc/sysconfig/network/ifcfg-*",
)
GENERATED = re.compile(r"(?m)^nm-generated=true$")  # NetworkManager's own note of a link that somebody else has made
MOST = 40


def bridges(node):
    return [path.split("/")[4] for path in node.glob("/sys/class/net/*/bridge")]


def declared(node):
    """Which bridges a configuration file of the system names, and which file."""
    wanted, found = bridges(node), {}
    if not wanted:
        return found
    for path in [path for pattern in CONFIGURATION for path in node.glob(pattern)]:
        text = node.read(path) or ""
        if GENERATED.search(text):
            continue
        words = set(re.split(r"[\s=:\"',\[\]{}]+", re.sub(r"(?m)^\s*[#;].*", "", text + " " + _named(path))))
        for name in wanted:
            if name in words:
                found.setdefault(name, path)
    return found


def _named(path):
    """ifcfg-br0 says by its own name what it configures."""
    return path.rpartition("ifcfg-")[2] if "ifcfg-" in path else ""


def docker(node):
    """Docker's networks and who is on them. A dockerd that its socket would have to start is not asked: that would make its bridge."""
    if not bridges(node) or not node.exists("/run/docker.sock"):
        return {"asked": False}
    if sleeps(node, "/run/docker.sock"):
        return {"asked": False, "why": "docker is not running"}
    networks = node.http("/run/docker.sock", "/networks")
    running = node.http("/run/docker.sock", "/containers/json") if networks.ok else networks
    if not networks.ok:
        return {"asked": True, "answered": False, "seconds": networks.seconds}
    users = {}
    for container in tables(running.json()):
        named = (container.get("Names") or ["?"])[0].lstrip("/")[:64]
        for network in ((container.get("NetworkSettings") or {}).get("Networks") or {}).values():
            users.setdefault((network or {}).get("NetworkID"), []).append(named)
    return {"asked": True, "answered": True, "networks": [_network(one, users.get(one.get("Id"), [])) for one in bridged(tables(networks.json()))[:MOST]]}


def tables(answer):
    return [one for one in (answer if isinstance(answer, list) else []) if isinstance(one, dict)]


def bridged(networks):
    return [one for one in networks if one.get("Driver") == "bridge"]


def bridge_of(network):
    """The link of a docker network: named by an option, else by the network's id."""
    return str((network.get("Options") or {}).get("com.docker.network.bridge.name") or "br-" + str(network.get("Id"))[:12])


def _network(network, users):
    return {
        "name": str(network.get("Name"))[:128],
        "bridge": bridge_of(network),
        "subnets": [str(one.get("Subnet")) for one in ((network.get("IPAM") or {}).get("Config") or [])][:4],
        "containers": sorted(users)[:10],
        "container_count": len(users),
    }


def podman(node):
    """The networks that podman keeps, from its files; a podman that is not running still has them."""
    networks = []
    for path in node.glob("/etc/containers/networks/*.json")[:MOST]:
        network = node.json(path)
        if isinstance(network, dict) and network.get("driver") == "bridge":
            networks.append({"name": str(network.get("name"))[:128], "bridge": str(network.get("network_interface"))[:16], "file": path})
    return {"networks": networks}


def libvirt(node):
    """The bridges for which libvirt keeps a dnsmasq."""
    found = []
    for path in node.glob("/var/lib/libvirt/dnsmasq/*.conf")[:MOST]:
        found.extend(line.split("=", 1)[1].strip() for line in node.lines(path) if line.startswith("interface="))
    return {"bridges": found}
