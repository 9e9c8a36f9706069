# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What would change the address that a method finds, without anybody changing Calico."""

from __future__ import annotations

from .._addresses import ip_of, network_of
from ._host import is_global_unicast
from ._methods import limits

# What comes to a node later: who makes it, and how it is called.
NEWCOMERS = (
    ("a docker network", "br-0123456789ab"),
    ("docker", "docker0"),
    ("podman", "podman1"),
    ("nerdctl", "nerdctl0"),
    ("libvirt", "virbr0"),
    ("LXD", "lxdbr0"),
    ("an administrator's bridge", "br0"),
    ("a VPN", "tun0"),
    ("a WireGuard VPN", "wg0"),
    ("tailscale", "tailscale0"),
)
# Which addresses they usually give themselves; an administrator's bridge takes over that of its NIC.
_USUAL = {
    "a docker network": (*("172.%d.0.1" % number for number in range(18, 32)), *("192.168.%d.1" % number for number in range(0, 256, 16))),
    "docker": ("172.17.0.1",),
    "podman": ("10.88.0.1", "10.89.0.1"),
    "nerdctl": ("10.4.0.1", "10.4.1.1"),
    "libvirt": ("192.168.122.1",),
    "LXD": ("10.136.27.1", "10.201.98.1"),
    "a VPN": ("10.8.0.2",),
    "a WireGuard VPN": ("10.66.66.2",),
    "tailscale": ("100.101.102.103",),
}
USUAL = {who: tuple(map(ip_of, texts)) for who, texts in _USUAL.items()}


def threats(method, found, asked):
    """Sentences, each of which the same code proves when the change is made."""
    if not found.address or found.unknown:
        return []
    limit = limits(method, asked.version)
    if limit is None:
        return _of_the_cluster(method, found)
    return [*_newcomers(limit, asked.family), *_made_again(limit, found, asked), *_order_of_nics(limit, found, asked)]


def dangers(method, found, asked):
    """Those of the threats that come about by what people commonly do with a node: they add bridges and VPNs, and reboot it."""
    limit = limits(method, asked.version)
    if limit is None:
        return [] if method.startswith("kubernetes-internal-ip") else threats(method, found, asked)
    newcomers = _usual_inside(limit, asked) if limit.inside else _newcomers(limit, asked.family)
    return [*newcomers, *_made_again(limit, found, asked), *_order_of_nics(limit, found, asked)]


def runner_up(found, method, asked, detect):
    """What the method would find if the address that it finds now went away."""
    if not found.address or found.unknown:
        return None
    links = tuple(link._replace(held=tuple(one for one in link.held if _differs(one, link, found, asked))) for link in asked.host.links)
    without = detect(method, asked._replace(host=asked.host._replace(links=links)))
    return {"address": without.address, "link": without.link} if without.address else None


def _differs(held, link, found, asked):
    return link.name != found.link or held.text(asked.version) != found.address


def _of_the_cluster(method, found):
    if method.startswith("kubernetes-internal-ip"):
        return ["the Node's InternalIP changes, as with another --node-ip of the kubelet, or %s loses it" % found.link]
    destination = method.partition("=")[2]
    if destination == found.address.partition("/")[0]:
        return []
    return ["another route to %s is added, for example by a VPN or with a lower metric" % destination]


def _newcomers(limit, family):
    """The kernel lists a new link last, and Calico begins at the end."""
    if limit.inside:
        return ["a link made later has an address inside %s" % ", ".join(map(str, limit.inside))]
    return ["%s makes %s with an IPv%d address" % (who, name, family) for who, name in NEWCOMERS if limit.verdict(name) is None]


def _usual_inside(limit, asked):
    """Tools choose no network that is already in use on the node."""
    if asked.family != 4:
        return []
    used = [network_of("%s/%d" % (one.ip, one.prefix)) for link in asked.host.links for one in link.of(4) if one.prefix]
    found = []
    for who, name in NEWCOMERS:
        taken = next((ip for ip in USUAL.get(who, ()) if limit.within(ip) and not any(ip in network for network in used)), None)
        if taken:
            found.append("%s makes %s with %s" % (who, name, taken))
    return found


def _made_again(limit, found, asked):
    """A virtual link that is deleted and made again moves to the end of the kernel's list."""
    behind = _qualifying_after(limit, found, asked)
    return ["%s (%s) is made again" % (link.name, text) for link, text in behind if link.virtual]


def _order_of_nics(limit, found, asked):
    """Which of two NICs is listed last is settled by the order in which their drivers find them at boot."""
    taken = next(link for link in asked.host.links if link.name == found.link)
    behind = _qualifying_after(limit, found, asked)
    if taken.virtual:
        return []
    return ["%s (%s) is found after %s at a boot" % (link.name, text, found.link) for link, text in behind if not link.virtual and link.name != "lo"]


def _qualifying_after(limit, found, asked):
    """[(link, address)] of the links that would be taken if they came first."""
    ways = []
    for link in asked.host.backwards():
        fits = [one for one in link.of(asked.family) if is_global_unicast(one.ip) and limit.within(one.ip)]
        another = fits and link.name != found.link and fits[0].text(asked.version) != found.address
        if another and limit.verdict(link.name) is None:
            ways.append((link, fits[0].text(asked.version)))
    return ways
