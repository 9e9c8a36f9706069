# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Is the clock kept, and do the nodes' clocks agree?"""

from __future__ import annotations

import bisect

from ..._policy import threshold
from .._rule import across, by_hand, fail, passed, rule, skip, unknown, warn

SETTLING = threshold("clock_settle_seconds", 900, "For how long after its boot a node may take to synchronise its clock.")


@rule(
    "host.time",
    "The clock is not kept",
    needs="host.time",
    uses="host.virtualisation",
    remedy=by_hand("systemctl enable --now chronyd || systemctl enable --now systemd-timesyncd"),
)
def time(facts, virtualisation, policy):
    """Certificates, tokens and leases are only as good as the clock. The kernel is asked itself, since every daemon that
    keeps its clock tells it so.
    """
    kernel = facts["kernel"]
    if kernel is None:
        return unknown("the kernel does not tell whether its clock is synchronised")
    if kernel["synchronised"]:
        return passed("synchronised, off by at most %.0f ms" % (kernel["max_error_us"] / 1000), **kernel)
    if (virtualisation or {}).get("container"):
        return skip("this is a container (%s), whose clock its host keeps" % virtualisation["container"])
    return _doubtful(facts) or _not_kept(facts["keepers"], facts["uptime_s"], policy)


def _doubtful(facts):
    """Two keepers of the clock say nothing to the kernel."""
    keepers = facts["keepers"]
    if any("chrony" in name for name in keepers) and facts["rtcsync"] is False:
        return unknown("cannot tell: chronyd runs without rtcsync in its configuration, and so never tells the kernel that the clock is kept", keepers=keepers)
    if not keepers and facts["guests"]:
        return unknown("cannot tell: %s may set the clock from the hypervisor" % facts["guests"][0], guests=facts["guests"])
    return None


def _not_kept(keepers, uptime, policy):
    if not keepers:
        return fail("the kernel's clock is not synchronised, and nothing that could do it runs (chrony, ntpd, systemd-timesyncd)", keepers=keepers)
    said = "%s runs, but the kernel's clock is not synchronised" % keepers[0]
    remedy = by_hand("chronyc sources || timedatectl timesync-status")
    if uptime is not None and uptime < policy[SETTLING]:
        return warn("%s yet, %.0f s after boot" % (said, uptime), remedy, keepers=keepers, uptime_s=uptime)
    return fail("%s: can it reach its servers?" % said, remedy, keepers=keepers, uptime_s=uptime)


SKEW = threshold("clock_skew_seconds", 1.0, "Clocks of two nodes may differ by this much. etcd complains from 1 s on.")
UNSURE = threshold("clock_uncertainty_seconds", 10.0, "A node whose clock could not be read more precisely than this is not judged.")
ROUNDING = 0.002


@across(
    "host.clock_skew",
    "Its clock differs from the other nodes'",
    needs=("taken", "host.time"),
    remedy=by_hand("chronyc makestep || systemctl restart systemd-timesyncd"),
)
def clock_skew(nodes, policy):
    """Certificates and tokens of a node whose clock is ahead are not valid yet for the others. Each node's clock was read
    some time between the sending of the probe and its answer, so the difference is only known within that time: a node is
    accused where even the most favourable reading proves the difference, from more than half of the others. It passes where
    no difference could hide in that time, or where the kernel says how well its clock is kept. Nodes that different controllers
    have read are not compared: their controllers' clocks may be what differs.
    """
    read_by = {}
    for name, (taken, _time) in nodes.items():
        read_by.setdefault(taken.get("clock"), {})[name] = nodes[name]
    return {name: verdict for those in read_by.values() for name, verdict in _by_one_clock(those, policy).items()}


def _by_one_clock(nodes, policy):
    spans = {name: offset(taken) for name, (taken, _time) in nodes.items()}
    known = {name: span for name, span in spans.items() if span and span[1] - span[0] <= 2 * policy[UNSURE]}
    lows, highs = sorted(low for low, _high in known.values()), sorted(high for _low, high in known.values())
    verdicts = {}
    for name, span in spans.items():
        if span is None:
            verdicts[name] = unknown("when this node was read is not among its facts")
        elif name not in known:
            verdicts[name] = unknown("the node took %.1f s to answer, so its clock is known to ± %.1f s only" % (span[1] - span[0], (span[1] - span[0]) / 2))
        elif len(known) < 2:
            verdicts[name] = skip("there is no other node to compare with, read by the same controller")
        else:
            verdicts[name] = _compared(span, lows, highs, policy[SKEW], nodes[name][1]["kernel"] or {})
    return verdicts


def offset(taken):
    """(least, most) seconds by which the node's clock can be ahead of the controller's; None where nobody noted the time.

    The first reading was made after the probe was sent and at least the probe's own duration before the answer came; the
    last one at least that duration after the sending and before the answer.
    """
    if not all(isinstance(taken.get(one), (int, float)) for one in ("at", "until", "seconds", "sent", "received")):
        return None
    low = max(taken["at"] - taken["received"] + taken["seconds"], taken["until"] - taken["received"]) - ROUNDING
    high = min(taken["at"] - taken["sent"], taken["until"] - taken["sent"] - taken["seconds"]) + ROUNDING
    if low > high:  # its clock was set while it was read: either reading may be the one that counts
        low = min(taken["at"], taken["until"]) - taken["received"]
        high = max(taken["at"], taken["until"]) - taken["sent"]
    return low, high


def _compared(span, lows, highs, limit, kernel):
    low, high = span
    ahead_of = bisect.bisect_left(highs, low - limit)  # others whose most is surely below this one's least
    behind = len(lows) - bisect.bisect_right(lows, high + limit)
    others = len(lows) - 1
    unsure = (high - low) / 2
    evidence = {"offset_s": round((low + high) / 2, 3), "uncertainty_s": round(unsure, 3), "limit_s": limit}
    count = max(ahead_of, behind)
    if ahead_of + behind <= others / 2:
        hidden = max(high - lows[0], highs[-1] - low)
        if hidden <= limit:
            return passed("at most %.1f s from any other node's" % hidden, **evidence)
        if kernel.get("synchronised") and kernel["max_error_us"] <= limit * 1e6:
            return passed(
                "synchronised to %.0f ms, and not provably apart from the others (known to ± %.1f s)" % (kernel["max_error_us"] / 1000, unsure), **evidence
            )
        said = "cannot tell: a difference of up to %.1f s could hide in the time that reading took (± %.1f s), and this clock is not known to be synchronised"
        return unknown(said % (hidden, unsure), **evidence)
    if count == ahead_of:
        way, gap = "ahead of", low - highs[ahead_of - 1]
    else:
        way, gap = "behind", lows[-behind] - high
    who = "the other node" if others == 1 else "%d of the other %d nodes" % (count, others)
    doubt = "; which of the two is wrong cannot be told from this" if others == 1 else ""
    return fail(
        "its clock is at least %.1f s %s %s (it is %+.1f s ± %.1f s from the controller's)%s" % (gap, way, who, evidence["offset_s"], unsure, doubt), **evidence
    )
