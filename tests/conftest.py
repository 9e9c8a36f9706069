"""What takes long is started first, so that it does not keep one process busy while the other has nothing left to do."""

from __future__ import annotations


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.get_closest_marker("slow"))
