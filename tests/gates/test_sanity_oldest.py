"""What ansible-test says on the oldest ansible-core, and that all of it can be imported there. A file of its own, so that another process may take it."""

from __future__ import annotations

import pytest
from checkout import ROOT, files, run
from cores import OLDEST, installed
from sanity import sanity

DEPEND = ("action-plugin-docs", "ansible-doc", "runtime-metadata", "validate-modules")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sanity():
    """What depends on the core. All else reads the same lines as the newest's does."""
    sanity(OLDEST, *(word for name in DEPEND for word in ("--test", name)))


def test_everything_can_be_imported():
    """Nothing is at hand but that core and what it needs itself. What may be imported from where, the newest's sanity has told."""
    names = ["ansible_collections.nodecare.kubernetes.%s" % path.removesuffix(".py").replace("/", ".") for path in files("plugins/*.py")]
    assert len(names) > 100
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    assert run(installed(OLDEST) / "python", "-c", code, *names, PYTHONPATH=str(ROOT / ".collections")) == ""
