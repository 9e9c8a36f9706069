# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Bridges that nobody needs, removed by their owner's means; which these are, others judge."""

from __future__ import annotations

from collections import namedtuple

from ..._changes import Paths
from ..._foreseen import Foreseen
from ..._journal import DONE, Journal, make
from ..._node import Node
from ..._probes import calico, kubelet, links
from .. import BOOT_ID, Failed, Refused, told, under_way
from . import _docker, _kernel
from ._back import lost
from ._owners import left, objections, stop
from ._users import users

__all__ = ["Settings", "absent", "lost"]

REPAIR = "bridge"
OF_LINKS = ("present", "routes", "ip_rules", "declared", "podman", "libvirt", "cni")
DECIDES = ("links.present", "links.ip_rules", "links.declared", "links.podman", "links.docker", "links.cni")
PODMAN_S = 20

Settings = namedtuple("Settings", "names allow_default_bridge deadline")
Settings.__new__.__defaults__ = ((), False, 5.0)
# One bridge: its link as the probe sees it, the same as the kernel has it, and docker's network behind it; each may be None.
Removal = namedtuple("Removal", "name link kept network")


def absent(settings, check=False, root="/"):
    """Remove what is named, or refuse it all; answers what was done and whether it may come back."""
    node = Node(root, settings.deadline, units=[*links.UNITS, *kubelet.UNITS])
    facts, view = look(node), Foreseen(root, settings.deadline)
    wanted = [one for one in removals(node, facts, settings.names) if stop(view, facts, one.name, one.link, one.network) or one.link or one.network]
    changes = view.changes()
    if wanted:
        _refuse(node, facts, wanted, settings)
        for why in (view.paths.why_not(one.path) for one in changes):
            if why:
                raise Refused(why)
    journal = Journal(Paths(root), (node.read(BOOT_ID) or "").strip())
    answer = {
        "changed": bool(wanted),
        "removed": [{"bridge": one.name, "by": by(one), "subnets": subnets(one)} for one in wanted],
        "changes": told(changes),
        "diff": [diff(one, "-") for one in wanted] + [one.diff() for one in changes],
        "left": [said for one in wanted for said in left(facts, one.name, one.network)],
        "for_good": "predicted" if wanted else proof(journal),
        "journal": None,
        "warnings": [],
    }
    return answer if check or not wanted else {**answer, **_carry_out(node, journal, changes, wanted)}


def look(node):
    """What the probes say about links, and about those who may need them."""
    parts = {
        "links": {**{name: links.FACTS[name] for name in OF_LINKS}, **links.WAITING},
        "kubelet": {"installed": kubelet.FACTS["installed"]},
        "calico": {"processes": calico.FACTS["processes"]},
    }
    facts = {area: node.look(area, lambda node, table=table: node.facts(table)) for area, table in parts.items()}
    return {**facts, "problems": node.problems}


def removals(node, facts, names):
    """What there is of each name; docker may keep a network whose link is gone, and would make the link at its next start."""
    if facts["links"]["present"] is None:
        raise Refused("the node's links cannot be read: %s" % (_problem(facts, "links.present") or "no reason was given"))
    networks = _docker.networks(node) if (facts["links"]["docker"] or {}).get("answered") else {}
    by_name = {link["name"]: link for link in facts["links"]["present"]["links"]}
    found = []
    for name in dict.fromkeys(names):
        link, network = by_name.get(name), networks.get(name)
        if network and not link and _docker.is_default(network):  # docker makes that one only if its settings say so, and then at its next start
            network = None
        found.append(Removal(name, link, _kernel.keep(node, link["index"]) if link else None, network))
    return found


def by(removal):
    """By whose means it goes."""
    if removal.network and not _docker.is_default(removal.network):
        return "docker network rm %s" % removal.network["Name"]
    return "the kernel" if removal.link else "its configuration"


def subnets(removal):
    if removal.link:
        return ["%(ip)s/%(prefix)d" % one for one in removal.link["addresses"]]
    return [str(one.get("Subnet")) for one in ((removal.network or {}).get("IPAM") or {}).get("Config") or []]


def proof(journal):
    """Whether a boot after a removal has already shown that nothing makes the bridges again."""
    boots = [entry.said.get("boot_id") for entry in journal.standing(REPAIR) if entry.said["state"] == DONE]
    return "proven" if any(boot and boot != journal.boot_id for boot in boots) else "predicted"


def diff(removal, sign):
    """For Ansible: a link, and the network behind it, as lines that go or come."""
    words = _kernel.lines(removal.kept) if removal.kept else []
    words += _docker.lines(removal.network) if removal.network else []
    header = "--- before: link %s\n+++ after: link %s\n" % (removal.name, removal.name)
    return {"prepared": header + "".join("%s%s\n" % (sign, word) for word in words)}


# -- why not -------------------------------------------------------------------------------------------------------------


def _refuse(node, facts, wanted, settings):
    """All reasons about all bridges at once: whoever has to clear up does not want to hear of them one by one."""
    unseen = next((one for one in facts["problems"] if one["fact"].startswith(DECIDES)), None)
    if unseen:
        raise Refused("cannot tell who uses what: %(what)s: %(why)s" % unseen)
    whys = []
    for one in wanted:
        whys += ["%s: %s" % (one.name, why) for why in objections(node, facts, one.name, one.link, one.network, settings)]
        needed = containers(node, facts, one) + (users(node, facts, one.link) if one.link else [])
        if needed:
            whys.append("%s is needed by %s" % (one.name, "; by ".join(needed)))
    if whys:
        raise Refused(". ".join(whys))


def containers(node, facts, removal):
    """The containers on it, as its owner tells; also those that do not run, for they could not be started any more."""
    found = ["the container %s of docker" % one for one in (_docker.users(node, removal.network) if removal.network else [])]
    for network in (facts["links"]["podman"] or {}).get("networks", []):
        if network["bridge"] == removal.name and node.program("podman"):
            answer = node.run(["podman", "ps", "--all", "--filter", "network=" + network["name"], "--format", "{{.Names}}"], PODMAN_S)
            if not answer.ok:
                raise Refused("podman does not tell who is on its network %s: %s" % (network["name"], answer.err.strip() or answer.state))
            found += ["the container %s of podman" % one for one in answer.out.split("\n") if one]
    return found


def _problem(facts, fact):
    return next((one["why"] for one in facts["problems"] if one["fact"].startswith(fact)), None)


# -- the real thing ------------------------------------------------------------------------------------------------------


def _carry_out(node, journal, changes, wanted):
    with journal.alone():
        entry = journal.begin(REPAIR, changes, node.clock())
        entry.note(links=[one.kept for one in wanted if one.kept and not _by_docker(one)], networks=[one.network for one in wanted if _by_docker(one)])
        if changes:
            make(journal, entry, changes)
        with under_way():
            for one in wanted:
                _remove(node, one)
            entry.note(state=DONE)
    return {"journal": entry.name}


def _by_docker(removal):
    return removal.network is not None and not _docker.is_default(removal.network)


def _remove(node, removal):
    if _by_docker(removal):
        _docker.remove(node, removal.network)
    if removal.kept and _kernel.found(node, removal.kept):
        enslaved = _kernel.ports(node, removal.kept["index"])
        if enslaved:
            raise Failed("%s has got the port %s just now, and is left as it is" % (removal.name, enslaved[0]))
        _kernel.delete(removal.kept)
    if removal.kept and _kernel.found(node, removal.kept):
        raise Failed("%s is still there: somebody makes it again at once" % removal.name)
