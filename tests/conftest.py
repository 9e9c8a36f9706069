"""How the tests are spread over processes: those of one file together, because they share what they started; gates each by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE / "gates" not in item.path.parents and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: not item.get_closest_marker("slow"))
