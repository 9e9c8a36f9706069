# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which nodes stand out from the others: the statistics behind load.outlier and the filter load_outliers.

A node is only called an outlier by two keys: it is far above its peers, and it is above what any node may have. Where the
peers themselves are above that, nothing is wrong with this node in particular: the cause is common.
"""

from __future__ import annotations

import math
from statistics import median
from typing import NamedTuple

SMALL = 5  # among fewer nodes the median absolute deviation (MAD) says nothing
NORMAL = 0.6745  # what the MAD of a normal distribution is, in standard deviations
LEAST_SPREAD = 0.1  # of the median: idle nodes are so alike that their MAD is next to 0


class Metric(NamedTuple):
    name: str
    least: str  # the threshold that any node may have
    step: float  # differences below it mean nothing
    read: object  # the value among the facts of the area load, None where there is none


class Standing(NamedTuple):
    """Where one node stands among its peers by one metric."""

    node: str
    metric: str
    value: float
    median: float
    score: float
    by: str  # modified z | ratio
    stands_out: bool
    common: bool  # the node is above the threshold, and its peers are too
    reason: str


def load_per_cpu(load):
    """Sustained load: high over one minute and over five."""
    averages, cpus = load.get("averages") or {}, load.get("cpus")
    values = [averages.get("one"), averages.get("five")]
    return min(values) / cpus if finite(cpus) and cpus > 0 and all(map(finite, values)) else None


def stall(kind):
    """Sustained pressure: high over ten seconds and over sixty; what part of the time some task waited."""

    def read(load):
        some = ((load.get("pressure") or {}).get(kind) or {}).get("some") or {}
        values = [some.get("avg10"), some.get("avg60")]
        return min(values) if all(map(finite, values)) else None

    return read


METRICS = (
    Metric("load_per_cpu", "load_per_cpu", 0.1, load_per_cpu),
    Metric("cpu_pressure", "pressure_cpu_percent", 2.0, stall("cpu")),
    Metric("io_pressure", "pressure_io_percent", 2.0, stall("io")),
    Metric("memory_pressure", "pressure_memory_percent", 1.0, stall("memory")),
)
WAITING_FOR = {"cpu_pressure": "a CPU", "io_pressure": "I/O", "memory_pressure": "memory"}


def finite(value):
    """A number that a load can be: neither NaN nor infinite, nor an integer of a hundred digits."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e15 < value < 1e15


def scores(values, step=0.0):
    """[(median that each value is compared with, score)] and what the score is. Two values at least."""
    if len(values) < SMALL:
        compared = [(value, median(values[:i] + values[i + 1 :])) for i, value in enumerate(values)]
        return [(middle, value / max(middle, step) if max(middle, step) > 0 else math.inf if value > 0 else 1.0) for value, middle in compared], "ratio"
    middle = median(values)
    spread = max(median(abs(value - middle) for value in values), LEAST_SPREAD * abs(middle), step)
    return [
        (middle, NORMAL * (value - middle) / spread if spread > 0 else 0.0 if value == middle else math.copysign(math.inf, value - middle)) for value in values
    ], "modified z"


def standings(nodes, policy):
    """([Standing], {node: why it is not compared}) of {node: facts of the area load}."""
    left_out = {name: reason for name, load in nodes.items() for reason in [_not_comparable(load, policy)] if reason}
    able = {name: load for name, load in nodes.items() if name not in left_out}
    if len(able) < 2:
        left_out.update(dict.fromkeys(able, "there is no other node to compare it with"))
        return [], left_out
    return [standing for metric in METRICS for judged, peers in _classes(able) for standing in _stand(metric, judged, peers, policy)], left_out


def _not_comparable(load, policy):
    if load_per_cpu(load) is None:
        return "its load was not read"
    uptime, least = load.get("uptime"), policy["outlier_uptime_seconds"]
    if finite(uptime) and uptime < least:
        return "it booted %.0f s ago, and for %.0f s its load is that of starting up" % (uptime, least)
    return None


def _classes(nodes):
    """[(nodes to judge, nodes to compare them with)]: those of one size among themselves where they are enough, the rest with all."""
    sizes = {}
    for name, load in nodes.items():
        sizes.setdefault(int(load["cpus"]).bit_length(), []).append(name)
    alike = [dict.fromkeys(names) for names in sizes.values() if len(names) >= SMALL]
    rest = dict.fromkeys(name for names in sizes.values() if len(names) < SMALL for name in names)
    groups = [({name: nodes[name] for name in names}, {name: nodes[name] for name in names}) for names in alike]
    return groups + ([({name: nodes[name] for name in rest}, nodes)] if rest else [])


def _stand(metric, judged, peers, policy):
    values = {name: value for name, load in peers.items() for value in [metric.read(load)] if finite(value)}
    if len(values) < 2:
        return
    scored, by = scores(list(values.values()), metric.step)
    least, limit = policy[metric.least], policy["outlier_score" if by == "modified z" else "outlier_ratio"]
    of = dict(zip(values, scored))
    above = {name for name, (middle, score) in of.items() if values[name] >= least and middle < least and score >= limit}
    others = [(value, peers[name]["cpus"]) for name, value in values.items() if name not in above]
    for name in judged:
        if name in values:
            middle, score = of[name]
            common = values[name] >= least and middle >= least
            words = _words(metric, values[name], peers[name]["cpus"], others) if name in above else ""
            yield Standing(name, metric.name, round(values[name], 2), round(middle, 2), round(min(score, 1e6), 1), by, name in above, common, words)


def _words(metric, value, cpus, others):
    """``load 61.0 on 2 CPUs; the other 7 nodes have 0.8 to 1.9``"""
    theirs = [one for one, _cpus in others]
    who = "the other %d nodes" % len(theirs) if len(theirs) > 1 else "the other node"
    if metric.name in WAITING_FOR:
        return "tasks wait for %s %.0f %% of the time; on %s %s %%" % (WAITING_FOR[metric.name], value, who, _range(theirs, "%.0f"))
    has = "have" if len(theirs) > 1 else "has"
    if all(one == cpus for _value, one in others):
        return "load %.1f on %s; %s %s %s" % (value * cpus, _cpus(cpus), who, has, _range([one * cpus for one in theirs], "%.1f"))
    return "load %.1f on %s, %.1f per CPU; %s %s %s per CPU" % (value * cpus, _cpus(cpus), value, who, has, _range(theirs, "%.1f"))


def _range(values, shape):
    low, high = shape % min(values), shape % max(values)
    return low if low == high else "%s to %s" % (low, high)


def _cpus(cpus):
    return "1 CPU" if cpus == 1 else "%d CPUs" % cpus
