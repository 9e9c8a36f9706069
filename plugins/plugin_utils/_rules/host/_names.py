# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Names, and what should exist only once among all nodes."""

from __future__ import annotations

import re

from .._rule import across, by_hand, fail, rule, skip, unknown, warn

UNNAMED = re.compile(r"localhost(\.localdomain\d*)?$|localhost\d\.|\(none\)$", re.I)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


@rule("host.name", "The node's name does not suit Kubernetes", needs="host.name", remedy=by_hand("hostnamectl set-hostname NAME"))
def name(facts, policy):
    """A node registers under its hostname, which must be a DNS name of lower-case letters, digits, dots and dashes, and is
    also written into a label that holds 63 characters. Health checks of Calico listen on whatever localhost means.
    """
    hostname, verdicts = facts["hostname"] or "", []
    if not hostname or UNNAMED.match(hostname):
        verdicts.append(fail("the hostname is %r, as every unnamed machine's" % hostname, hostname=hostname))
    elif not all(LABEL.match(label) for label in hostname.lower().split(".")):
        verdicts.append(
            fail(
                "the hostname %r is no DNS name: letters, digits and dashes between dots, neither beginning nor ending with a dash" % hostname,
                hostname=hostname,
            )
        )
    elif len(hostname) > 63:
        verdicts.append(fail("the hostname has %d characters, but the label kubernetes.io/hostname holds 63" % len(hostname), hostname=hostname))
    elif hostname != hostname.lower():
        verdicts.append(
            warn(
                "the hostname %s has capitals: the node will be called %s, and what compares the two will not find it" % (hostname, hostname.lower()),
                hostname=hostname,
            )
        )
    foreign = [one for one in facts.get("localhost", []) if not one.startswith("127.") and one != "::1"]
    remedy = by_hand("write the line '127.0.0.1 localhost' into /etc/hosts")
    if foreign:
        verdicts.append(fail("/etc/hosts says that localhost is %s: health checks would listen there" % foreign[0], remedy, address=foreign[0]))
    elif not facts.get("localhost"):
        verdicts.append(warn("/etc/hosts does not name localhost: what listens on localhost asks the DNS for it", remedy))
    return verdicts


# Firmware whose maker forgot to give each board its own.
COMMON_UUID = re.compile(r"(.)\1{7}-|03000200-0400-0500-0006-000700080009|01020304-|12345678-|fefefefe-|not|to be|default", re.I)
CLONED = by_hand("rm /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; then reboot", disruptive=True, reboot=True)
KINDS = {  # what: (its name, how bad, remedy)
    "hostname": ("the hostname", fail, by_hand("hostnamectl set-hostname NAME, before the node joins")),
    "machine_id": ("the machine-id", fail, CLONED),
    "product_uuid": ("the product UUID", warn, by_hand("give the virtual machine a UUID of its own in the hypervisor")),
    "mac": ("the MAC address", fail, by_hand("give the network card a MAC address of its own in the hypervisor")),
    "address": ("the address", fail, by_hand("ip -br address; give one of the nodes another address")),
}


@across("host.unique", "Something that must be the node's own is on another node, too", needs=("host.identity", "links.present"))
def unique(nodes, policy):
    """Machines cloned from one image often share their hostname, machine-id, product UUID or MAC address. Nodes with one
    name overwrite each other in the cluster; with one machine-id the same DHCP lease is given to both; with one address
    packets reach either.
    """
    if len(nodes) < 2:
        return {name: skip("there is no other node to compare with") for name in nodes}
    twins, holders, verdicts = {}, {}, {name: [] for name in nodes}
    for name, (identity, _present) in sorted(nodes.items()):
        twins.setdefault(tuple(identity.get(one) or name for one in ("boot_id", "machine_id", "hostname")), []).append(name)
    for names in twins.values():
        identity, present = nodes[names[0]]
        for kind, value in {*_own(identity), *_on_links(present)}:
            holders.setdefault((kind, value), []).append(names)
        for name in names if len(names) > 1 else ():
            others = [other for other in names if other != name]
            said = "the inventory names one machine %d times: it is also %s" % (len(names), _shown(others))
            verdicts[name].append(
                warn(said, by_hand("take all but one of its names out of the inventory"), kind="machine", value=identity["boot_id"], others=others[:20])
            )
    for (kind, value), machines in sorted(holders.items()):
        if kind == "product_uuid" and len({nodes[names[0]][0].get("boot_id") or names[0] for names in machines}) == 1:
            continue  # containers on one machine
        holding = sorted(name for names in machines for name in names)
        for names in machines if len(machines) > 1 else ():
            others = [other for other in holding if other not in names]
            what, speak, remedy = KINDS[kind]
            for name in names:
                verdicts[name].append(speak("%s %s is also that of %s" % (what, value, _shown(others)), remedy, kind=kind, value=value, others=others[:20]))
    for name, (identity, _present) in nodes.items():
        if not verdicts[name] and identity["product_uuid_there"] and not identity["product_uuid"]:
            verdicts[name].append(unknown("nothing else is on two nodes, but the product UUID can only be read by root (run with become)"))
    return verdicts


def _shown(names):
    return ", ".join(names[:5]) + (" and %d more" % (len(names) - 5) if len(names) > 5 else "")


def _own(identity):
    for kind in ("hostname", "machine_id", "product_uuid"):
        value = (identity[kind] or "").lower()
        if value and not (kind == "machine_id" and value == "uninitialized") and not (kind == "product_uuid" and COMMON_UUID.match(value)):
            yield kind, value


# Links whose addresses are the node's own on its network; bridges of containers have the same on every node.
PLAIN = (None, "", "bond", "team", "vlan", "macvlan")
ELSEWHERE = re.compile(r"docker|cali|cni|kube-ipvs|tunl|vxlan|flannel|virbr|br-|nodelocaldns|lo$")


def _on_links(present):
    for link in present["links"]:
        if link.get("nic") and link.get("mac", "").strip("0:"):
            yield "mac", link["mac"].lower()
        if (link.get("nic") or link.get("kind") in PLAIN) and link.get("up") and not link.get("loopback") and not ELSEWHERE.match(link["name"]):
            for held in link.get("addresses") or ():
                if not held.get("scope") and not _shared(held):
                    yield "address", held["ip"]


def _shared(held):
    """A single address is often one that moves between nodes (keepalived, kube-vip, anycast)."""
    return held["prefix"] == (128 if ":" in held["ip"] else 32)
