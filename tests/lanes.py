"""Which files of tests/lab boot machines. Those that need a whole cluster share one and run one after the other: two cores do not bear two of them.

Beside them, in another process, run first the files that need a node or two, and then all others.
"""

from __future__ import annotations

import re

LANES = {
    "a cluster with Calico": r"autodetect_guest|cluster|diagnosis|recycle|scenarios|secrets|repair_(autodetection|bridges|by_plan|ipam|probes|runtime)",
    "a node or two": r"control_plane|variants|repair_swap",
}
FILES = {lane: re.compile(r"lab/test_(%s)\.py" % names) for lane, names in LANES.items()}
MACHINES = re.compile(r"lab/test_(%s)\.py" % "|".join(LANES.values()))


def lane_of(file: str) -> str | None:
    """None for a file that boots no machine."""
    return next((lane for lane, files in FILES.items() if files.search(file)), None)
