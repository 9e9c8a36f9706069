"""The make targets that a user meets first."""

from __future__ import annotations

import json
import resource

import pytest
from checkout import BIN, ROOT, run
from spaces import usable


def preflight(*before, **environment):
    return run(*before, "make", "preflight", expect=(0, 2), **environment)


def test_help_names_every_target():
    said = run("make", "help")
    for name in ("setup", "preflight", "test", "bench"):
        assert "make %s " % name in said


def test_preflight_needs_no_network_once_it_is_set_up(tmp_path):
    """Nothing of this machine's network is in the namespace that it runs in. Ten seconds are promised, of which half may be work."""
    if usable():
        pytest.skip(usable())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = preflight("unshare", "-n", ARGS="-e nodecare_report_dir=%s" % tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Report: %s/report.html" % tmp_path in said
    assert "changed=0" in said
    # Not by the clock: other tests run beside this one.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5


def test_preflight_tells_good_from_bad_by_its_exit_code(tmp_path):
    """A rule of the user's own decides here, so that the outcome does not depend on the machine that the test runs on."""
    for wanted, code in ((1, 0), (2, 2)):
        rule = '{"id": "site.one", "query": "schema", "expect": {"matches": "/%d$"}, "message": "it is {value}"}' % wanted
        only = '{"nodecare_checks": ["site"], "nodecare_site_rules": [%s], "nodecare_report_dir": "%s"}' % (rule, tmp_path)
        (tmp_path / "vars.json").write_text(only)
        run("make", "preflight", "ARGS=-e @%s" % (tmp_path / "vars.json"), expect=(code,))


def test_programs_find_the_collection_from_the_checkout():
    assert "nodecare.kubernetes.node_check" in run(BIN / "ansible-doc", "-l", "nodecare.kubernetes")
    assert '"schema": "nodecare.node/1"' in run(
        *(BIN / "ansible", "localhost", "-m", "nodecare.kubernetes.node_check", "-a", "checks=swap"),
        *("-e", json.dumps({"ansible_python_interpreter": str(BIN / "python")})),
    )
    assert "preflight.yml" in run(BIN / "ansible-playbook", "--syntax-check", "playbooks/preflight.yml", cwd=ROOT)


def test_a_machine_without_a_usable_python_is_told_what_to_do(tmp_path):
    assert "apt-get install python3" in run("sh", "requirements/python.sh", "3.98", "3.99", expect=(1,), HOME=str(tmp_path))
