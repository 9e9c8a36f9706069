# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whose a link is, and what that means for its removal: what would bring it back, and who else has to remove it."""

from __future__ import annotations

import re

from ..._bridges import POD_NETWORK, cni_files, owner_of
from ..._changes import ABSENT, directory, file
from . import _docker

# Who looks after a bridge of his own, and how he is told to let it go.
KEEPERS = {
    "libvirt": "libvirt keeps it: virsh net-list --all; virsh net-destroy <network>; virsh net-autostart --disable <network>",
    "lxd": "LXD keeps it: lxc network delete %s",
    "incus": "Incus keeps it: incus network delete %s",
    "lxc": "lxc-net keeps it: systemctl disable --now lxc-net",
}
# The files of the system's own configuration, and how what they declare is taken out.
DECLARED = (
    ("/etc/netplan/", "take it out there, then netplan apply"),
    ("/run/netplan/", "take it out there, then netplan apply"),
    (".netdev", "remove that file, then networkctl delete %s"),
    ("/etc/network/", "ifdown %s, then take it out there"),
    ("NetworkManager", "nmcli connection delete what that file describes"),
    ("ifcfg-", "remove that file, then ip link delete %s"),
)
# What earlier pod networks leave, and the plugins whose configuration makes it.
LEFTOVERS = ((r"cni\d+$|cbr0$", {"bridge", "flannel"}), (r"flannel[.\d]", {"flannel"}), (r"kube-bridge$", {"bridge"}), (r"weave$", {"weave-net"}))
TOLD_BY_FLAG = re.compile(r"(--bip|--bridge|(?<!\S)-b)[\s=]")
FILES_OF_FLAGS = ("/etc/default/docker", "/etc/sysconfig/docker", "/etc/systemd/system/docker.service", "/usr/lib/systemd/system/docker.service")


def objections(node, facts, name, link, network, settings):
    """Why a link is not for us to remove, whoever uses it."""
    yield from (why for look in OBJECTIONS for why in [look(node, facts, name, link, network, settings)] if why)


def _other_kind(node, facts, name, link, network, settings):
    leftover = link and link.get("kind") == "vxlan" and re.match("flannel", name)
    if link and link.get("kind") != "bridge" and not leftover:
        return "it is no bridge (%s)" % (link.get("kind") or "a NIC")
    return None


def _docker_silent(node, facts, name, link, network, settings):
    docker = facts["links"]["docker"]
    if docker and docker["asked"] and not docker["answered"]:
        return "docker does not answer, so nobody can tell whether the bridge is its own: put docker right first"
    kept = _docker.keeps(node, name) if network is None and not (docker and docker["asked"]) else None
    return kept and "docker does not run, and its next start may make the bridge again (%s still names its network): start docker, then run this again" % kept


def _declared(node, facts, name, link, network, settings):
    path = (facts["links"]["declared"] or {}).get(name)
    way = next((way for part, way in DECLARED if path and part in path), "take it out there")
    return path and "%s declares it: %s" % (path, way % name if "%s" in way else way)


def _kept(node, facts, name, link, network, settings):
    owner = None if network else owner_of(name, facts["links"])["owner"]
    return owner in KEEPERS and (KEEPERS[owner] % name if "%s" in KEEPERS[owner] else KEEPERS[owner])


def _pod_network(node, facts, name, link, network, settings):
    """A link of the pod network is a leftover only where no CNI configuration would make it again."""
    named = [conf["file"] for conf in cni_files(facts["links"]) if name in conf.get("bridges", []) and not _tools(conf)]
    if named:
        return "the CNI configuration %s names it" % named[0]
    if not POD_NETWORK.match(name):
        return None
    types = next((types for pattern, types in LEFTOVERS if re.match(pattern, name)), None)
    if types is None:
        return "it belongs to the pod network"
    makers = [conf["file"] for conf in cni_files(facts["links"]) if types & set(conf.get("types", [])) and not _tools(conf)]
    return makers and "the CNI configuration %s makes it" % makers[0]


def _from_configuration(node, facts, name, link, network, settings):
    return network and (network.get("ConfigFrom") or {}).get("Network") and "docker made it from the configuration %(Network)s" % network["ConfigFrom"]


def _default(node, facts, name, link, network, settings):
    """Docker's own bridge is what every container gets that names no network."""
    default = name == "docker0" or (network and _docker.is_default(network))
    if not default:
        return None
    if not settings.allow_default_bridge:
        return "it is docker's default bridge: to remove it all the same, say allow_default_bridge=true"
    flags = next((path for path in FILES_OF_FLAGS if TOLD_BY_FLAG.search(node.read(path) or "")), None)
    said = _docker.settings(node.read(_docker.SETTINGS))
    key = next((key for key in ("bip", "bridge") if said.get(key, "none") != "none"), None)
    where = flags or (key and _docker.SETTINGS)
    return where and "%s tells docker which default bridge to have: change it there" % where


OBJECTIONS = (_other_kind, _docker_silent, _declared, _kept, _pod_network, _from_configuration, _default)


# -- what would bring it back --------------------------------------------------------------------------------------------


def stop(view, facts, name, link, network):
    """Plan the end of every file that would bring a link back; answers whether there is any."""
    before = view.changes()
    for one in (facts["links"]["podman"] or {}).get("networks", []):
        if one["bridge"] == name:
            view.plan(one["file"], ABSENT, "podman makes %s for its network %s" % (name, one["name"]))
    for place in (facts["links"]["cni"] or {}).get("directories", []):
        for conf in place["files"]:
            if name in conf.get("bridges", []) and _tools(conf):
                view.plan("%s/%s" % (place["path"], conf["file"]), ABSENT, "%s makes %s by it" % (_tools(conf), name))
    if (link and name == "docker0") or (network and _docker.is_default(network)):
        _no_default_bridge(view)
    return view.changes() != before


def left(facts, name, network):
    """What may make it again some day, which only its user can tell."""
    if network and _docker.project(network):
        return [{"kind": "compose", "by": "the next docker compose up of the project %s" % _docker.project(network)}]
    owner = owner_of(name, facts["links"])
    if owner["owner"] == "podman" and "network" not in owner:
        return [{"kind": "podman", "by": "the next container on podman's default network"}]
    return []


def _tools(conf):
    return next((tool for tool in ("nerdctl", "podman") if tool in conf["file"]), None)


def _no_default_bridge(view):
    path = view.paths.settled(_docker.SETTINGS)
    now = view.state(path)
    if _docker.settings(now.content and now.content.decode("utf-8", "replace")).get("bridge") == "none":
        return
    where = path.rsplit("/", 1)[0]
    if view.state(where).kind == "absent":
        view.plan(where, directory(), "what is to lie there needs it")
    content = _with_setting(now.content) if now.kind == "file" and now.content.strip() else b'{"bridge": "none"}\n'
    view.plan(path, file(content, like=now), "docker makes docker0 at each start, unless it is told not to")


def _with_setting(content):
    """One more setting right after the first brace, and no other byte changed."""
    head, brace, rest = content.partition(b"{")
    return head + brace + b'"bridge": "none"' + (b"" if rest.lstrip().startswith(b"}") else b", ") + rest
