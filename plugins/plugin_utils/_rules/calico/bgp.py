# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which node is the ill one where nodes have no BGP session: seldom the one that complains."""

from __future__ import annotations

import re
from typing import NamedTuple

from ... import _cluster, _ports
from ..._calico._commands import ANNOTATIONS
from .._rule import across, by_hand, fail, passed, skip, unknown, warn
from ..cluster import GONE
from ._sessions import COMPLAINT, NO_BIRD, Member

RESTART = "kubectl -n %(namespace)s delete pod %(pod)s"
LISTENS = by_hand("on %(node)s: ss -ltn 'sport = :%(port)s', and its firewall; from another node: nc -zv -w 3 <its address> %(port)s; see calico.ports")
REMEDIES = {
    "not_ready": by_hand("put cluster.node_not_ready of %(node)s right first"),
    "stale_node": by_hand("kubectl delete node %(kubernetes_node)s  # only if its machine is gone for good", disruptive=True),
    "no_calico_node": by_hand("kubectl -n %(namespace)s describe pod %(pod)s; see calico.crashing and calico.init_stuck of %(node)s"),
    "bird_silent": by_hand(RESTART),
    "port_taken": by_hand("on %(node)s: ss -ltnp 'sport = :%(port)s'  # end the other BGP daemon, then: " + RESTART),
    "address_twice": by_hand(
        "on %(node)s: ip -brief address show to %(address)s  # the node that lacks it needs another method: see calico.registered_wrong_address"
    ),
    "not_on_node": by_hand("kubectl annotate node %(kubernetes_node)s projectcalico.org/%(annotation)s- && " + RESTART),
    "wrong_address": by_hand("set the method that calico.registered_wrong_address of %(node)s names, then: " + RESTART),
    "lacked_by_most": LISTENS,
    "no_session": LISTENS,
    "way": by_hand("from %(from)s: nc -zv -w 3 %(address)s %(port)s; see calico.ports of both nodes"),
    "stale_peer": by_hand(RESTART + "  # it reads its peers anew; with etcd: calicoctl get nodes -o wide, and calicoctl delete node of one that is gone"),
    "peer": by_hand("from %(node)s: nc -zv -w 3 %(address)s 179; compare AS numbers: calicoctl get bgppeer %(peer)s -o yaml"),
}
SURE, ADDRESS, CROWD = 3, 2, 1  # how much a sign weighs: the end of a missing session with the heavier one is the ill end


class Sign(NamedTuple):
    """A reason to take a node for the ill one."""

    weight: int
    because: str
    words: str


class Lack(NamedTuple):
    """A session that two nodes should have and have not, as one of them sees it."""

    by: str
    of: str
    address: object
    session: object


@across(
    "calico.bgp",
    "Nodes have no BGP session with this one",
    needs=("cluster.nodes", "cluster.calico"),
    uses=("cluster", "calico.bird", "links.present", "taken"),
)
def bgp(nodes, policy):
    """A node that is well says "BGP not established with X" about one that is ill, so X is looked for among the addresses of all nodes.

    The ill end of a missing session has a wrong or double address, is NotReady, has no living BIRD, or is lacked by most others.
    With three nodes or more those that are well stay Ready after half a minute: then only BIRD's own table shows the fault.
    """
    members, said = {}, {}
    for name, (_nodes, calico, cluster, bird, links, taken) in nodes.items():
        why_not = _not_here(calico, cluster)
        if why_not:
            said[name] = skip(why_not)
        else:
            members[name] = Member(name, cluster, bird, links, taken is not None, policy)
    owners = _owners(members)
    lacking, strange = _missing(members, owners)
    ill, between = _accused(lacking, _signs(members, owners, lacking), members)
    of_node = _by_end(lacking)
    for name, member in members.items():
        found = [_ill(member, *ill[name])] if name in ill else []
        found += [_way(member, between[name], members)] if name in between else []
        found += [_stranger(member, address, members) for address in strange.get(name, ())]
        said[name] = found or _well(member, of_node.get(name, ()), members)
    return said


def _not_here(calico, cluster):
    if (calico.get("install") or {}).get("kind") == "none":
        return "Calico is not installed in this cluster"
    if calico.get("backend") in ("vxlan", "none"):
        return "Calico's backend is %s, which uses no BGP" % calico["backend"]
    return None if cluster.get("node") else "this machine has not joined the cluster"


# -- who should have a session with whom -------------------------------------------------------------------------------


def _owners(members):
    """{address: [names]} of those that registered it, or whose InternalIP it is where nobody did."""
    found = {}
    for look in (lambda one: one.registered.values(), lambda one: one.internal):
        known = set(found)
        for name, member in members.items():
            for address in look(member):
                if address not in known:
                    found.setdefault(address, []).append(name)
    return found


def _missing(members, owners):
    """The sessions between nodes that neither end has, and {by: [addresses]} of peers down that are no node's."""
    lacking, strange = [], {}
    for name, member in members.items():
        for address, session in member.sessions.items():
            if session.up or member.settling:
                continue
            others = [of for of in owners.get(address, ()) if of != name]
            lacking += [Lack(name, of, address, session) for of in others if not members[of].settling and not members[of].has(member, address.version)]
            if not others:
                strange.setdefault(name, []).append(address)
    return lacking, strange


def _by_end(lacking):
    """{node: the others with which it has no session}"""
    found = {}
    for lack in lacking:
        found.setdefault(lack.by, set()).add(lack.of)
        found.setdefault(lack.of, set()).add(lack.by)
    return found


# -- which end is ill --------------------------------------------------------------------------------------------------


def _signs(members, owners, lacking):
    missing, have = _by_end(lacking), _established(members, owners)
    return {name: [*_own_signs(members[name], owners), *(_by_the_others(len(others), have.get(name, 0)) if have else ())] for name, others in missing.items()}


def _established(members, owners):
    """{node: how many others it has a session with}, as it says itself or as they say of it."""
    own, said = {}, {}
    for name, member in members.items():
        for address, session in member.sessions.items():
            if session.up:
                own[name] = own.get(name, 0) + 1
                for of in owners.get(address, ()):
                    said[of] = said.get(of, 0) + 1
    return {name: max(own.get(name, 0), said.get(name, 0)) for name in {*own, *said}}


def _own_signs(member, owners):
    node, infos = member.node, [session.info for session in member.sessions.values()]
    if _cluster.is_ready(node) is False:
        ready = _cluster.condition(node, "Ready")
        since = _cluster.age(member.cluster, ready.get("since"))
        stale = not member.read and since is not None and since >= member.policy[GONE]
        when = "" if since is None else " for %s" % _cluster.span(since)
        yield Sign(SURE, "stale_node" if stale else "not_ready", "it is NotReady%s (%s)" % (when, ready.get("message") or ready.get("reason")))
    elif member.pod is None and node.get("pods") is not None:
        yield Sign(SURE, "no_calico_node", "no calico-node runs on it")
    elif member.pod and (_cluster.container(member.pod) or {}).get("state") != "running":
        yield Sign(SURE, "no_calico_node", "its calico-node is in %s" % _cluster.doing(member.pod))
    for path, how in member.silent:
        yield Sign(SURE, "bird_silent", "its BIRD %s on %s" % ({"refused": "does not listen", "hung": "gives no answer"}[how], path))
    if member.told is None and NO_BIRD.search(member.complaint):
        yield Sign(SURE, "bird_silent", "its calico-node says: %s" % NO_BIRD.search(member.complaint).group())
    if any("No listening socket" in info for info in infos):
        yield Sign(SURE, "port_taken", "another program has TCP %d there" % _port(member))
    if COMPLAINT.search(member.complaint) or (len(infos) > 1 and not member.works):
        yield Sign(CROWD, "no_session", "none of its sessions is established")
    yield from _of_address(member, owners, infos)


def _of_address(member, owners, infos):
    for address in member.registered.values():
        others = [name for name in owners.get(address, ()) if name != member.name]
        if others:
            yield Sign(ADDRESS, "address_twice", "it registered %s, which %s registered too" % (address, _cluster.listed(others)))
        if member.held is not None and address not in member.held:
            yield Sign(ADDRESS, "not_on_node", "it registered %s, which none of its links has" % address)
        elif any(re.search("bind: .*(annot assign|not available)", info) for info in infos):
            yield Sign(ADDRESS, "not_on_node", "its BIRD cannot use the registered %s, which no link has" % address)
        elif _is_unwanted(address, member):
            on = " (on %s)" % member.held[address] if member.held else ""
            yield Sign(ADDRESS, "wrong_address", "it registered %s%s, but %s" % (address, on, _wanted(address, member)))


def _is_unwanted(address, member):
    networks = _networks(address, member)
    if networks:
        return not any(address in one for one in networks)
    own = [one for one in member.internal if one.version == address.version]
    return bool(own) and address not in own


def _wanted(address, member):
    networks = _networks(address, member)
    if networks:
        return "the nodes' network is %s" % _cluster.listed(networks)
    return "its InternalIP is %s" % _cluster.listed(one for one in member.internal if one.version == address.version)


def _networks(address, member):
    """The networks that the policy wants Calico's addresses to be in."""
    named = member.policy.networks
    return [one for one in named.get("calico") or named.get("nodes") or () if one.version == address.version]


def _by_the_others(missing, have):
    if missing >= 2 and missing >= have:
        share = missing / (missing + have)
        yield Sign(CROWD + share / 2, "lacked_by_most", "%d of %d others have no session with it" % (missing, missing + have))


def _accused(lacking, signs, members):
    """{name: (its signs, the sessions that it lacks)}, and {name: its missing sessions of which neither end stands out}."""
    ill, between, seen = {}, {}, set()
    for lack in lacking:
        ends = (lack.by, lack.of)
        found = {end: [sign for sign in signs[end] if _counts(sign, end, _other(end, ends), signs, members)] for end in ends}
        heaviest = {end: max((sign.weight for sign in found[end]), default=0) for end in ends}
        most = max(heaviest.values())
        # Of the others' judgement only the clearer one counts.
        guilty = [end for end in ends if most and heaviest[end] == most and (most >= ADDRESS or heaviest[_other(end, ends)] < most)]
        for end in guilty:
            ill.setdefault(end, (found[end], []))[1].append(lack)
        if not guilty and frozenset(ends) not in seen:
            for end in ends:
                between.setdefault(end, []).append(lack)
        seen.add(frozenset(ends))
    return ill, between


def _counts(sign, end, other, signs, members):
    """An address of another network is no fault by itself where it works and the others do the same on purpose."""
    return sign.because != "wrong_address" or not members[end].works or all(one.because != "wrong_address" for one in signs[other])


def _other(end, ends):
    return ends[1] if end == ends[0] else ends[0]


# -- words -------------------------------------------------------------------------------------------------------------


def _ill(member, signs, lacks):
    most = max(sign.weight for sign in signs)
    first = next(sign for sign in signs if sign.weight == most)
    words = "; ".join(dict.fromkeys(sign.words for sign in signs if sign.weight >= ADDRESS or sign is first))
    others = sorted({_other(member.name, (lack.by, lack.of)) for lack in lacks})
    told = [lack for lack in lacks if lack.of == member.name] or lacks
    message = "%s; so it has no BGP session with %s%s" % (words, _cluster.listed(others), _heard(member, told))
    evidence = {**_about(member), "because": first.because, "signs": [sign.because for sign in signs], "lacked_by": others, **_session(told[0])}
    evidence["annotation"] = ANNOTATIONS[told[0].address.version]
    return fail(message, REMEDIES[first.because], **evidence)


def _heard(member, lacks):
    """Who says it, in whose words: the complaint of one that is well must not be held against it."""
    views = [lack for lack in lacks if str(lack.session)]
    if views:
        return " (%s says of %s: %s)" % (views[0].by, views[0].address, views[0].session)
    return " (%s says: BGP not established with %s)" % (lacks[0].by, lacks[0].address)


def _way(member, lacks, members):
    first = lacks[0]
    others = sorted({_other(member.name, (lack.by, lack.of)) for lack in lacks})
    own = " (%s)" % str(first.session) if str(first.session) else ""
    # The end with the greater address, by its letters, calls the other.
    own_addresses = {name: str(members[name].registered.get(first.address.version, "")) for name in (first.by, first.of)}
    called, caller = sorted(own_addresses, key=own_addresses.get)
    port = _port(members[called])
    no_session = "it has no BGP session with %s%s, and neither end stands out" % (_cluster.listed(others), own)
    message = "%s: the way between them may be closed for TCP %d" % (no_session, port)
    evidence = {**_about(member), "because": "way", "lacked_by": others, **_session(first)}
    return fail(message, REMEDIES["way"], **{**evidence, "from": caller, "address": own_addresses[called] or str(first.address), "port": port})


def _stranger(member, address, members):
    """A peer that is down and that is no node."""
    session = member.sessions[address]
    evidence = {**_about(member), "address": str(address), "state": session.state, "info": session.info}
    heard = " (%s)" % str(session) if str(session) else ""
    bgp = (member.cluster.get("calico") or {}).get("bgp")
    peer = next((one for one in (bgp or {}).get("peers") or [] if _peer_address(one) == address), None)
    if peer:
        views = [one.sessions[address].up for one in members.values() if address in one.sessions]
        others = "; %d of %d nodes have one" % (sum(views), len(views)) if len(views) > 1 else ""
        where = "the cause is this node's or on its way" if any(views) else "the cause is at that peer, or on the way there"
        message = "it has no BGP session with the peer %s at %s%s%s: %s" % (peer.get("name"), address, heard, others, where)
        return fail(message, REMEDIES["peer"], because="peer", peer=peer.get("name"), **evidence)
    holders = ["%s (%s)" % (name, one.held[address]) for name, one in members.items() if one.held and address in one.held]
    if holders:
        where = "no node has registered it by now; it is an address of %s" % _cluster.listed(holders)
    else:
        unread = sum(one.held is None for one in members.values())
        where = "no node has registered it, none of the links that were read holds it"
        where += ", and no BGPPeer names it: its Node is gone" if bgp is not None else "; whether a BGPPeer names it was not read"
        where += "; the links of %d nodes were not read" % unread if unread else ""
    verdict = fail if member.complaint else warn
    message = "its BIRD has a peer %s%s that is nobody's: %s" % (address, heard, where)
    return verdict(message, REMEDIES["stale_peer"], because="nobody", held_by=holders[:4], **evidence)


def _peer_address(peer):
    """A BGPPeer names it with a port or without: 10.0.0.1:1790, fd00::1, [fd00::1]:1790."""
    said = re.fullmatch(r"\[(.*)\](?::\d+)?|([^:]*)(?::\d+)?|(.*)", str(peer.get("peer_ip") or ""))
    return _cluster.address(next((one for one in said.groups() if one), ""))


def _well(member, missing, members):
    if missing:
        return passed("it has no session with %s, but the fault is there" % _cluster.listed(sorted(missing)), lacks=sorted(missing))
    if member.told is not None:
        return _by_its_own_words(member)
    if member.settling:
        return skip("its calico-node has just started")
    others = sum(other.has(member) for other in members.values())
    if others:
        return passed("%d other nodes have a BGP session with it" % others)
    if member.silent:
        return unknown("its BIRD did not answer: see calico.bird_hung")
    return unknown("its BIRD was not read; that calico-node is Ready takes one session only")


def _by_its_own_words(member):
    up, all_of_them = sum(one.up for one in member.sessions.values()), len(member.sessions)
    if up == all_of_them:
        return passed("its %d BGP sessions are established" % up if up else "it has no BGP peer")
    if member.settling:
        return skip("its calico-node has just started")
    words = "%d of its %d BGP sessions are established; of the others an end has just started, or has one" % (up, all_of_them)
    return passed(words) if up else skip(words)


def _port(member):
    return _ports.bgp(member.cluster.get("calico") or {}, member.node.get("name"))


def _about(member):
    held = [str(one) for one in member.registered.values()]
    pod = {"pod": member.pod["name"], "namespace": member.pod["namespace"]} if member.pod else {}
    said = {"says": member.complaint} if member.complaint else {}
    return {
        "kubernetes_node": member.node["name"],
        "registered": held,
        "internal_ips": [str(one) for one in member.internal],
        "port": _port(member),
        **pod,
        **said,
    }


def _session(lack):
    return {"address": str(lack.address), "state": lack.session.state, "info": lack.session.info}
