"""Which files of tests/lab boot machines. They run one after the other, beside all others: two cores do not bear two such clusters."""

from __future__ import annotations

import re

_REPAIRS = "autodetection|bridges|by_plan|ipam|probes|runtime|swap"
MACHINES = re.compile(r"lab/test_(autodetect_guest|cluster|control_plane|diagnosis|recycle|scenarios|secrets|variants|repair_(%s))\.py" % _REPAIRS)
