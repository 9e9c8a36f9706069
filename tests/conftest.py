"""What takes long is started first, so that it does not keep one process busy while the others have nothing left to do.

What shares a file stays in one process, and so shares its sshd or its namespaces, but for the files whose tests share nothing.
What boots machines has lanes of its own (lanes.py).

No test asks the user's cluster, nor a proxy for what it has started itself; that holds for each process, since each reads this file.
"""

from __future__ import annotations

import os

from lanes import MACHINES, lane_of
from xdist.scheduler import LoadFileScheduling

from lab.fleet import CLUSTER

APART = ("integration/test_repair.py", "integration/test_repair_plan.py", "integration/test_repair_runtime.py", "unit/test_repair_runtime_daemons.py")

PROXIES = ("no_proxy", "NO_PROXY")
HERE = ("127.0.0.1", "localhost", "::1")


def alone():
    for name in filter(CLUSTER.match, list(os.environ)):
        del os.environ[name]
    # Most programs look at one of the two only, so that both get what either said.
    direct = ",".join(dict.fromkeys([one for name in PROXIES for one in os.environ.get(name, "").split(",") if one] + list(HERE)))
    os.environ.update(dict.fromkeys(PROXIES, direct))


alone()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not (item.get_closest_marker("slow") or MACHINES.search(item.nodeid)))


class ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return lane_of(file) or (nodeid if file.endswith(APART) else file)


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)
