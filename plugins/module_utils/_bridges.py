# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whose a bridge is, and what it leads to: what the rules about bridges and their repair both have to know."""

from __future__ import annotations

import re

# Links that belong to a pod network: their addresses are meant to lie in the pods' or services' networks.
POD_NETWORK = re.compile(
    r"cali|tunl0$|vxlan(-v6)?\.calico$|wireguard\.cali$|wg-v6\.cali$|bpf(in|out)\.cali$|flannel|cni\d+$|cbr0$|weave$|datapath$|vxlan-6784$|cilium|lxc(?!br)"
    r"|kube-bridge$|kube-ipvs|kube-dummy-if$|nodelocaldns|antrea|ovn|genev_sys|vxlan_sys"
)
# A bridge's name that only one tool gives.
NAMED = (
    ("docker", r"docker\d+$|docker_gwbridge$|br-[0-9a-f]{12}$"),
    ("podman", r"podman\d+$|cni-podman\d+$"),
    ("nerdctl", r"nerdctl\d+$|br-[0-9a-f]{12}$"),
    ("libvirt", r"virbr\d+$"),
    ("lxd", r"lxdbr\d+$"),
    ("incus", r"incusbr\d+$"),
    ("lxc", r"lxcbr\d+$"),
)
CONTAINER_PORTS = ("veth", "tun")
MULTUS = {"multus", "multus-shim"}  # which does the work itself, and which hands it to a daemon


def uplinks(link):
    """Ports that lead out of the node; a container's or virtual machine's do not."""
    return [port["name"] for port in link.get("ports", []) if port.get("nic") or port.get("kind", "") not in CONTAINER_PORTS]


def owner_of(name, facts):
    """Who made a bridge, as far as its maker, its maker's files or its name tell."""
    for network in (facts.get("docker") or {}).get("networks", []):
        if network["bridge"] == name:
            return {
                "owner": "docker",
                "network": network["name"],
                "containers": network["containers"],
                "container_count": network["container_count"],
                "because": "docker says that it is its network %s" % network["name"],
            }
    for network in (facts.get("podman") or {}).get("networks", []):
        if network["bridge"] == name:
            return {"owner": "podman", "network": network["name"], "because": "podman keeps it as its network %s" % network["name"]}
    if name in (facts.get("libvirt") or {}).get("bridges", []):
        return {"owner": "libvirt", "because": "libvirt runs a dnsmasq for it"}
    for conf in cni_files(facts):
        if name in conf.get("bridges", []):
            owner = next((tool for tool in ("nerdctl", "podman") if tool in conf["file"]), "cni")
            return {"owner": owner, "because": "%s names it" % conf["file"]}
    for owner, pattern in NAMED:
        if re.match(pattern, name):
            return {"owner": owner, "because": "%s names its bridges so" % owner}
    return {"owner": None, "because": "no configuration file and no container tool on this node owns it"}


def cni_files(facts):
    return [conf for directory in (facts.get("cni") or {}).get("directories", []) for conf in directory["files"]]


def current(facts):
    """Bridges of the pod network that the runtime takes."""
    confs = [conf for directory in (facts.get("cni") or {}).get("directories", []) for conf in behind(directory)]
    return {bridge for conf in confs if not re.search("nerdctl|podman", conf["file"]) for bridge in conf.get("bridges", [])}


def first(directory):
    """The CNI configuration that a runtime takes: the first valid file in the order of their names."""
    return next((conf for conf in directory["files"] if not conf.get("broken")), None)


def behind(directory):
    """The configurations by which pods get their network: the first one, or behind multus the one that it names, and where it names none of them all."""
    taken = first(directory)
    if taken is None:
        return []
    if not MULTUS & set(taken["types"]):
        return [taken]
    return named(directory) or [conf for conf in directory["files"] if not conf.get("broken")]


def named(directory):
    """The configuration to which multus hands over: told by its network's name, or by its file as multus' own pod sees it, below /host."""
    name = (first(directory) or {}).get("delegate", "").rpartition("/")[2]
    return [conf for conf in directory["files"] if name and not conf.get("broken") and name in (conf["file"], conf["name"])]
