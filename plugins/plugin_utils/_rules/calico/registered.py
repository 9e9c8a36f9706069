# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The addresses that Calico has registered for the nodes: is each the node's own, and is it nobody else's?"""

from __future__ import annotations

import shlex
from functools import cached_property

from ... import _cluster
from ..._addresses import network_of
from ..._calico._commands import ANNOTATIONS, daemonset
from ..._calico._host import parsed_either
from ..._calico._settings import ENFORCES
from ..._declared import threshold
from .._rule import across, by_hand, fail, passed, repaired_by, skip, unknown, warn
from ._here import NEEDS, USES, Adviser, candidates, look_at, taken

STALE = threshold("calico_stale_hours", 24.0, "Hours for which a Node that no machine of the run stands for may be NotReady before it counts as left over.")
FAMILIES = (4, 6)


@across(
    "calico.registered_wrong_address", "Calico has registered an address that is not the node's", needs=("cluster.node", "cluster.calico"), uses=(*NEEDS, *USES)
)
def registered_wrong_address(nodes, policy):
    """Peers talk to the address that Calico has written on the Node (projectcalico.org/IPv4Address), and drop tunnels from any other.

    It may come from a link that was there at an earlier start, or be kept from before the node got another address. This is the
    node that is ill, though the others complain: "BGP not established with" that address.
    """
    heres = {name: look_at(facts[2:], policy) for name, facts in nodes.items()}
    adviser = Adviser({name: here for name, here in heres.items() if not here.silence and here.present}, policy)
    return {name: list(_registered(here, adviser)) for name, here in heres.items()}


def _registered(here, adviser):
    if here.silence:
        yield (unknown if here.silence.unread else skip)(here.silence.why)
        return
    held = [family for family in FAMILIES if here.stored(family)]
    if held and not all(one.routes for one in here.families):
        yield skip(ENFORCES)
        return
    if not held:
        yield skip("Calico keeps its nodes in etcd, which was not asked" if here.stored_elsewhere else "Calico has registered no address for this Node")
    for family in held:
        yield _verdict(here, here.setting(family), family, here.stored(family), adviser)


def _verdict(here, setting, family, stored, adviser):
    found, wanted = parsed_either(stored), here.wanted(family)
    node = here.node["name"]
    if found is None:
        return fail("Calico has registered %r for %s, which is no address" % (stored, node), _annotate(here, family), family=family, registered=stored)
    link = here.host.holder(found[0])[0]
    said = here.foreseen(family) if here.present and setting and not setting.unknown else None
    evidence = {
        "family": family,
        "registered": stored,
        "link": link.name if link else None,
        "wanted": str(wanted.ip) if wanted.ip else None,
        "wanted_by": wanted.by or None,
        "internal_ips": (here.node.get("internal_ips") or [])[:4],
        "foreseen": said["address"] if said and not said["unknown"] else None,
        "candidates": candidates(said) if said else [],
    }
    wrong = _wrong(here, found, wanted, link)
    if not wrong:
        if wanted.ip is None and not here.present:
            return unknown("Calico has registered %s for %s; %s" % (stored, node, wanted.why), **evidence)
        return passed("Calico has registered %s for %s" % (stored, node), **evidence)
    more = adviser.evidence(here, setting) if said and adviser.heres else {}
    speak = fail if wanted.sure or not link and here.present else warn
    return speak("Calico has registered %s for %s, but %s" % (stored, node, wrong), _cure(here, setting, said, wanted, family, adviser), **evidence, **more)


def _wrong(here, found, wanted, link):
    """What is wrong with a registered address, or an empty text."""
    ip, prefix = found
    if wanted.ip and ip not in wanted.ips:
        network = network_of("%s/%d" % (ip, prefix))
        if ip == network.network_address and wanted.ip in network and prefix < ip.max_prefixlen - 1:
            return "that is the network's address: by %s it should be %s" % (wanted.by, wanted.ip)
        return "by %s it should be %s" % (wanted.by, wanted.ip)
    if wanted.why and wanted.by_policy and here.present:
        return wanted.why
    if here.present and not link and not here.host.unread and not any(one.cut for one in here.host.links):
        return "no link of this node holds it"
    return ""


def _cure(here, setting, said, wanted, family, adviser):
    """A restart where the next start would find the right address; else the method is to be changed first."""
    if said and not said["unknown"] and wanted.has(said["detected"]):
        return _restart(here) if setting.detects else _annotate(here, family)
    if said and adviser.heres:
        return adviser.remedy(here, setting)
    node = here.node["name"]
    return by_hand("run this preflight on %s, too: it then tells which method is right, and why" % node.replace("%", "%%"))


def _restart(here):
    return repaired_by("restart_calico", _deletion(here).replace("%", "%%") + "  # its next start registers the right one", disruptive=True)


def _deletion(here):
    """The command that ends this node's calico-node; the DaemonSet makes a new one."""
    namespace, name = daemonset(here.calico)
    pod = next((one["name"] for one in here.node.get("pods") or () if one.get("component") == _cluster.NODE), None)
    what = shlex.quote(pod) if pod else "-l k8s-app=%s --field-selector spec.nodeName=%s" % (name, shlex.quote(here.node["name"]))
    return "kubectl -n %s delete pod %s" % (namespace, what)


def _annotate(here, family):
    """With IP unset, what is stored is only looked for again once it is gone."""
    gone = "kubectl annotate node %s projectcalico.org/%s-" % (shlex.quote(here.node["name"]), ANNOTATIONS[family])
    return by_hand(("%s && %s" % (gone, _deletion(here))).replace("%", "%%"), disruptive=True)


@across("calico.address_conflict", "Two nodes have, or would take, the same address", uses=(*NEEDS, *USES, "host.identity"))
def address_conflict(nodes, policy):
    """At a start with a changed address calico-node compares it with those of all other nodes. Where one has it already, it takes its
    own back and ends with exit code 1, again and again.

    Bridges of docker, NAT networks of virtual machines (10.0.2.15) and virtual addresses are the same on many nodes. The other node
    may also be one that is gone, whose Node object was never deleted.
    """
    parties = [Party(name, facts, policy) for name, facts in nodes.items()]
    adviser = Adviser({one.name: one.here for one in parties if one.here.present and not one.here.silence}, policy)
    holders = Holders(parties)
    return {one.name: _conflict(one, holders, adviser) for one in parties}


class Party:
    """One node among those that are compared: a machine of the run, a Node of the cluster, or both."""

    def __init__(self, name, facts, policy):
        *known, identity = facts
        self.name, self.here = name, look_at(known, policy)
        self.machine = (identity or {}).get("boot_id") or name
        self.node_name = (self.here.node or {}).get("name") or name

    @property
    def lives(self):
        """A Node that is NotReady may be left over from another one's machine."""
        return _cluster.is_ready(self.here.node or {}) is not False

    @cached_property
    def foreseen(self):
        """{family: what its next start takes}, as far as that can be told."""
        if self.here.silence or not self.here.present:
            return {}
        said = {one.family: self.here.foreseen(one.family) for one in self.here.families if not one.unknown}
        return {family: one for family, one in said.items() if not one["unknown"]}


class Holders:
    """Whose an address is: {address: parties} of those that are registered, are InternalIPs, will be taken, or should be."""

    def __init__(self, parties):
        self.registered = _by_address((_ip(one.here.stored(family)), one) for one in parties for family in FAMILIES)
        self.internal = _by_address((_ip(text), one) for one in parties for text in (one.here.node or {}).get("internal_ips") or ())
        self.foreseen = _by_address((_ip(said["address"]), one) for one in parties for said in one.foreseen.values())
        self.wanted = _by_address((one.here.wanted(family).ip, one) for one in parties if one.here.present for family in FAMILIES)


def _by_address(pairs):
    found = {}
    for ip, party in pairs:
        if ip:
            found.setdefault(ip, []).append(party)
    return found


def _conflict(one, holders, adviser):
    here = one.here
    found = [*_registered_twice(one, holders, adviser), *_internal_twice(one, holders)]
    for family, said in one.foreseen.items():
        found += _about_to(one, family, said, holders, adviser)
    if found:
        return found
    if here.silence:
        return (unknown if here.silence.unread else skip)(here.silence.why)
    hidden = next((setting for setting in here.families if setting.family not in one.foreseen), None) if here.present else None
    if hidden:
        return unknown("cannot foresee the IPv%d address: %s" % (hidden.family, hidden.unknown or here.foreseen(hidden.family)["unknown"]))
    return None


def _registered_twice(one, holders, adviser):
    for family in FAMILIES:
        ip = _ip(one.here.stored(family))
        others = [other.node_name for other in holders.registered.get(ip, ()) if other is not one] if ip else []
        if others:
            message = "Calico has registered %s for %s and also for %s" % (ip, one.node_name, _cluster.listed(others))
            setting = one.here.setting(family)
            able = one.here.present and setting and not setting.unknown
            remedy = adviser.remedy(one.here, setting) if able and not one.here.wanted(family).has(str(ip)) else _look(ip)
            yield fail(message, remedy, address=str(ip), others=others[:10])


def _internal_twice(one, holders):
    for ip in map(_ip, (one.here.node or {}).get("internal_ips") or ()) if one.lives else ():
        others = [other.node_name for other in holders.internal.get(ip, ()) if other is not one and other.lives]
        if others:
            message = "%s is the InternalIP of %s and also of %s: their kubelets need --node-ip" % (ip, one.node_name, _cluster.listed(others))
            yield fail(message, by_hand("ip -brief address; give the kubelet of each node its own --node-ip"), address=str(ip), others=others[:10])


def _about_to(one, family, said, holders, adviser):
    """Whose address the next start would take, and whether calico-node would end over it."""
    ip = _ip(said["address"])
    setting = one.here.setting(family)
    owners = [other for other in holders.registered.get(ip, ()) if other is not one]
    if ip and owners and _ip(one.here.stored(family)) != ip:
        crash = one.here.foreseen(family, {other.node_name: other.here.stored(family) for other in owners})["crash"]
        names = [other.node_name for other in owners]
        more = "calico-node would log %r and end" % crash["message"] if crash else "nothing keeps it from doing so"
        message = "%s; Calico has registered that for %s: %s" % (taken(setting, said), _cluster.listed(names), more)
        yield fail(message, _whose(one, owners[0], family, ip, adviser), address=str(ip), others=names[:10], candidates=candidates(said))
    twins = [other.name for other in holders.foreseen.get(ip, ()) if other.machine != one.machine and other not in owners]
    if ip and twins and said["source"] != "stored":
        message = "%s, and the same on %s: the one that starts later ends" % (taken(setting, said), _cluster.listed(twins))
        more = adviser.evidence(one.here, setting)
        yield fail(message, adviser.remedy(one.here, setting), address=str(ip), others=twins[:10], candidates=candidates(said), **more)


def _whose(one, owner, family, ip, adviser):
    """The address is to be given up by the Node that it does not belong to."""
    if not one.here.wanted(family).has(str(ip)):
        return adviser.remedy(one.here, one.here.setting(family))
    if owner.here.node and _cluster.is_ready(owner.here.node) is False:
        return _delete(owner.here)
    return _look(ip)


def _look(ip):
    return by_hand("on each of these nodes: ip -brief address show to %s  # the one that lacks it is to be put right: see calico.registered_wrong_address" % ip)


def _delete(here):
    name = shlex.quote(here.node["name"]).replace("%", "%%")
    gone = "calicoctl delete node %s && " % name if here.stored_elsewhere else ""
    return by_hand("%skubectl delete node %s  # only if its machine is gone for good" % (gone, name), disruptive=True)


@across("calico.node_leftovers", "A Node that is gone still owns an address", needs="cluster.node", uses=(*NEEDS, *USES, "host.identity", "cluster.taken"))
def node_leftovers(nodes, policy):
    """A Node object outlives its machine until somebody deletes it. Calico still counts its address as taken: a machine that has it
    now, such as the same one under another name, ends at its start because that Node "is already using" it.

    With BGP each start also waits for the session with it, up to 240 s.
    """
    parties = {name: Party(name, facts[1:-1], policy) for name, facts in nodes.items()}
    holders = Holders(list(parties.values()))
    return {name: _leftover(one, holders, {"taken": nodes[name][-1]}, policy) for name, one in parties.items()}


def _leftover(one, holders, clock, policy):
    node = one.here.node
    if _cluster.is_ready(node) is not False:
        return None
    age = _cluster.age(clock, _cluster.condition(node, "Ready").get("since"))
    since = "NotReady%s" % (" for %s" % _cluster.span(age) if age is not None else "")
    owned = [ip for ip in (_ip(one.here.stored(4)), _ip(one.here.stored(6)), *map(_ip, node.get("internal_ips") or ())) if ip]
    for ip in dict.fromkeys(owned):
        heirs = [other for other in (*holders.wanted.get(ip, ()), *holders.foreseen.get(ip, ())) if other.machine != one.machine]
        if heirs and not one.here.host.holder(ip)[1]:
            names = list(dict.fromkeys(other.name for other in heirs))
            message = "Node %s (%s) still owns %s, which %s has now" % (node["name"], since, ip, _cluster.listed(names))
            return fail(message, _delete(one.here), address=str(ip), heirs=names[:10], seconds=age)
    calico = one.here.calico or {}
    meshed = (calico.get("bgp") or {}).get("mesh") and calico.get("backend") == "bird" and one.here.stored(4)
    if meshed and not one.here.present and age is not None and age > policy[STALE] * 3600:
        message = "Node %s is %s, and no machine of this run stands for it; all others keep a BGP session for it" % (node["name"], since)
        return warn(message, _delete(one.here), address=one.here.stored(4), seconds=age)
    return passed("Node %s is %s, but nothing else has an address of its" % (node["name"], since))


def _ip(text):
    return _cluster.address(text)
