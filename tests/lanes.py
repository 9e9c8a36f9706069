"""Which files of tests/lab boot machines, and which of them run one after the other in one process.

With three processes or more there are two clusters side by side, each for about half of what needs one, which is what two cores bear.
"""

from __future__ import annotations

import re

LANES = {
    "one cluster": r"autodetect_guest|cluster|diagnosis|recycle|secrets|repair_by_plan",
    "another cluster": r"scenarios|repair_(autodetection|bridges|ipam|probes|runtime)",
    "nodes without Calico, and with another Debian": r"control_plane|variants|repair_swap",
}
FILES = {lane: re.compile(r"lab/test_(%s)\.py" % names) for lane, names in LANES.items()}
MACHINES = re.compile(r"lab/test_(%s)\.py" % "|".join(LANES.values()))


def lane_of(file: str, processes: int) -> str | None:
    """The lane in which a file's tests run; None for those that boot no machine."""
    found = next((lane for lane, files in FILES.items() if files.search(file)), None)
    return "machines" if found and processes < len(LANES) else found
