# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes one page a rule and their index from the rules themselves; the example findings come from the tests' cases.

Run it with `make docs`. A test compares what it would write with what is there.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType

import yaml

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "rules"
PACKAGE = "ansible_collections.nodecare.kubernetes.plugins.plugin_utils"
sys.path[:0] = [str(ROOT / ".collections"), str(ROOT / "tests" / "unit")]

_judge = importlib.import_module(PACKAGE + "._judge")
_policy = importlib.import_module(PACKAGE + "._policy")
groups = importlib.import_module(PACKAGE + "._report.groups")
RULES = importlib.import_module(PACKAGE + "._rules").RULES
recorded_cases = importlib.import_module("test_cases")

MADE = "<!-- Made by docs/generate_rules.py from the rule itself: change that, then run `make docs`. -->\n"


def pages():
    """{file name: text} of everything that belongs into docs/rules."""
    examples = {**found_in_cases(), **found_without_facts()}
    made = {"%s.md" % one.id: page(one, examples.get(one.id)) for one in RULES.values()}
    return {"README.md": index(), **made}


def page(rule, example):
    parts = [MADE, "# %s: %s" % (rule.id, rule.title), why(rule), facts_about(rule), thresholds_of(rule), repair(rule, example), shown(example), silence(rule)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def why(rule):
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(rule.why).split("\n\n"))


def facts_about(rule):
    rows = [("Severity", "`%s`" % rule.severity)]
    if rule.needs:
        rows.append(("Judges", names(rule.needs)))
    if rule.uses:
        rows.append(("Uses, where it is known", names(rule.uses)))
    if rule.across:
        rows.append(("Compares nodes", "yes, with all others of the same run" + (", after each was judged alone" if rule.alone else "")))
    if rule.of_cluster:
        rows.append(("About", "the cluster as a whole, once in a run; its findings stand under `cluster`"))
    rows += [("Only for", "`%s` %s" % (path.split(".")[0], wanted.replace(",", ", "))) for path, wanted in rule.versions.items()]
    return "\n".join(["| | |", "|---|---|"] + ["| %s | %s |" % row for row in rows])


def thresholds_of(rule):
    used = sorted(uses_thresholds(rule))
    if not used:
        return ""
    rows = ["| threshold | default | meaning |", "|---|---|---|"] + [threshold_row(name) for name in used]
    return "## Thresholds\n\nEach is a key of `nodecare_thresholds`.\n\n" + "\n".join(rows)


def threshold_row(name):
    one = _policy.THRESHOLDS[name]
    default = "%g" % one.default if isinstance(one.default, float) else json.dumps(one.default)
    return "| `%s` | `%s` | %s |" % (name, default, cell(one.meaning))


def repair(rule, example):
    remedy = rule.remedy or (example or {}).get("remedy")
    if not remedy:
        return ""
    command = (example or {}).get("remedy") or remedy
    said = ["## Repair"]
    if command["playbook"]:
        said.append("```console\n%s\n```" % groups.command({**command, "vars": {}}, [(example or {}).get("node", "worker-3")]))
    if command["manual"]:
        words = "Or by hand" if command["playbook"] else "By hand"
        said += [words + ", for the finding below; each finding carries the command with its own node's names:", "```console\n%s\n```" % command["manual"]]
    notes = [words for key, words in (("disruptive", "It disturbs what runs on the node."), ("reboot", "It needs a reboot.")) if command.get(key)]
    return "\n\n".join(said + notes)


def shown(example):
    if not example:
        return ""
    return "## A finding\n\n```yaml\n%s```" % yaml.safe_dump(example, sort_keys=False, width=140, allow_unicode=True)


def silence(rule):
    milder = "warning" if rule.severity == "error" else "info"
    choices = [
        ("nodecare_disable: [%s]" % rule.id, "reported as skip; as group_vars or host_vars also for some nodes only"),
        ("nodecare_severity: {%s: %s}" % (rule.id, milder), "still judged and reported, as %s %s" % ("an" if milder == "info" else "a", milder)),
        ("nodecare_exclude: [%s]" % rule.id, "neither judged nor reported"),
    ]
    width = max(len(setting) for setting, _words in choices)
    return "## Silence it\n\n```yaml\n%s\n```" % "\n".join("%s  # %s" % (setting.ljust(width), words) for setting, words in choices)


def index():
    lines = [MADE.strip(), "", "# The rules", ""]
    lines += ["Their ids never change. Facts, thresholds, repair and an example of each are on its page.", ""]
    for area in dict.fromkeys(one.area for one in RULES.values()):
        module = importlib.import_module("%s._rules.%s" % (PACKAGE, area))
        said = inspect.cleandoc(module.__doc__).partition("\n\n")[0].replace("\n", " ").replace("PRIVATE. ", "")
        lines += ["## %s" % area, "", said, "", "| rule | what is wrong where it fails | severity | compares nodes |", "|---|---|---|---|"]
        lines += [
            "| [%s](%s.md) | %s | `%s` | %s |" % (one.id, one.id, cell(one.title), one.severity, "yes" if one.across else "")
            for one in RULES.values()
            if one.area == area
        ]
        lines.append("")
    lines += ["## Thresholds", "", "All keys of `nodecare_thresholds`.", "", "| threshold | default | meaning |", "|---|---|---|"]
    lines += [threshold_row(name) for name in sorted(_policy.THRESHOLDS)]
    return "\n".join(lines) + "\n"


# -- where the content comes from --------------------------------------------------------------------------------------


def found_in_cases():
    """The first finding that each rule gives in the tests' tables."""
    wanted, found = dict.fromkeys(RULES), {}
    for parameters in recorded_cases.CASES:
        (case,) = parameters.values
        wants = case["want"].values() if "nodes" in case else [case["want"]]
        bad = {i for want in wants for i, status in want.items() if status in ("fail", "warn")} & set(wanted) - set(found)
        if bad:
            for one in findings_of(case, sorted(bad)):
                if one["status"] in ("fail", "warn"):
                    found.setdefault(one["id"], one)
    return found


def findings_of(case, ids):
    machines = case.get("nodes") or {"node" if "cluster" in case else "worker-3": case}
    by = _policy.policy(case.get("policy"), known_rules=list(RULES))
    with tempfile.TemporaryDirectory() as where:
        facts = {name: recorded_cases.facts_of({**machine, "want": {}}, ids, Path(where) / name) for name, machine in machines.items()}
    for name, one in facts.items():
        one["taken"] = {**one.get("taken", {}), "hostname": name}
    return json.loads(json.dumps(_judge.judge(facts, dict.fromkeys(facts, by), ids, by, recorded_cases.cluster_of(case))))


def found_without_facts():
    """The findings about nodes that gave no facts."""
    whys = {"node.unreachable": "Connection timed out", "node.unreadable": "/usr/bin/python3: not found"}
    return {rule_id: _judge.judge_lost("worker-3", rule_id, said, _policy.policy({})) for rule_id, said in whys.items()}


def uses_thresholds(rule):
    """The thresholds that a rule's code names, and the code that it calls within this collection."""
    used, seen, waiting = set(), set(), [rule.alone, rule.across, rule.of_cluster]
    while waiting:
        one = waiting.pop()
        one = getattr(one, "__wrapped__", one)  # what is remembered
        if isinstance(one, str):
            used |= {one} & set(_policy.THRESHOLDS)
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, (property, cached_property)):
            waiting.append(getattr(one, "fget", None) or one.func)
        elif isinstance(one, type) and one.__module__.startswith(PACKAGE) and one not in seen:
            seen.add(one)
            waiting += vars(one).values()
        elif isinstance(one, FunctionType) and one.__module__.startswith(PACKAGE) and one not in seen:
            seen.add(one)
            for code in codes(one.__code__):
                waiting += code.co_consts
                waiting += [one.__globals__[name] for name in code.co_names if name in one.__globals__]
    return used


def codes(code):
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


def names(paths):
    return ", ".join("`%s`" % path for path in paths)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def main():
    made = pages()
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (PAGES / name).write_text(text)
    print("%d pages in %s" % (len(made), PAGES.relative_to(ROOT)))


if __name__ == "__main__":
    main()
