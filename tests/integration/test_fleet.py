"""Preflight over a real sshd, as users start it: what it says, what it costs, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from cores import OLDEST, installed
from patients import HOSTILE_LINKS

from lab.fleet import CHECKOUT, PATH

PATIENCE = 3  # seconds that a look at a daemon may take here
AREAS = ("swap", "links", "kubelet", "load", "host")
QUIET = {"nodecare_checks": ["swap", "links"]}


@pytest.fixture(scope="module")
def everything(ansible):
    """One run over all of them, with every rule."""
    return ansible("ansible-playbook", "playbooks/preflight.yml", variables={"nodecare_timeout": PATIENCE})


# -- everything at once ------------------------------------------------------------------------------------------------


def test_ill_nodes_do_not_hide_the_others(everything, fleet):
    assert everything.code != 0
    assert set(everything.report["nodes"]) == set(fleet.targets)
    for node in ("well-1", "well-2", "swapping", "silent", "hostile", "mortal"):
        areas = {one["id"].split(".")[0] for one in everything.findings(node)}
        assert areas.issuperset(AREAS), "%s has no findings about %s" % (node, set(AREAS) - areas)


def test_no_rule_broke(everything):
    assert [one["message"] for one in everything.report["findings"] if "broke:" in one["message"]] == []


def test_nothing_is_ever_changed(everything):
    assert {host: counts["changed"] for host, counts in everything.recap.items()} == dict.fromkeys(everything.recap, 0)


def test_the_report_keeps_to_its_schema(everything):
    validate = pytest.importorskip("jsonschema").validate
    validate(everything.report, json.loads((CHECKOUT / "docs" / "report.schema.json").read_text()))


@pytest.mark.parametrize(
    ("node", "rule", "says"),
    [
        ("gone", "node.unreachable", r"reach|connect"),
        ("garbled", "node.unreadable", r"no module named json|valid|JSON"),
    ],
)
def test_a_node_that_cannot_be_read_is_a_finding(everything, node, rule, says):
    (finding,) = everything.findings(node)
    assert (finding["id"], finding["status"]) == (rule, "fail")
    assert re.search(says, finding["message"])


def test_swap_that_is_on_and_returns(everything):
    assert everything.worst("swapping", "swap.active") == "fail"
    assert everything.worst("swapping", "swap.returns") == "fail"
    assert any("/dev/sdb1" in one["message"] and "/etc/fstab" in one["message"] for one in everything.findings("swapping", "swap.returns"))


def test_a_runtime_that_never_answers_costs_its_deadline_only(everything):
    (finding,) = [one for one in everything.findings("silent", "runtime.unresponsive") if one["status"] == "fail"]
    waited = [float(number) for number in re.findall(r"([\d.]+) s\b", finding["message"])]
    assert any(PATIENCE - 0.1 <= seconds <= PATIENCE + 20 for seconds in waited), finding["message"]
    assert PATIENCE - 0.1 <= everything.report["nodes"]["silent"]["taken"]["seconds"] < PATIENCE + 20
    assert everything.worst("well-1", "runtime.unresponsive") in ("pass", "skip")


def test_who_may_not_read_does_not_pass(everything):
    (finding,) = everything.findings("mortal", "swap.returns")
    assert finding["status"] == "unknown"
    assert "/etc/fstab: permission denied" in finding["message"]
    assert "become" in finding["message"]


# -- names made to break things ----------------------------------------------------------------------------------------


def test_hostile_names_are_found_as_they_are(everything):
    bridges = {one["evidence"].get("bridge") for one in everything.findings("hostile", "links.stray_bridge")}
    assert bridges == set(HOSTILE_LINKS)
    sources = " ".join(one["message"] for one in everything.findings("hostile", "swap.returns"))
    assert "<script>alert(1)</script>{{7*7}}$(reboot)" in sources


def test_hostile_names_reach_no_terminal(everything):
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", everything.said)


def test_hostile_names_reach_no_shell(everything):
    for one in everything.findings("hostile", "links.stray_bridge"):
        if one["remedy"] and "$(reboot)" in one["evidence"].get("bridge", ""):
            assert "'$(reboot)'" in one["remedy"]["manual"]


def test_hostile_names_bend_no_report(everything):
    ElementTree.parse(everything.place / "junit.xml")  # well-formed
    page = (everything.place / "report.html").read_text()
    assert "<script>alert(1)" not in page
    assert "<b>x" not in page
    assert sum(map(len, (one["message"] for one in everything.report["findings"]))) < 200_000, "a line of 100 kB was passed on whole"


# -- how a run ends ----------------------------------------------------------------------------------------------------


def test_a_healthy_set_ends_well(ansible):
    run = ansible("ansible-playbook", "playbooks/preflight.yml", "--limit", "well-1,well-2", variables=QUIET)
    assert run.code == 0, run.said
    assert {one["status"] for one in run.report["findings"]} <= {"pass", "skip"}
    assert {host: counts["changed"] for host, counts in run.recap.items()} == {"well-1": 0, "well-2": 0}


def test_one_error_is_enough_and_check_mode_says_the_same(ansible, everything):
    limit = ("--limit", "well-1,swapping")
    run = ansible("ansible-playbook", "playbooks/preflight.yml", "--check", "--diff", *limit, variables={"nodecare_checks": ["swap.active"]})
    assert run.code != 0
    assert [(one["node"], one["status"]) for one in run.report["findings"]] == [("swapping", "fail"), ("well-1", "pass")]
    assert run.findings("swapping") == everything.findings("swapping", "swap.active")
    assert all(counts["changed"] == 0 for counts in run.recap.values())


def test_one_unreachable_node_is_enough(ansible):
    run = ansible("ansible-playbook", "playbooks/preflight.yml", "--limit", "well-1,gone", variables=QUIET)
    assert run.code != 0
    assert run.worst("gone", "node.unreachable") == "fail"
    assert run.worst("well-1", "swap.active") == "pass"


# -- other ways to use it ----------------------------------------------------------------------------------------------


def test_ad_hoc(ansible):
    run = ansible("ansible", "well-1", "-m", "nodecare.kubernetes.node_check", "-a", "checks=swap")
    assert run.code == 0, run.said
    answer = json.loads(run.said[run.said.index("{") :])
    assert answer["changed"] is False
    assert answer["summary"]["worst"] == "pass"
    assert "swap" in answer["facts"]
    assert "links" not in answer["facts"], "no rule about swap needs it"


def test_by_name_from_anywhere_with_the_oldest_core(ansible, tmp_path):
    """Far from the checkout and its ansible.cfg: no pipelining, facts injected, 5 forks, as everybody has it."""
    (tmp_path / "ansible.cfg").touch()
    elsewhere = {"ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections")}
    limit = ("--limit", "well-1,swapping")
    run = ansible("ansible-playbook", "nodecare.kubernetes.preflight", *limit, programs=installed(OLDEST), cwd=tmp_path, variables=QUIET, **elsewhere)
    assert run.code == 2, run.said
    assert run.worst("well-1", "swap.active") == "pass"
    assert run.worst("swapping", "swap.active") == "fail"


def test_become(ansible):
    """Who logged in may read little, who he becomes may read all: then the verdict is root's."""
    if not shutil.which("sudo", path=PATH):
        pytest.skip("the package sudo is not installed")
    # He did log in as root, were it not for the target's face: Ansible must not think that there is nothing to do.
    environment = {"ANSIBLE_BECOME_ALLOW_SAME_USER": "true"}
    run = ansible("ansible-playbook", "playbooks/preflight.yml", "--limit", "mortal,sudoer", variables=QUIET, **environment)
    assert run.code == 0, run.said
    assert run.worst("mortal", "swap.returns") == "unknown"
    assert run.worst("sudoer", "swap.returns") == "pass"
    assert {one["status"] for one in run.findings("sudoer")} <= {"pass", "skip"}
