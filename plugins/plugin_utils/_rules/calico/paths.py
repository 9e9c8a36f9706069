# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The paths between nodes: which ports are shut, at whose end and in which direction, and how large a packet passes."""

from __future__ import annotations

from ... import _cluster, _felix, _ports
from .._rule import across, by_hand, fail, passed, rule, skip, unknown, warn

NAMES = {_ports.BGP: "BGP", 5473: "Typha", 6443: "API server", 10250: "kubelet"}
SHUT = ("silent", "unreachable", "forbidden")
WORDS = {"silent": "nothing comes back", "unreachable": "it is rejected", "forbidden": "this node's own packet filter forbids it"}
LOOK_IN = by_hand(
    "on %(node)s: iptables-save | grep -nE -- '-j (DROP|REJECT)'; nft list ruleset | grep -nE 'drop|reject'; and the cloud's rules for what comes in"
)
LOOK_OUT = by_hand(
    "on %(node)s: iptables-save | grep -nE '^-A (OUTPUT|cali-.*to)'; nft list ruleset | grep -nE 'drop|reject'; and the cloud's rules for what goes out"
)
NOBODY = by_hand("on %(node)s: ss -Hltnp 'sport = :%(port)s'; for BGP see calico.bgp, for the kubelet kubelet.down, for Typha calico.typha")
DOWN = by_hand("see whether %(node)s runs and holds %(address)s: ip address show; then what comes in: iptables-save, nft list ruleset, and the cloud's rules")


@across("calico.ports", "A port that Calico or Kubernetes needs is shut between nodes", needs="path.peers", uses=("cluster.node", "cluster"))
def ports(nodes, policy):
    """BGP needs TCP 179 from every node to every other of the mesh, Typha 5473, the API server's machines 10250: a port that is shut shows as something else.

    Each node asks the others, and the answers are laid side by side: what nobody reaches is shut at its own end, what one node
    alone does not reach anywhere is shut at that node's, and a path that works in one direction only is named with its direction.
    Where nobody listens the machine refuses by itself, which is told apart. That a tunnel's packets arrive (IP protocol 4, UDP 4789)
    cannot be seen from one end; only that they are sent back can. BGP, VXLAN and WireGuard are asked for at the ports that
    BGPConfiguration and FelixConfiguration give them.
    """
    asked = _Asked(nodes)
    said = {name: [] for name in nodes}
    for name, verdict in [*asked.unreached(), *asked.shut(), *asked.nobody_listens(), *asked.objections()]:
        said[name].append(verdict)
    return {name: verdicts or [asked.well(name)] for name, verdicts in said.items()}


class _Asked:
    """Who asked whom, and what came of it. Nodes are known by the names that the cluster has for them."""

    def __init__(self, nodes):
        self.machine = {_own_name(name, node): name for name, (_peers, node, _all) in nodes.items()}
        self.own = {name: own for own, name in self.machine.items()}
        self.peers = {self.own[name]: peers["nodes"] for name, (peers, _node, _all) in nodes.items()}
        self.clusters = {self.own[name]: cluster or {} for name, (_peers, _node, cluster) in nodes.items()}
        self.dead = {(one, other) for one, peers in self.peers.items() for other, said in peers.items() if _is_dead(said)}
        self.states = {}  # {usual port: {(from, to): state}}
        self.ports = {}  # {(usual port, to): its own}
        for one, peers in self.peers.items():
            for other, said in peers.items():
                for port, found in said["tcp"].items():
                    if (one, other) not in self.dead:
                        usual = _ports.BGP if int(port) == _ports.bgp(self.calico(one), other) else int(port)
                        self.states.setdefault(usual, {})[(one, other)] = found["state"]
                        self.ports[(usual, other)] = int(port)

    def calico(self, one):
        return self.clusters[one].get("calico") or {}

    def well(self, name):
        own = self.own[name]
        count = sum(len(said["tcp"]) for said in self.peers[own].values())
        if not count:
            return skip("this node was told of no other node that it should ask (targets)")
        return passed("%d ports of %d other nodes answer, and its own answer them" % (count, len(self.peers[own])), asked=len(self.peers[own]))

    # -- nothing at all comes back -------------------------------------------------------------------------------------

    def unreached(self):
        pairs = {(one, other): ("silent" if (one, other) in self.dead else "open") for one, peers in self.peers.items() for other in peers}
        for one, others, all_out in self._accused(pairs):
            address = next((self.peers[other][one]["address"] for other in others if one in self.peers.get(other, ())), "its address")
            if all_out:
                words = "it reaches none of %s, neither by a ping nor on any port, though others do" % _cluster.listed(others)
                yield self._at(one, fail(words, LOOK_OUT, to=others))
            else:
                words = "it answers %s neither a ping nor on any port%s" % (_cluster.listed(others), self._state_of(one))
                yield self._at(one, fail(words, DOWN, address=address, unreached_by=others), others)

    def _state_of(self, one):
        """Whether Kubernetes has given it up as well."""
        entries = next(iter(self.clusters.values()), {}).get("nodes") or ()
        entry = next((entry for entry in entries if entry["name"] == one), None)
        return "; its Node is not Ready" if entry and _cluster.is_ready(entry) is False else ""

    # -- one port ------------------------------------------------------------------------------------------------------

    def shut(self):
        for usual, pairs in sorted(self.states.items()):
            for one, others, all_out in self._accused(pairs):
                port, what = self._named(usual, others[0] if all_out else one)
                if all_out:
                    words = "it reaches %s of none of %s, though others do: what it sends there is dropped" % (what, _cluster.listed(others))
                    yield self._at(one, fail(words, LOOK_OUT, port=port, direction="outgoing", to=others))
                else:
                    yield self._at(one, self._shut_at(one, others, port, what, pairs), others)

    def _named(self, usual, of):
        port = self.ports[(usual, of)]
        return port, "TCP %d%s" % (port, " (%s)" % NAMES[usual] if usual in NAMES else "")

    def _shut_at(self, one, others, port, what, pairs):
        how = WORDS[pairs[(others[0], one)]]
        back = [other for other in others if pairs.get((one, other)) == "open"]
        words = "%s of this node does not answer %s: %s" % (what, _cluster.listed(others), how)
        if back:
            words += "; in the other direction, from here to %s, it is open: the path is shut one way" % _cluster.listed(back)
        return fail(words, LOOK_IN, port=port, direction="incoming", shut_for=others, one_way=bool(back))

    def _accused(self, pairs):
        """(node, those that it does not reach or that do not reach it, whether it is its own way out) for what is shut between nodes.

        One that reaches nobody, though others reach the same nodes, is shut itself; of the rest it is the one that is not reached.
        """
        shut = {pair for pair, state in pairs.items() if state in SHUT}
        reached = {other for (_one, other), state in pairs.items() if state not in SHUT}
        out = set()
        for one in sorted({one for one, _other in shut}):
            to = sorted(other for from_one, other in pairs if from_one == one)
            if len(to) > 1 and all((one, other) in shut for other in to) and set(to) <= reached:
                out.add(one)
                yield one, to, True
        for other in sorted({other for one, other in shut if one not in out}):
            yield other, sorted(one for one, to in shut if to == other and one not in out), False

    def nobody_listens(self):
        """Only where the cluster says who should: before, a refusal shows no more than that the way is free."""
        for usual, pairs in sorted(self.states.items()):
            for other in sorted({to for (one, to), state in pairs.items() if state == "refused" and self.clusters[one]}):
                by = sorted(one for (one, to), state in pairs.items() if to == other and state == "refused")
                port, what = self._named(usual, other)
                words = "nobody listens on %s of this node: it refuses %s" % (what, _cluster.listed(by))
                yield self._at(other, fail(words, NOBODY, port=port, refused=by), by)

    def objections(self):
        found = {}
        for one, peers in self.peers.items():
            for other, said in peers.items():
                for port, how in said["objects"].items():
                    if how == "unreachable" or (how == "refused" and self.clusters[one]):
                        found.setdefault((other, port, how), []).append(one)
        for (other, port, how), by in sorted(found.items()):
            kind = None if port == "ipip" else _ports.kind_of_tunnel(self.calico(by[0]), int(port), other)
            what = "IP protocol 4 (IPIP)" if port == "ipip" else "UDP %s%s" % (port, " (%s)" % kind if kind else "")
            why = "a packet filter rejects it" if how == "unreachable" else "it has no such tunnel"
            yield self._at(other, fail("it sends back the packets of %s that come from %s: %s" % (what, _cluster.listed(sorted(by)), why), LOOK_IN), sorted(by))

    def _at(self, own, verdict, others=()):
        """On the accused node, or on the first that noticed where that one was not read."""
        if own in self.machine:
            return self.machine[own], verdict
        words = "of %s, which was not read in this run: %s" % (own, verdict.message)
        return self.machine[others[0]], fail(words, verdict.remedy, **{**verdict.evidence, "of": own})


def _own_name(name, node):
    return node["name"] if node else name


def _is_dead(said):
    """Whether nothing at all came back from there."""
    if said["packets"] is None and len(said["tcp"]) < 2:  # nobody could send a ping, and one port alone says too little
        return False
    answers = (said["packets"] or {}).get("answers")
    return bool(said["tcp"]) and not answers and not said["objects"] and all(one["state"] in SHUT for one in said["tcp"].values())


# -- the size of packets -----------------------------------------------------------------------------------------------

OVERHEAD = {"ipip": 20, "vxlan": 50, "wireguard": 60}
NARROW = by_hand(
    "let the network carry packets of %(needed)s bytes, or lower the MTU of Calico's pods and tunnels by %(missing)s: FelixConfiguration %(fields)s"
)


@rule(
    "calico.path_mtu",
    "Large packets get lost on the way to other nodes",
    needs="path.peers",
    uses=("calico.mtu", "cluster.calico", "cluster.node"),
    remedy=NARROW,
)
def path_mtu(peers, mtu, calico, node, policy):
    """A network under the nodes that carries less than their NICs say, a VPN or a cloud's overlay, lets small packets pass and swallows large ones.

    Connections between pods are then made, and hang at their first real data: TLS handshakes, image pulls, large answers. Packets that
    no router may cut are sent to other nodes in the size that Calico needs, that of pods plus its tunnel's. Where a router says what
    it passes on, hosts can learn it, so that this is only a warning.
    """
    if not peers["nodes"]:
        return skip("this node was told of no other node that it should ask (targets)")
    sent = {name: one["packets"] for name, one in peers["nodes"].items() if one["packets"]}
    if not sent:
        return unknown("no packets could be sent to other nodes")
    answered = {name: one for name, one in sent.items() if one["answers"]}
    if not answered:
        return unknown("none of %d other nodes answers a ping" % len(sent), asked=len(sent))
    need, why = _needed(mtu, _felix.tunnels(calico or {}, (node or {}).get("name")))
    return _narrow(answered, need, why) or passed(
        "packets of %d bytes come back whole from %d other nodes" % (min(one["mtu"] for one in answered.values()), len(answered)), asked=len(sent)
    )


def _needed(mtu, tunnels):
    """(bytes, their sum in words) of the largest packet that Calico sends, where the size of pods' packets is known."""
    size = (mtu or {}).get("file")
    if not _cluster.is_number(size) or not tunnels:
        return None, ""
    overhead = max(OVERHEAD[one] for one in tunnels)
    return size + overhead, " (%d for pods and %d for %s)" % (size, overhead, max(tunnels, key=OVERHEAD.get))


def _narrow(answered, need, why):
    """One verdict for all nodes behind the same narrow place."""
    places = {}
    for name, one in sorted(answered.items()):
        wanted = min(need, one["asked"]) if need else one["asked"]
        if one["mtu"] < wanted:
            by = (one["told"] or {}).get("by")
            places.setdefault((one["mtu"], wanted, by), []).append(name)
    return [_verdict(names, mtu, wanted, by, why) for (mtu, wanted, by), names in places.items()]


def _verdict(names, mtu, wanted, by, why):
    evidence = {"to": names, "mtu": mtu, "needed": wanted, "missing": wanted - mtu, "by": by, "fields": "ipipMTU, vxlanMTU, wireguardMTU, mtuIfacePattern"}
    words = "packets of more than %d bytes do not arrive at %s, and %d are needed%s" % (mtu, _cluster.listed(names), wanted, why)
    if by is None:
        return fail("%s; nobody says so, they just vanish" % words, **evidence)
    return warn("%s; %s" % (words, "its own link carries no more" if by == "its own link" else "%s sends them back" % by), **evidence)
