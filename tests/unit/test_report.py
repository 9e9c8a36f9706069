"""One report in every form: what each says, that it fits its reader, and that nothing a node says breaks it."""

from __future__ import annotations

import json
import re
import shlex
import unicodedata
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.nodecare.kubernetes.plugins.filter.judge import judge
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _judge, _report
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report import terminal, words
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from findings import HOSTILE, TAKEN, finding, fleet, hostile, report
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

SCHEMA = Draft202012Validator(json.loads((Path(__file__).parents[2] / "docs/report.schema.json").read_text()))
LOST = [_judge.judge_lost("n%d" % number, rule, "no route", policy({})) for number, rule in enumerate(_judge.OUTSIDE)]
ANYTHING = st.text(max_size=200) | st.sampled_from(HOSTILE)


def judged():
    """What all the rules there are say about a node of which nothing is known, and about one that was not reached."""
    empty = {"schema": "nodecare.node/1", "taken": TAKEN, "problems": []}
    known = policy({})
    findings = _judge.judge({"n1": empty}, {"n1": known}, list(RULES), known)
    return _report.document({"n1": empty, "n2": None}, findings + [_judge.judge_lost("n2", "node.unreachable", "no route", known)])


REPORTS = {"of nothing": report([]), "of no findings": report([], ["n1"]), "of every rule": judged(), "of lost nodes": report(LOST), "hostile": hostile()}
EACH = pytest.mark.parametrize("made", REPORTS.values(), ids=REPORTS)


# JSON


@EACH
def test_json_keeps_its_schema(made):
    text = _report.WRITERS["json"][1](made)
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == made
    SCHEMA.validate(json.loads(text))


def test_document_is_in_the_same_order_whatever_came_first():
    findings = [finding(node=node, status=status) for node in ("n10", "n2") for status in ("pass", "fail", "unknown", "warn")]
    made = report(findings)
    assert [(one["status"], one["node"]) for one in made["findings"]] == [
        (status, node) for status in ("fail", "warn", "unknown", "pass") for node in ("n2", "n10")
    ]
    assert list(made["nodes"]) == ["n2", "n10"]
    assert json.dumps(made) == json.dumps(report(findings[::-1], ["n2"]))


def test_saved_facts_can_be_judged_again(tmp_path):
    facts = {"schema": "nodecare.node/1", "taken": TAKEN, "problems": [], "swap": {"active": [{"device": "/dev/sda2", "size_kib": 1, "used_kib": 0}]}}
    _report.write(report([], ["n1"]), str(tmp_path), [], _report.bundle({"n1": facts, "lost": None}, {}))
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]
    again = judge(json.loads((tmp_path / "facts.json").read_text()), checks=["swap"])
    assert again == judge({"n1": facts}, checks=["swap"])
    assert {one["node"] for one in again} == {"n1"}


# JUnit: the rules of the schema that CI tools have in common

CHILDREN = {"testsuites": {"testsuite"}, "testsuite": {"testcase"}, "testcase": {"failure", "skipped", "system-out"}}
NEEDS = {
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "skipped": {"message"},
}


@EACH
def test_junit_is_what_ci_tools_read(made):
    root = ElementTree.fromstring(_report.WRITERS["junit"][1](made).encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        assert set(element.attrib) >= NEEDS.get(element.tag, set())
        assert element.tag != "testcase" or len(element) <= 1
    assert len(root) == len(made["nodes"])
    for suite in root:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        assert [int(suite.get(name)) for name in ("tests", "failures", "skipped")] == [
            len(suite.findall(tag)) for tag in ("testcase", "*/failure", "*/skipped")
        ]
        assert len({case.get("name") for case in suite}) == len(suite)
    statuses = Counter(one["status"] for one in made["findings"])
    assert len(root.findall("*/*/system-out")) == statuses["warn"]
    assert int(root.get("skipped")) == statuses["skip"] + statuses["unknown"]


def test_junit_says_what_to_do():
    text = _report.WRITERS["junit"][1](report([finding(), finding(message="and on again")]))
    root = ElementTree.fromstring(text)
    assert [case.get("name") for case in root[0]] == ["swap.active", "swap.active (2)"]
    assert root.find("*/*/failure").text == "Swap is on\nswap is on\nRepair: swapoff -a"


# Prometheus

SAMPLE = re.compile(r'(nodecare_[a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*)\})? (\d+(?:\.\d+)?)')


@EACH
def test_prometheus_reads_each_line(made):
    text = _report.WRITERS["prometheus"][1](made)
    assert text.endswith("\n")
    assert text.encode().decode() == text, "written with other escapes than Prometheus has"
    declared, seen = set(), set()
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP nodecare_\w+ .+|TYPE nodecare_\w+ gauge)", line)
            declared.add(line.split()[2])
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        assert sample.group(1) in declared
        assert sample.group(1, 2) not in seen, "the same series twice"
        seen.add(sample.group(1, 2))
    found = {(one["node"], one["id"], one["status"]) for one in made["findings"] if one["status"] in ("fail", "warn")}
    assert sum(name == "nodecare_finding" for name, _labels in seen) == len(found)


def test_prometheus_counts():
    of_all = finding("cluster.unreachable", "cluster")
    text = _report.WRITERS["prometheus"][1](report([finding(), finding(message="again"), finding(status="unknown"), of_all], ["n2"]))
    assert 'nodecare_finding{node="n1",id="swap.active",status="fail",severity="error"} 2\n' in text
    assert 'nodecare_findings{node="n1",status="unknown"} 1\n' in text
    assert 'nodecare_node_worst{node="n1"} 3\nnodecare_node_worst{node="n2"} 0\n' in text
    assert "nodecare_report_timestamp_seconds 1790000001.500\n" in text
    assert "nodecare_nodes 2\n" in text, "the cluster is none"


# The terminal


def columns(line):
    return sum(0 if unicodedata.category(one) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in line)


WIDE = "\u8282\u70b9" * 60  # a word of a command is never cut, however long


def fits(text):
    for line in text.split("\n"):
        assert line.isprintable(), line
        assert columns(line) <= 100 or WIDE in line, line
    return text


def both(made):
    return [fits(terminal.text(made, fancy=fancy)) for fancy in (True, False)]


@EACH
def test_terminal_fits(made):
    both(made)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(ANYTHING, ANYTHING, st.sampled_from(_judge.ORDER), ANYTHING), max_size=6))
def test_terminal_fits_whatever_nodes_say(said):
    remedy = {"playbook": None, "vars": {}, "disruptive": True, "reboot": True}
    both(
        report(
            [
                finding("links.r%d" % (n % 2), node, status, message, title=message, remedy={**remedy, "manual": manual})
                for n, (node, message, status, manual) in enumerate(said)
            ]
        )
    )


def test_terminal_fits_with_many_areas():
    both(report([finding("someverylongarea%d.rule" % number, "a-node-with-a-rather-long-name.example", "unknown") for number in range(12)]))


@pytest.mark.parametrize(("playbook", "limit"), [("repair_swap", " --limit n1,n2"), ("repair_autodetection", ""), ("repair_probes", "")])
def test_one_playbook_repairs_all_nodes_whatever_would_be_done_by_hand(playbook, limit):
    """What is one setting for all nodes has to see all of them, so it is not limited to those that are ill."""
    remedy = {"playbook": "nodecare.kubernetes." + playbook, "vars": {}, "disruptive": False, "reboot": False}
    findings = [finding(node="n%d" % number, status="fail", remedy={**remedy, "manual": "swapoff /dev/sd%d" % number}) for number in (1, 2)]
    for text in both(report(findings)):
        assert re.findall(r"ansible-playbook nodecare.kubernetes.%s( --limit \S+)?" % playbook, text) == [limit]
        assert "swapoff" not in text


def test_terminal_says_what_and_where_and_how():
    findings = [finding(node="n%d" % number, status="fail" if number < 10 else "pass") for number in range(1, 13)]
    findings += [finding("load.%s" % name, "n2", "unknown", "cannot tell: /x: permission denied (read without root; run with become)") for name in "abcdef"]
    findings += [finding("host.ports", "n3", "warn", "port 10250 is held by nc", title="A port is taken", remedy=None)]
    for text in both(report(findings)):
        assert text.startswith("12 nodes: 9 failed, 3 well\n9 fail, 1 warn, 6 unknown, 3 pass, 0 skip\n")
        row = next(line for line in text.split("\n") if re.match(r"\W*n2\b", line))
        assert sorted(re.findall(r"FAIL|warn|ok|\?", row)) == ["?", "FAIL"]
        assert "FAIL     Swap is on  [swap.active]\n         on 9 nodes: n1..n9\n         swap is on\n         Repair:\n           swapoff -a\n" in text
        assert text.count("swapoff") == 1
        assert "warn     A port is taken  [host.ports]\n         n3: port 10250 is held by nc\n" in text
        assert "6 rules on n2: read without root; run with become (load.a, load.b, load.c, load.d, …)" in text.replace("\n         ", " ")
        assert text.index("[swap.active]") < text.index("[host.ports]") < text.index("Could not be told")


def test_terminal_colours_only_where_it_may():
    made = report([finding(), finding(status="unknown")])
    for fancy in (True, False):
        coloured = terminal.text(made, colour=True, fancy=fancy)
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == terminal.text(made, fancy=fancy)


def test_terminal_shows_of_many_nodes_those_that_matter():
    findings = [finding(node="n%d" % number, status="fail" if number in (7, 500) else "pass") for number in range(1, 1001)]
    for text in both(report(findings)):
        assert "998 nodes with nothing found" in text
        assert len([line for line in text.split("\n") if re.match(r"\W*n\d+\b", line)]) == 2
    for text in both(fleet(1000)):
        assert len(text.split("\n")) < 700


# Words


@pytest.mark.parametrize(
    ("names", "room", "said"),
    [
        (["n1"], 50, "n1"),
        (["n1", "n2"], 50, "n1, n2"),
        (["n1", "n2", "n3", "n5"], 50, "n1..n3, n5"),
        (["n8", "n9", "n10", "n11"], 50, "n8..n11"),
        (["n08", "n09", "n10", "n011"], 50, "n08..n10, n011"),
        (["a1.x", "a2.x", "a3.y"], 50, "a1.x, a2.x, a3.y"),
        (["n%d" % number for number in range(1, 80, 2)], 30, "n1, n3, n5, n7, n9 and 35 more"),
        (["10.0.0.1", "10.0.0.2", "10.0.0.3"], 50, "10.0.0.1..10.0.0.3"),
    ],
)
def test_names_fold(names, room, said):
    assert words.fold(sorted(names, key=words.natural), room) == said


@given(st.lists(st.text("abc '\"\\$;", max_size=30), max_size=20))
def test_a_wrapped_command_is_the_same_command(parts):
    command = " ".join(shlex.quote(part) for part in ["echo", *parts])
    lines = words.wrap_command(command, 60)
    assert all(len(line) <= 60 or len(shlex.split(line.removesuffix("\\"))) == 1 for line in lines)
    assert shlex.split(" ".join(line.removesuffix(" \\") for line in lines[:-1]) + " " + lines[-1]) == ["echo", *parts]


@pytest.mark.parametrize("count", [2, 12, 50])
def test_a_command_for_many_nodes_names_each_of_them(count):
    nodes = ["worker-%02d.prod.example.org" % number for number in range(count)]
    remedy = {"playbook": "nodecare.kubernetes.repair_swap", "vars": {}, "disruptive": False, "reboot": False, "manual": None}
    made = report([finding(node=node, remedy=remedy) for node in nodes])
    for said in (*(terminal.text(made, fancy=fancy) for fancy in (True, False)), _report.WRITERS["html"][1](made)):
        assert "--limit" in said
        assert ",".join(nodes) in said


def test_a_command_that_is_too_long_for_a_terminal_is_left_to_the_page():
    nodes = ["worker-%03d.prod.example.org" % number for number in range(200)]
    remedy = {"playbook": "nodecare.kubernetes.repair_swap", "vars": {}, "disruptive": False, "reboot": False, "manual": None}
    made = report([finding(node=node, remedy=remedy) for node in nodes])
    assert "# too long for a terminal: see report.html" in fits(terminal.text(made))
    assert ",".join(nodes) in _report.WRITERS["html"][1](made)


def test_a_wrapped_remark_stays_a_remark():
    command = "kubectl drain worker-3 --ignore-daemonsets  # then reboot it, and look at what made the load"
    assert words.wrap_command(command, 45) == [
        "kubectl drain worker-3 --ignore-daemonsets",
        "# then reboot it, and look at what made the",
        "# load",
    ]
    assert words.wrap_command("echo 1  # 2", 45) == ["echo 1  # 2"]


@given(st.lists(ANYTHING | st.just("9" * 5000) | st.text("0129-", max_size=6)))
def test_natural_order_takes_any_names(names):
    once = sorted(names, key=words.natural)
    names.reverse()
    assert sorted(names, key=words.natural) == once
    words.fold(once, 40)


# Files


def test_files_are_named_the_same_and_replaced_whole(tmp_path):
    for made in (hostile(), report([finding()])):
        paths, broken = _report.write(made, str(tmp_path / "deep" / "er"), list(_report.WRITERS))
        assert broken == []
    assert sorted(path.name for path in (tmp_path / "deep" / "er").iterdir()) == ["junit.xml", "report.html", "report.json", "report.prom"]
    assert list(paths)[-1] == "html"
    assert json.loads(Path(paths["json"]).read_text())["summary"]["fail"] == 1


def test_only_their_owner_reads_facts(tmp_path):
    paths, _broken = _report.write(report([]), str(tmp_path), ["prometheus"], _report.bundle({}, {}))
    assert {name: Path(path).stat().st_mode & 0o777 for name, path in paths.items()} == {"prometheus": 0o644, "facts": 0o600}


def test_the_cluster_is_not_counted_as_a_node():
    made = report([finding(node="n%d" % number, status="pass") for number in range(26)])
    made = _report.document(dict.fromkeys(made["nodes"]), [*made["findings"], finding("cluster.unread", "cluster", "pass")])
    assert all("26 nodes with nothing found" in terminal.text(made, fancy=fancy) for fancy in (True, False))
    page = _report.WRITERS["html"][1](made)
    assert "26 of 26 nodes" in page
    assert "<li>cluster</li>" not in page


def test_a_report_that_cannot_be_written_does_not_cost_the_others(tmp_path, monkeypatch):
    (tmp_path / "junit.xml").mkdir()

    def breaks(_made):
        raise ValueError("a bug")

    monkeypatch.setitem(_report.WRITERS, "prometheus", ("report.prom", breaks))
    paths, broken = _report.write(report([finding()]), str(tmp_path), list(_report.WRITERS))
    assert sorted(paths) == ["html", "json"]
    assert broken == ["cannot write %s/junit.xml: Is a directory" % tmp_path, "cannot make %s/report.prom: ValueError: a bug" % tmp_path]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["junit.xml", "report.html", "report.json"]
    (tmp_path / "file").write_text("")
    assert _report.write(report([]), str(tmp_path / "file" / "in"), ["json"]) == ({}, ["cannot make the directory %s/file/in: Not a directory" % tmp_path])
