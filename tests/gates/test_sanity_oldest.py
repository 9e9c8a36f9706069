"""ansible-test sanity on the oldest ansible-core. A file of its own, so that another process may take it."""

from __future__ import annotations

import pytest
from cores import OLDEST
from sanity import sanity


@pytest.mark.slow
def test_sanity():
    """All but pylint, which reads the same lines as the newest's does, and takes as long as all else together."""
    sanity(OLDEST, "--skip-test", "pylint")
