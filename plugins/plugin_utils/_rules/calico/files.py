# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What calico-node and the CNI plugin keep on the node: its name, their token, the MTU."""

from __future__ import annotations

import re

from ... import _cluster
from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, skip, warn
from ._programs import absent, felix_age, pod
from ._sessions import SETTLING

TOKEN_LEFT = threshold("calico_token_left", 0.4, "Part of the CNI token's life, and at most 14 days, below which it should have been renewed.")
LONGEST_NOTICE = 14 * 86400
NAME = "/var/lib/calico/nodename"
VALID = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?\Z")


@rule(
    "calico.name",
    "Calico takes another name for this node than Kubernetes",
    needs=("calico.signs", "calico.nodename", "calico.processes"),
    uses=("links.cni", "cluster.node", "kubelet.installed", "host.name"),
)
def name(signs, nodename, processes, cni, node, kubelet, host, policy):
    """calico-node writes the node's name to /var/lib/calico/nodename, and reads it again, like the CNI plugin, without cutting anything off.

    A line's end in it, which any editor adds, makes the name invalid. Where Calico and the kubelet use different names, Calico
    has two nodes for one machine, and pods get no routes.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    if not nodename:
        age = felix_age(processes)
        if age is None or age < policy[SETTLING]:
            return skip("%s does not exist yet" % NAME)
        remedy = by_hand("mount /var/lib/calico from the host into calico-node, as Calico's manifest does")
        return fail("calico-node runs, but %s is not there: no pod can be started" % NAME, remedy, path=NAME)
    written, found = nodename["name"], []
    if not nodename["exact"]:
        remedy = by_hand("printf %%%%s %%(name)s > %s  # then restart calico-node" % NAME)
        found.append(fail("%s holds a blank or a line's end beside the name %r" % (NAME, written), remedy, name=written, path=NAME))
    if not VALID.match(written):
        remedy = by_hand("set NODENAME of calico-node from spec.nodeName, and remove %s before it starts" % NAME)
        why = "has upper case letters" if VALID.match(written.lower()) else "is not valid"
        found.append(fail("the name %r in %s %s: Calico cannot write its Node" % (written, NAME, why), remedy, name=written, path=NAME))
    return found or _compared(written, *_expected(node, kubelet, host))


def _expected(node, kubelet, host):
    """(the name that Kubernetes has for this node, who says so, whether that is sure)"""
    if node:
        return node["name"], "Kubernetes", True
    told = (kubelet or {}).get("node_name") or "%"
    if not re.search("[%$]", told):  # what systemd or a shell would put in
        return told.lower(), "the kubelet's flag", True
    return ((host or {}).get("hostname") or "").lower(), "the hostname", False


def _compared(written, expected, who, sure):
    evidence = {"name": written, "expected": expected}
    if not expected:
        return passed("the name %s is valid" % written, **evidence)
    if written == expected or (not sure and written.split(".")[0] == expected.split(".")[0]):
        return passed("the name is %s" % written, **evidence)
    remedy = by_hand("set NODENAME of calico-node from spec.nodeName; then calicoctl delete node %(name)s, once no pod uses it")
    verdict = fail if sure else warn
    return verdict("Calico calls this node %s, %s says %s" % (written, who, expected), remedy, **evidence)


@rule(
    "calico.cni_token",
    "The CNI plugin's token has expired or was not renewed",
    needs=("calico.signs", "calico.token", "calico.processes"),
    uses=("links.cni", "calico.logs"),
    remedy=by_hand("kubectl -n %(namespace)s delete pod %(pod)s  # a new calico-node writes a new token"),
)
def cni_token(signs, token, processes, cni, logs, policy):
    """With an expired token every start and end of a pod fails with "error getting ClusterInformation: connection is unauthorized".

    Since 3.23.2 calico-node renews it when a quarter of its 24 hours is over; before, it is the token of the pod, and ends with it.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    if not token or token["kind"] != "token":
        return skip("the CNI plugin uses no token" if token else "the CNI plugin has no kubeconfig here")
    evidence = {**{key: token.get(key) for key in ("path", "subject", "left_s")}, "written_s": token["age_s"], **pod(logs)}
    of = pod(logs).get("pod")
    if token.get("left_s") is not None and token["left_s"] > 0 and token.get("pod") and of and token["pod"] != of:
        message = "the token in %s belongs to the pod %s and ends with it, but calico-node is %s by now"
        return warn(message % (token["path"], token["pod"], of), bound=token["pod"], **evidence)
    return _time_left(token, evidence, policy)


def _time_left(token, evidence, policy):
    left = token.get("left_s")
    if left is None:
        return passed("the token of %s does not expire by itself" % (token.get("subject") or "the CNI plugin"), **evidence)
    if left <= 0:
        return fail("the token in %s expired %s ago: no pod starts or ends" % (token["path"], _cluster.span(-left)), **evidence)
    life = token["expires"] - (token["issued"] or token["expires"])
    if left < min(policy[TOKEN_LEFT] * life, LONGEST_NOTICE):
        return warn("the token in %s ends in %s of its %s and was not renewed" % (token["path"], _cluster.span(left), _cluster.span(life)), **evidence)
    return passed("the token lasts for another %s" % _cluster.span(left), **evidence)


OVERHEAD = {"tunl0": 20, "vxlan.calico": 50, "vxlan-v6.calico": 70, "wireguard.cali": 60, "wg-v6.cali": 80}
REBUILD = by_hand("kubectl drain %(node)s --ignore-daemonsets && kubectl uncordon %(node)s  # pods get their MTU when they are made", disruptive=True)


@rule(
    "calico.mtu",
    "The MTU of pods or tunnels does not fit",
    needs=("calico.signs", "calico.mtu", "links.present", "calico.processes"),
    uses=("links.routes", "links.cni", "cluster.node"),
)
def mtu(signs, found, present, processes, routes, cni, node, policy):
    """A tunnel's packets must fit into the NIC's, and pods' packets into the tunnel's. Otherwise small ones pass and large ones do not:
    a connection is made, and hangs at its first real data.

    Pods keep the MTU with which they were made, so that a change reaches them only when they are made anew.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    links = {link["name"]: link for link in present["links"]}
    nic = _underlay(links, routes, node)
    tunnels = {name: links[name]["mtu"] for name in OVERHEAD if name in links and _in_use(links[name])}
    verdicts = [*_tunnels(tunnels, nic), *_pods(found, tunnels, nic)]
    if verdicts or nic is None:
        return verdicts or skip("which NIC Calico's packets leave by is not known")
    pods = ", ".join(sorted(found["pods"])) or found["file"]
    return passed(
        "pods have %s, tunnels %s, %s has %d" % (pods, tunnels or "none", nic["name"], nic["mtu"]), nic=nic["name"], nic_mtu=nic["mtu"], tunnels=tunnels
    )


def _in_use(link):
    """Felix deletes its other tunnels once no pool needs them; tunl0 is the kernel's own, of which it only takes the address away."""
    return bool(link.get("up") and link.get("mtu") and (link["name"] != "tunl0" or link["addresses"]))


def _underlay(links, routes, node):
    """The link by which Calico's packets leave: the one with the registered address, else the default route's."""
    own = set(map(str, _cluster.registered(node or {}).values()))
    leaving = [name for route in (routes or {}).get("main", ()) if route["to"] == "default" for name in route.get("links", ())]
    holding = [name for name, link in links.items() if any(held["ip"] in own for held in link["addresses"])]
    return next((links[name] for name in holding + leaving if links.get(name, {}).get("mtu")), None)


def _tunnels(tunnels, nic):
    for name, size in tunnels.items():
        if nic and size > nic["mtu"] - OVERHEAD[name]:
            most = nic["mtu"] - OVERHEAD[name]
            evidence = {"link": name, "mtu": size, "nic": nic["name"], "nic_mtu": nic["mtu"], "most": most}
            remedy = by_hand("let Calico find it (veth_mtu: 0 and mtuIfacePattern), or set the MTU of its tunnels to %(most)s")
            yield fail("%s has an MTU of %d, but %s has %d: at most %d fits through it" % (name, size, nic["name"], nic["mtu"], most), remedy, **evidence)


def _pods(found, tunnels, nic):
    ways = {**({nic["name"]: nic["mtu"]} if nic else {}), **tunnels}
    narrow = min(ways, key=ways.get, default=None)
    most = ways.get(narrow)
    if found["file"] is not None and most is not None and found["file"] > most:
        remedy = by_hand("set mtuIfacePattern of FelixConfiguration to the NICs' names, and veth_mtu to 0; what Felix found: its log, by the word MTU")
        message = "new pods get an MTU of %d (/var/lib/calico/mtu), but %s has %d" % (found["file"], narrow, most)
        yield fail(message, remedy, file=found["file"], link=narrow, most=most)
    for text, count in sorted(found["pods"].items(), key=lambda one: -int(one[0])):
        size, evidence = int(text), {"mtu": int(text), "pods": count, "file": found["file"], "example": found["examples"].get(text)}
        if most is not None and size > most:
            yield fail("%d pods have an MTU of %d, but %s has %d" % (count, size, narrow, most), REBUILD, link=narrow, most=most, **evidence)
        elif found["file"] is not None and size > found["file"]:
            yield warn("%d pods still have an MTU of %d; new ones get %d" % (count, size, found["file"]), REBUILD, **evidence)
