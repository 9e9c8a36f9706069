"""Every code block of every page is one that its reader could use: none names what there is not."""

from __future__ import annotations

import re

import pytest
import yaml
from checkout import BIN, ROOT, run
from guides import OURS, PAGES, Block, all_options, blocks, faults, playbooks, plays_of, roles, texts
from test_diagnosis import CASES, of_story
from test_diagnosis_text import told

BLOCKS = [one for page in PAGES for one in blocks(page)]


def test_no_block_has_a_fault():
    assert {str(one): faults(one) for one in BLOCKS if faults(one)} == {}


def test_no_block_is_overlooked():
    """Counted in another way: by what each begins with."""
    for page in PAGES:
        begins = r"^\.\. code-block::|^(?!\.\. ).*::$" if page.endswith(".rst") else r"^```\w"
        assert len(re.findall(begins, (ROOT / page).read_text(), re.M)) == len(blocks(page)), page


PLAYBOOK = "ansible-playbook nodecare.kubernetes."
FAULTS = {
    "a playbook that there is not": ("console", PLAYBOOK + "repair_swp -i hosts.ini", "there is no playbook nodecare.kubernetes.repair_swp"),
    "a file that nobody has written": ("console", "ansible-playbook -i hosts.ini join.yml", "there is no playbook join.yml"),
    "an option that it has not": ("console", PLAYBOOK + "repair_swap --dry-run", "unrecognized arguments: --dry-run"),
    "an option without its value": ("console", PLAYBOOK + "repair_swap --limit", "--limit: expected one argument"),
    "a variable that no role has": ("console", PLAYBOOK + "repair_swap -e nodecare_reboot=true", "nodecare_reboot is specified nowhere"),
    "a variable of another role": ("console", PLAYBOOK + "repair_swap -e nodecare_reboot_ok=true", "nodecare_reboot_ok is specified nowhere"),
    "a value of another type": ("console", PLAYBOOK + "repair_swap -e nodecare_wait=long", "cannot be converted to a float"),
    "a choice that there is not": ("console", PLAYBOOK + "repair_probes -e nodecare_state=absent", "must be one of: present, as_before"),
    "the same in JSON": ("console", PLAYBOOK + "repair_swap -e '{\"nodecare_wait\": []}'", "cannot be converted to a float"),
    "a rule that there is not": ("console", PLAYBOOK + 'preflight -e \'{"nodecare_checks": ["swop"]}\'', "'swop' matches no rule"),
    "behind another command": ("console", "export A=b && " + PLAYBOOK + "repair_swp", "there is no playbook"),
    "on a line that goes on": ("console", PLAYBOOK + "repair_swap \\\n  --dry-run", "unrecognized arguments: --dry-run"),
    "a target that make has not": ("console", "make tests", "make knows no tests"),
    "a variable that make has not": ("console", "make preflight INVENTARY=hosts.ini", "make knows no INVENTARY"),
    "a program that is not ours to name": ("console", "curl -k https://10.0.0.11:6443", "curl is no program that a guide may name"),
    "what no shell reads": ("console", "kubectl get nodes 'x", "nterminated quoted string"),
    "YAML that does not parse": ("yaml", "a: [1\n", "expected ',' or ']'"),
    "a setting that no role has": ("yaml", "nodecare_network: {}\n", "nothing is called nodecare_network"),
    "a setting that is misspelled in its beginning": ("yaml", "nodcare_networks: {}\n", "nothing is called nodcare_networks"),
    "a setting of another type": ("yaml", "nodecare_networks: [10.0.0.0/8]\n", "nodecare_networks"),
    "a threshold that there is not": ("yaml", "nodecare_thresholds: {load: 1}\n", "policy.thresholds has no load"),
    "a network that is none": ("yaml", "nodecare_networks: {pods: [10.0.0.0/99]}\n", "policy.networks.pods"),
    "a severity that is none": ("yaml", "nodecare_severity: {host.time: mild}\n", "must be one of error, warning, info"),
    "a site rule that is none": ("yaml", "nodecare_site_rules: [{id: site.a, query: '[', expect: {equals: 1}, message: m}]\n", "site.a"),
    "a setting of another role": ("yaml", "- vars: {nodecare_wait: 1}\n  hosts: all\n  roles: [nodecare.kubernetes.preflight]\n", "nodecare_wait is"),
    "a setting in an inventory": ("yaml", "all: {vars: {nodecare_fail_on: info}}\n", "must be one of: error, warning, never"),
    "JSON that does not parse": ("json", "{'a': 1}", "Expecting property name"),
    "a kind that nobody looks at": ("bash", "true", "not known here"),
}


@pytest.mark.parametrize(("kind", "text", "says"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_seen(kind, text, says):
    assert says in "\n".join(faults(Block("README.md", 1, kind, text + "\n")))


def test_blocks_of_both_kinds_of_pages_are_found(tmp_path):
    markdown, rst = tmp_path / "a.md", tmp_path / "a.rst"
    markdown.write_text("Text.\n\n```yaml\na: 1\n\nb: 2\n```\n")
    rst.write_text("Text.\n\n.. code-block:: yaml\n\n   a: 1\n\n   b: 2\n\nText::\n\n   c\n\nText.\n")
    assert blocks(str(markdown)) == [Block(str(markdown), 3, "yaml", "a: 1\n\nb: 2\n")]
    assert [(one.kind, one.text) for one in blocks(str(rst))] == [("yaml", "a: 1\n\nb: 2\n"), ("", "c\n")]


def test_ansible_reads_every_playbook(tmp_path):
    """Those that the guides name and those that they show, all in one process. What needs awx.awx is run by test_awx_stand_in.py."""
    named = sorted({"awx_content"} ^ set(re.findall(re.escape(PLAYBOOK) + r"(\w+)", "\n".join(one.text for one in BLOCKS if one.kind == "console"))))
    shown = [one for one in BLOCKS if one.kind == "yaml" and isinstance(yaml.safe_load(one.text), list)]
    for number, one in enumerate(shown):
        (tmp_path / ("%d.yml" % number)).write_text(yaml.safe_dump(plays_of(one)))
    (tmp_path / "act.yml").write_text("[]")  # which the page of the guard leaves to its reader
    written = [tmp_path / ("%d.yml" % number) for number in range(len(shown))]
    said = run(BIN / "ansible-playbook", "--syntax-check", "-i", "n1,", *(OURS + one for one in named), *written, cwd=ROOT)
    assert said.count("playbook: ") == len(named) + len(shown) > 20


@pytest.fixture(scope="module")
def said():
    """The README's table, which is from a real run by `make picture`, and the diagnosis of each of the stories."""
    stories = [told(of_story(case["case"])) for case in CASES if re.match(r"I\d", case["case"]) and "nodes" in case]
    return "\n".join([*texts("README.md", "text"), *stories])


def is_in(text, said):
    return re.search(r"\n".join(r"[ \d]*" + re.escape(line.strip()) for line in text.splitlines()), said) is not None


def test_what_programs_are_said_to_say_they_say(said):
    assert [str(one) for one in BLOCKS if one.kind == "text" and not is_in(one.text, said)] == []
    assert not is_in("FAIL  n2: The node is far busier than the others  [load.outlier]\n      load 61.0 on 2 CPUs", said)


BESIDE = {"nodecare_check", "docsite"}  # what the README's play registers, and a part of a label
BY_NAME = ("plugins/*/[!_]*.py", "extensions/eda/rulebooks/*.yml")


def test_what_is_named_between_the_blocks_is_there():
    """Variables and what the collection has, wherever a page names them. What is handed on to later jobs has names of its own, and so have metrics."""
    ours = {*playbooks(), *roles(), *(path.stem for kind in BY_NAME for path in ROOT.glob(kind)), *BESIDE}
    for page in PAGES:
        words = (ROOT / page).read_text()
        variables = set(re.findall(r"\bnodecare_(?!found_)\w+", words)) if page != "docs/metrics.md" else set()
        assert variables - set(all_options()) <= BESIDE, page
        assert set(re.findall(re.escape(OURS) + r"(\w+)", words)) <= ours, page
