"""The code blocks of all pages that people read, and what is wrong with one, as far as that can be told without running it.

What runs them, word for word, takes them from here, too.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import shlex
import subprocess
import textwrap
from typing import NamedTuple

import yaml
from ansible.cli.playbook import PlaybookCLI
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.splitter import parse_kv
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._judge import SelectionError, select
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import PolicyError, policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from checkout import ROOT, files

PAGES = files("README.md", "docs/*.md", "docs/docsite/rst/*.rst", "roles/*/README.md")
OURS = "nodecare.kubernetes."
# Of these only a shell's opinion is asked; what else may be wrong with them shows where they are run.
FOREIGN = "ansible ansible-galaxy ansible-rulebook cp export git kubectl".split()
# Documents of other programs, by the keys on their first level, and what reads them.
DOCUMENTS = {
    "an inventory": {"all"},
    "a finding, which test_catalogue.py compares with the rule": {"id", "node", "status", "severity", "title", "message", "evidence", "remedy", "see"},
    "Prometheus, which test_alerts.py runs": {"rule_files"},
    "Alertmanager, which test_rulebooks.py runs": {"route", "receivers"},
    "the rulebook, which test_rulebooks.py runs": {"cluster", "organization", "webhook_token", "listen", "port", "diagnose_template", "repair_workflow"},
}


class Block(NamedTuple):
    page: str
    line: int
    kind: str
    text: str

    def __str__(self):
        return "%s:%d" % (self.page, self.line)


# -- where they are ------------------------------------------------------------------------------------------------------


def blocks(page, kind=None):
    """All code blocks of a page, or those of one kind."""
    text = (ROOT / page).read_text()
    return [one for one in (in_rst if page.endswith(".rst") else in_markdown)(page, text) if kind in (None, one.kind)]


def texts(page, kind):
    return [one.text for one in blocks(page, kind)]


def commands(page):
    return [line for text in texts(page, "console") for line in text.splitlines()]


def in_markdown(page, text):
    return [Block(page, line_of(text, found), found.group(1), found.group(2)) for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)]


def in_rst(page, text):
    """Also one that is no more than indented has to say what it is, or nobody could tell how to read it."""
    found = re.finditer(r"^(?:\.\. code-block:: (\w+)|(?!\.\. ).*::)\n\n((?:(?: +.*)?\n)+)", text, re.M)
    return [Block(page, line_of(text, one), one.group(1) or "", textwrap.dedent(one.group(2)).strip("\n") + "\n") for one in found]


def line_of(text, found):
    return text.count("\n", 0, found.start()) + 1


# -- what is wrong with one ----------------------------------------------------------------------------------------------


def faults(block):
    """What is wrong with it, in words."""
    if block.kind not in LINT:
        return ["a block of the kind %r is not known here" % block.kind]
    return list(LINT[block.kind](block))


def in_console(block):
    if block.page.startswith("docs/rules/") and not block.text.startswith("ansible-playbook "):
        return  # what a finding says to do by hand, in words as well as commands; test_catalogue.py compares it with the rule
    read = subprocess.run(["sh", "-n"], input=block.text, capture_output=True, text=True, check=False)
    if read.returncode:
        yield read.stderr.strip()
        return
    for words in commands_of(block.text):
        look = PROGRAMS.get(words[0])
        if look:
            yield from look(words[1:], block)
        elif words[0] not in FOREIGN:
            yield "%s is no program that a guide may name" % words[0]


def commands_of(text):
    """Each simple command, as its words."""
    words = []
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        for word in [*reader, ";"]:
            if set(word) <= set("&|;"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)


def of_make(words, _block):
    """Targets that there are, and variables that are used."""
    made = (ROOT / "Makefile").read_text()
    for word in words:
        name, gives, _value = word.partition("=")
        if not re.search(r"\$\([^)]*\b%s\b" % name if gives else r"^%s:" % re.escape(word), made, re.M):
            yield "make knows no %s" % name


def of_ansible_playbook(words, block):
    """Playbooks that there are, options that it has, and variables that their roles specify."""
    try:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            asked = parser().parse_args(words)
    except SystemExit:
        yield said.getvalue().strip().splitlines()[-1]
        return
    known = {}
    for name in asked.args:
        if name.startswith(OURS) and name.removeprefix(OURS) in playbooks():
            known.update(options_of(name.removeprefix(OURS)))
        elif not is_made_by(name, block):
            yield "there is no playbook %s" % name
    for given in asked.extra_vars:
        if not given.startswith("@"):
            yield from wrong(json.loads(given) if given.startswith("{") else parse_kv(given), known)


def is_made_by(name, block):
    """Whether the page has its reader write this file."""
    return "``%s``" % name in (ROOT / block.page).read_text() and any(is_plays(yaml.safe_load(one.text)) for one in blocks(block.page, "yaml"))


@functools.cache
def parser():
    cli = PlaybookCLI(["ansible-playbook"])
    cli.init_parser()
    return cli.parser


def in_yaml(block):
    try:
        given = yaml.safe_load(block.text)
    except yaml.YAMLError as error:
        yield str(error)
        return
    known = options_named(block.text) or all_options()
    if isinstance(given, dict) and not is_document(given):
        yield from ("nothing is called %s" % name for name in given if name not in known)
    for found in variables_in(given):
        yield from wrong(found, known)


def options_named(text):
    """Those of the roles that a playbook names."""
    named = [role for role in re.findall(re.escape(OURS) + r"(\w+)", text) if role in roles()]
    return {name: one for role in named for name, one in options_of_role(role).items()}


def is_document(given):
    return any(set(given) <= names for names in DOCUMENTS.values())


def variables_in(given):
    """The variables of this collection, wherever they stand."""
    if isinstance(given, dict):
        yield {name: value for name, value in given.items() if str(name).startswith(("nodecare_", "awx_content_"))}
    for one in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from variables_in(one)


def in_json(block):
    try:
        json.loads(block.text)
    except ValueError as error:
        yield str(error)


PROGRAMS = {"ansible-playbook": of_ansible_playbook, "make": of_make}
# What a program says is no input: test_guides.py sees that one says it.
LINT = {"console": in_console, "yaml": in_yaml, "json": in_json, "text": lambda block: ()}


# -- variables -----------------------------------------------------------------------------------------------------------


def wrong(given, known):
    """What is wrong with these variables, where ``known`` are specified."""
    yield from ("%s is specified nowhere" % name for name in given if name not in known)
    told = {name: value for name, value in given.items() if name in known and "{{" not in str(value)}
    asked = {name: {**known[name], "required": False} for name in told}
    yield from ArgumentSpecValidator(asked).validate(told).error_messages
    yield from wrong_words(told)


def wrong_words(given):
    """What only this collection knows: rules, thresholds, networks."""
    named = ("thresholds", "networks", "kubernetes_version", "disable", "severity", "site_rules")
    try:
        raw = policy({part: given["nodecare_" + part] for part in named if "nodecare_" + part in given}, list(RULES))
        select(given.get("nodecare_checks", ["*"]), given.get("nodecare_exclude", ()), raw)
    except (PolicyError, SelectionError) as error:
        yield str(error)


@functools.cache
def playbooks():
    """{name: its plays}"""
    return {path.stem: yaml.safe_load(path.read_text()) for path in ROOT.glob("playbooks/*.yml")}


@functools.cache
def roles():
    return {path.parents[1].name: yaml.safe_load(path.read_text())["argument_specs"] for path in ROOT.glob("roles/*/meta/argument_specs.yml")}


@functools.cache
def options_of(playbook):
    """{variable: its specification} of the roles that a playbook uses, and what its own lines ask for."""
    text = (ROOT / "playbooks" / (playbook + ".yml")).read_text()
    own = {"nodecare_hosts": {"type": "str"}, "nodecare_serial": {"type": "int"}}
    found = {name: one for name, one in own.items() if name in text}
    for role in re.findall(r"name: nodecare\.kubernetes\.(\w+)", text):
        found.update(options_of_role(role))
    return found


@functools.cache
def options_of_role(role):
    """The role's own, of all its entries, and those of the roles that it uses; the plan of repairs uses all of them."""
    if role == "repair":
        return {**all_options(), **own_options(role)}
    used = "".join(path.read_text() for path in ROOT.glob("roles/%s/tasks/*.yml" % role))
    return {**(own_options("guard") if OURS + "guard" in used else {}), **own_options(role)}


def own_options(role):
    return {name: one for entry in roles()[role].values() for name, one in entry["options"].items()}


@functools.cache
def all_options():
    """As an inventory has them, which is for every playbook, those of the project for AWX among them."""
    project = "".join(path.read_text() for path in ROOT.glob("contrib/awx-project/*.yml"))
    of_project = dict.fromkeys(re.findall(r"{{ (nodecare_\w+)", project), {"type": "raw"})
    return {**of_project, **options_of("preflight"), **{name: one for role in roles() for name, one in own_options(role).items()}}


# -- playbooks -----------------------------------------------------------------------------------------------------------


def is_plays(given):
    return isinstance(given, list) and all("hosts" in one or "import_playbook" in one for one in given)


def plays_of(block):
    """The playbook that a block is, or that its tasks would be in."""
    given = yaml.safe_load(block.text)
    return given if is_plays(given) else [{"hosts": "all", "tasks": given}]
