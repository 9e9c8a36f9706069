# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Why swap is better left as it is: asked before anything is changed, and said with the way out."""

from __future__ import annotations

from ..._swap import needed, returning, shortage, tolerates, unread

LARGE_MIB = 1024  # so much takes minutes to move back, during which everything on the node is slow

DECLARED = {
    "NixOS": "set swapDevices = lib.mkForce [ ]; and zramSwap.enable = false; in its configuration, then nixos-rebuild switch",
    "ostree": "set it where the machine is described (Ignition, Butane, MachineConfig, kickstart or the image's own build)",
}


def refusals(view, facts, foreseen, changes, settings):
    """Each reason, the most telling first."""
    yield from (why for look in REASONS for why in [look(view, facts, foreseen, changes, settings)] if why)


def _container(view, facts, foreseen, changes, settings):
    kind = (facts["swap"]["boot"] or {}).get("container")
    return kind and "this is a container (%s): its swap is that of the machine below. Turn it off there, or set the container's swap to 0" % kind


def _declared(view, facts, foreseen, changes, settings):
    system = (facts["swap"]["boot"] or {}).get("declared_by")
    return system and "the system is declared by %s, which takes changes back: %s" % (system, DECLARED.get(system, "declare it there"))


def _wanted(view, facts, foreseen, changes, settings):
    config = facts["kubelet"]["config"]
    why = None if settings.even_if_tolerated else tolerates(config) or unread(config)
    return why and "%s. To turn swap off all the same: even_if_tolerated=true" % why


def _unseen(view, facts, foreseen, changes, settings):
    seen = [one for one in facts["problems"] if one["fact"].startswith(("swap.active", "swap.boot"))]
    seen += [one for one in foreseen["problems"] if one["fact"].startswith("swap.sources")]
    return "cannot tell what would turn swap on again: %(what)s: %(why)s" % seen[0] if seen else None


def _unstoppable(view, facts, foreseen, changes, settings):
    coming = returning(foreseen["swap"]["sources"], foreseen["swap"]["boot"])
    return coming and "%(what)s would still be activated by %(by)s at the next boot, and nothing here can stop that: put it right by hand first" % coming[0]


def _unchangeable(view, facts, foreseen, changes, settings):
    return next((why for why in (view.paths.why_not(one.path) for one in changes) if why), None)


def _shared(view, facts, foreseen, changes, settings):
    """A link out of /etc leads to what somebody else looks after."""
    outside = [one.path for one in changes if not one.path.startswith("/etc/")]
    return "%s is not the node's own: what links to it belongs to somebody else" % outside[0] if outside else None


def _memory(view, facts, foreseen, changes, settings):
    areas = [area for area in facts["swap"]["active"] or [] if area["device"] not in facts["at_work"]]
    need = needed(areas, facts["swap"]["memory"] or {}, facts["kubelet"]["config"], settings.reserve_mib, settings.reserve_percent) if areas else None
    if areas and need is None:
        return "the node does not say how much memory is available"
    if need and shortage(need):
        return shortage(need) + ": drain the node first (kubectl drain --ignore-daemonsets), then run this again"
    if need and need["used_kib"] > LARGE_MIB * 1024 and not settings.allow_disruption:
        used = need["used_kib"] / 1024
        return "%.0f MiB are in swap; to move them back takes minutes in which pods are slow: drain the node first, or say allow_disruption=true" % used
    return None


REASONS = (_container, _declared, _wanted, _unseen, _unstoppable, _shared, _unchangeable, _memory)
