# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which address Calico takes for a node at its next start, foreseen from the node's links and Calico's settings."""

from __future__ import annotations

from ..._calico._host import is_global_unicast
from ..._calico._settings import ENFORCES
from .._rule import across, by_hand, fail, passed, proven, rule, skip, unknown, warn
from ._here import NEEDS, USES, Adviser, candidates, look_at, taken

NOTHING_FOUND = "Couldn't autodetect"  # the log of calico-node
TOOLS = (*USES, "links.docker", "links.podman")


@rule("calico.wrong_address", "Calico takes another address than the node's own", needs=NEEDS, uses=USES)
def wrong_address(*facts):
    """Calico looks for each node's address by itself, and its default detection knows nothing of routes: it takes the last link of
    the kernel's list whose name it does not exclude. Peers then open BGP sessions and tunnels to an address that they cannot reach.

    Right is the InternalIP of the Node, else the policy's network, else what the kubelet will take. What is said here is what the
    next start of calico-node does, and what a running one that polls does within a minute.
    """
    return _alone(_wrong, facts)


@across("calico.wrong_address")
def wrong_addresses(nodes, policy):
    return _together(_wrong, nodes, policy)


def _wrong(here, setting, adviser):
    said, wanted = here.foreseen(setting.family), here.wanted(setting.family)
    kept = "what Calico has stored stays, and was not read" if here.stored_elsewhere and not setting.detects else ""
    if said["unknown"] or kept:
        return unknown("cannot foresee the IPv%d address: %s" % (setting.family, said["unknown"] or kept), candidates=candidates(said))
    if not said["address"] or not setting.routes:
        return skip("no IPv%d address is taken; calico.no_address tells why" % setting.family if setting.routes else ENFORCES)
    evidence = _evidence(here, setting, said, wanted)
    if wanted.has(said["address"]):
        return _right("%s; by %s that is right" % (taken(setting, said), wanted.by), here, setting, wanted, evidence)
    if wanted.ip is None and not wanted.by_policy:
        return unknown("%s; whether that is right cannot be told: %s" % (taken(setting, said), wanted.why), **evidence)
    message = "%s, but %s" % (taken(setting, said), wanted.why or "by %s it should be %s%s" % (wanted.by, wanted.ip, _where(here, wanted.ip)))
    speak = fail if wanted.by_policy or (wanted.sure and not setting.assumed) else warn
    return speak(message, adviser.remedy(here, setting), **evidence, **adviser.evidence(here, setting))


def _right(message, here, setting, wanted, evidence):
    """What does not hang on the facts that are only used is proven without them."""
    by_api = setting.by == "the cluster" and "InternalIP" in wanted.by
    return (proven if by_api and not setting.method.startswith("can-reach") else passed)(message, **evidence)


def _where(here, ip):
    link = here.host.holder(ip)[0]
    return " on %s" % link.name if link else ", which no link holds"


def _evidence(here, setting, said, wanted):
    return {
        "family": setting.family,
        "foreseen": said["address"],
        "link": said["link"],
        "wanted": str(wanted.ip) if wanted.ip else None,
        "wanted_by": wanted.by or None,
        "registered": here.stored(setting.family) or None,
        "method": setting.method or "first-found",
        "version": setting.version or None,
        "said_by": setting.by,
        "candidates": candidates(said),
    }


@rule("calico.unstable_address", "The address that Calico takes may change by itself", severity="warning", needs=NEEDS, uses=TOOLS)
def unstable_address(*facts):
    """An address that is right now may be another one after a reboot, or within a minute, without anybody changing Calico: once a
    bridge is made again it comes last in the kernel's list, and the order of two NICs is settled by their drivers at each boot.

    Only what is on the node is told of: a second link that qualifies, or a tool whose next bridge would. A method that names the
    network or the link is stable.
    """
    *common, docker, podman, policy = facts
    return _alone(_unstable, (*common, policy), (docker, podman))


@across("calico.unstable_address")
def unstable_addresses(nodes, policy):
    return _together(_unstable, nodes, policy, 2)


def _unstable(here, setting, adviser, docker=None, podman=None):
    said, wanted = here.foreseen(setting.family), here.wanted(setting.family)
    if said["unknown"]:
        return unknown("cannot foresee the IPv%d address: %s" % (setting.family, said["unknown"]))
    if said["source"] != "detected" and not setting.detects:
        return passed("%s is kept whatever is detected" % said["address"] if said["address"] else "no IPv%d address is looked for" % setting.family)
    if not said["address"] or not setting.routes or (wanted.ip and not wanted.has(said["address"])):
        return skip("calico.wrong_address and calico.no_address tell what is wrong with it already" if setting.routes else ENFORCES)
    makers = _makers(here, docker, podman)
    real = [threat for threat in said["threats"] if _is_of_present(threat, here) or any(threat.startswith(maker + " makes ") for maker in makers)]
    evidence = {**_evidence(here, setting, said, wanted), "threats": said["threats"], "runner_up": said["runner_up"]}
    if not real:
        return passed("%s; nothing that is on this node can change that" % taken(setting, said), **evidence)
    when = ", within %g s" % said["poll_seconds"] if said["poll_seconds"] and said["poll_seconds"] > 0 else " at the next start"
    message = "%s, but another one once %s%s" % (taken(setting, said), " or ".join(real[:3]), when)
    return warn(message, adviser.remedy(here, setting), **evidence, **adviser.evidence(here, setting))


def _makers(here, docker, podman):
    """Tools on this node whose next bridge has a name of theirs."""
    names = {link.name for link in here.host.links}
    has_docker = "docker0" in names or bool(docker and (docker.get("asked") or docker.get("networks")))
    has_podman = bool(podman and podman.get("networks"))
    return [maker for maker, there in (("a docker network", has_docker), ("podman", has_podman)) if there]


def _is_of_present(threat, here):
    """Whether a threat comes from a link that the node has."""
    return threat.endswith((") is made again", " at a boot")) and any(threat.startswith(link.name + " (") for link in here.host.links)


@rule("calico.no_address", "calico-node would end because it finds no address", needs=NEEDS, uses=USES)
def no_address(*facts):
    """Where its detection finds nothing and nothing is stored, calico-node ends at each start, and the pod is in CrashLoopBackOff.

    The same goes for a method that this version does not know, an address in its environment that is none, and IP=none without IPv6.
    The message is word for word that of calico-node's log.
    """
    return _alone(_none, facts)


@across("calico.no_address")
def no_addresses(nodes, policy):
    return _together(_none, nodes, policy)


def _none(here, setting, adviser):
    said = here.foreseen(setting.family)
    if said["unknown"]:
        return unknown("cannot foresee the IPv%d address: %s" % (setting.family, said["unknown"]))
    evidence = {**_evidence(here, setting, said, here.wanted(setting.family)), "log": said["log"][-4:]}
    if said["crash"] and here.stored_elsewhere and any(NOTHING_FOUND in line for line in said["log"]):
        if not setting.detects:
            return unknown("%s finds no address here, and whether one is stored for this node was not read" % setting.words, **evidence)
        message = "%s finds no address here, and would end unless one is stored for this node, which was not read" % setting.words
        return warn(message, _otherwise(here, setting, adviser), **evidence, **adviser.evidence(here, setting))
    if said["crash"]:
        message = "%s would end on this node with exit code 1; its log would say: %s" % (setting.words, said["crash"]["message"])
        return fail(message, _otherwise(here, setting, adviser), **evidence, **adviser.evidence(here, setting))
    if setting.detects and not said["detected"]:
        message = "%s finds no address here; it keeps %s, and would end if that were not stored" % (setting.words, said["address"])
        return warn(message, adviser.remedy(here, setting), **evidence, **adviser.evidence(here, setting))
    return passed("%s finds %s" % (setting.words, said["detected"]) if said["detected"] else "%s is used" % (said["address"] or "no address"), **evidence)


def _otherwise(here, setting, adviser):
    """No method finds an IPv6 address where there is none, and none is asked where Calico is told to look for nothing."""
    if setting.said == "none":
        return by_hand(
            "set IP=autodetect in calico-node's environment, or IP6=autodetect where the nodes have IPv6 only; with the operator: name a method in"
            " spec.calicoNetwork.nodeAddressAutodetectionV4 or V6 of the Installation"
        )
    if setting.family == 6 and not any(is_global_unicast(one.ip) for link in here.host.links for one in link.of(6)):
        return by_hand("give this node an IPv6 address, or take IP6=autodetect out of calico-node's environment")
    return adviser.remedy(here, setting)


def _alone(judge, facts, more=()):
    """One node by itself; which method would be right for all of them is only known where they are compared."""
    *known, policy = facts
    here = look_at(known, policy)
    if here.silence:
        return (unknown if here.silence.unread else skip)(here.silence.why)
    return _verdicts(judge, here, Adviser({"this node": here}, policy), more) or [skip("Calico looks for no address here")]


def _verdicts(judge, here, adviser, more):
    found = []
    for setting in here.families or (here.left_without if judge is _none else ()):
        found.append(unknown(setting.unknown) if setting.unknown else judge(here, setting, adviser, *more))
    return found


def _together(judge, nodes, policy, more=0):
    """What is wrong, with the method that is right for all nodes; where nothing is, what each was told alone stands."""
    cut = len(NEEDS) + len(USES)
    heres = {name: look_at(facts[:cut], policy) for name, facts in nodes.items()}
    heard = {name: here for name, here in heres.items() if not here.silence}
    adviser = Adviser(heard, policy)
    found = {name: _verdicts(judge, here, adviser, nodes[name][cut : cut + more]) for name, here in heard.items()}
    return {name: verdicts for name, verdicts in found.items() if any(one.status in ("fail", "warn") for one in verdicts)}
