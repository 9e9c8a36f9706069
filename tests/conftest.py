"""What takes long is started first, so that it does not keep one process busy while the others have nothing left to do.

What shares a file stays in one process, and so shares its sshd or its namespaces, but for the files that are marked ``apart``.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.get_closest_marker("slow"))
    for item in items:
        if not item.get_closest_marker("apart"):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
