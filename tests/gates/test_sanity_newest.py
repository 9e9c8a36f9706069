"""ansible-test sanity on the newest ansible-core. A file of its own, so that another process may take it."""

from __future__ import annotations

import pytest
from cores import NEWEST
from sanity import sanity


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sanity():
    sanity(NEWEST)
