"""ansible-test sanity on the oldest ansible-core. A file of its own, so that another process may take it."""

from __future__ import annotations

import pytest
from cores import OLDEST
from sanity import sanity

DEPEND = ("action-plugin-docs", "ansible-doc", "compile", "import", "runtime-metadata", "validate-modules")


@pytest.mark.slow
def test_sanity():
    """What depends on the core. All else reads the same lines as the newest's does."""
    sanity(OLDEST, *(word for name in DEPEND for word in ("--test", name)))
