"""What takes long is started first, so that it does not keep one process busy while the others have nothing left to do.

What shares a file stays in one process, and so shares its sshd or its namespaces, but for the files whose tests share nothing.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

APART = ("integration/test_repair.py", "integration/test_repair_plan.py", "integration/test_repair_runtime.py", "unit/test_repair_runtime_daemons.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.get_closest_marker("slow"))


class ByFile(LoadFileScheduling):
    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return nodeid if file.endswith(APART) else file


def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)
