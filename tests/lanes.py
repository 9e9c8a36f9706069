"""Which files of tests/lab boot machines. Those that need a whole cluster share one and run one after the other: two cores do not bear two of them.

Beside them, in another process, run those that need a node or two, and in a third all others. Both give way to the
first, so what is measured by the clock, and what must not look overloaded, is among its tests.
"""

from __future__ import annotations

import re

CLUSTER = "a cluster with Calico"
LANES = {
    CLUSTER: r"cluster|diagnosis|recycle|scenarios|secrets|startup_time|variants|repair_(autodetection|bridges|by_plan|ipam_node|probes|runtime)",
    "a node or two": r"autodetect_guest|blocked_tasks|control_plane|repair_(docker|swap)",
}
FILES = {lane: re.compile(r"lab/test_(%s)\.py" % names) for lane, names in LANES.items()}
MACHINES = re.compile(r"lab/test_(%s)\.py" % "|".join(LANES.values()))


def lane_of(file: str) -> str | None:
    """None for a file that boots no machine."""
    return next((lane for lane, files in FILES.items() if files.search(file)), None)
