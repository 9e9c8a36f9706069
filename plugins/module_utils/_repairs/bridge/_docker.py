# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Docker's networks, by its API: who is on them, how they are removed, and how they are made again."""

from __future__ import annotations

import json
import re

from ..._changes import Unchangeable
from ..._probes.links._owners import bridge_of, bridged, tables
from .. import Failed, Refused

SOCKET = "/run/docker.sock"
SETTINGS = "/etc/docker/daemon.json"
DATABASE = "/network/files/local-kv.db"
DATABASE_LIMIT = 1 << 26
REQUEST_S = 30  # docker may first have to wait for another of its requests
DEFAULT = "com.docker.network.bridge.default_bridge"
PROJECT = "com.docker.compose.project"
# What docker is told about a network, as it tells it itself; who is on it and when it was made belong to the old one alone.
ASKED = ("Name", "Driver", "EnableIPv4", "EnableIPv6", "IPAM", "Internal", "Attachable", "Options", "Labels")


def networks(node):
    """{link: docker's network} of a docker that runs."""
    return {bridge_of(one): one for one in _networks(node)}


def all_networks(node):
    """None where docker does not tell."""
    try:
        return _networks(node)
    except Refused:
        return None


def _networks(node):
    return bridged(tables(_told(node, "/networks", "which networks it has")))


def _told(node, path, what, kind=list):
    """What docker answers; a docker that is silent is none that has nothing."""
    answer = node.http(SOCKET, path)
    said = answer.json()
    if not isinstance(said, kind):
        raise Refused("docker does not tell %s: %s" % (what, "its answer is too long, or no JSON" if answer.ok else _why(answer)))
    return said


def users(node, network):
    """Who is on a network: containers that run, those that would need it at their next start, and swarm's own ends."""
    found = {}
    for container in tables(_told(node, "/containers/json?all=1", "which containers it has")):
        ends = (container.get("NetworkSettings") or {}).get("Networks") or {}
        ids = [(end or {}).get("NetworkID") for end in ends.values()]
        if network["Id"] in ids or (network["Name"] in ends and not any(ids)):
            found[container.get("Id")] = "%s (%s)" % ((container.get("Names") or ["?"])[0].lstrip("/"), container.get("State") or "not running")
    said = _told(node, "/networks/" + network["Id"], "who is on its network %s" % network["Name"], dict)
    for key, end in (said.get("Containers") or {}).items():
        found.setdefault(key, str((end or {}).get("Name") or key))
    return sorted(found.values())


def is_default(network):
    return (network.get("Options") or {}).get(DEFAULT) == "true"


def project(network):
    """The compose project that a network was made for."""
    return (network.get("Labels") or {}).get(PROJECT)


def lines(network):
    """A network in words, for a diff."""
    config = (network.get("IPAM") or {}).get("Config") or []
    return ["docker network %s%s" % (network["Name"], "".join(", %s gateway %s" % (one.get("Subnet"), one.get("Gateway") or "of docker's") for one in config))]


def remove(node, network):
    answer = node.command(SOCKET, "DELETE", "/networks/" + network["Id"], deadline=REQUEST_S)
    if answer.code not in (204, 404):
        raise Failed("docker does not remove its network %s: %s" % (network["Name"], _why(answer)))


def make(node, network):
    """The network as it was; docker gives it another id, and where no option names its link, that is named after the id."""
    known = all_networks(node)
    if known is None:
        raise Failed("docker does not tell whether it has its network %s already" % network["Name"])
    if network["Name"] in [one.get("Name") for one in known]:
        return []
    body = {key: network[key] for key in ASKED if network.get(key) is not None}
    answer = node.command(SOCKET, "POST", "/networks/create", {**body, "CheckDuplicate": True}, deadline=REQUEST_S)
    if answer.code != 201:
        raise Failed("docker does not make its network %s again: %s" % (network["Name"], _why(answer)))
    link = bridge_of({**network, "Id": str(json.loads(answer.out).get("Id"))})
    renamed = "docker's network %s has the link %s now: docker names it after an id, which is new"
    return [] if link == bridge_of(network) else [renamed % (network["Name"], link)]


def _why(answer):
    try:
        return str(json.loads(answer.out).get("message"))[:500]
    except (ValueError, AttributeError):
        return answer.err or answer.state


# -- a docker that does not run ------------------------------------------------------------------------------------------


def keeps(node, name):
    """The file in which a docker that does not run still has the network of a link; None where it has none."""
    place = settings(node.read(SETTINGS)).get("data-root")
    path = (place if isinstance(place, str) and place.startswith("/") else "/var/lib/docker") + DATABASE
    text = node.read(path, DATABASE_LIMIT) or ""
    by_id = re.match(r"br-([0-9a-f]{12})$", name)
    return path if '"%s"' % name in text or (by_id and by_id.group(1) in text) else None


def settings(text):
    """What daemon.json says."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        raise Unchangeable("%s is no JSON" % SETTINGS) from None
    return found if isinstance(found, dict) else {}
