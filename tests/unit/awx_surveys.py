"""What AWX's documentation says of surveys, and what makes one the same as a role's options."""

from __future__ import annotations

import re

import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules import RULES
from checkout import ROOT

CONTENT = ROOT / "roles/awx_content/files"
NEEDED = {"type": str, "question_name": str, "variable": str, "required": bool}
TYPES = {"text": str, "textarea": str, "password": str, "multiplechoice": str, "multiselect": str, "integer": int, "float": (float, int)}
KEYS = {*NEEDED, "question_description", "min", "max", "choices", "default"}
# Which question asks for an option of which type. There is none for a boolean: its texts are choices, and Ansible takes them as what they say.
ASKS = {"str": ("text", "textarea"), "path": ("text",), "int": ("integer",), "float": ("float",), "list": ("multiselect",), "bool": ("multiplechoice",)}
BOOLEAN = ["true", "false"]


def data(kind):
    """{file's name: what it says}"""
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted((CONTENT / kind).glob("*.yml"))}


def invalid(survey):
    """Why AWX would not take a survey; None where it would."""
    for key, kind in (("name", str), ("description", str), ("spec", list)):
        if not isinstance(survey.get(key), kind):
            return "'%s' is missing or no %s" % (key, kind.__name__)
    if not survey["spec"]:
        return "'spec' doesn't contain any items."
    variables = [one.get("variable") for one in survey["spec"]]
    if len(set(variables)) < len(variables):
        return "a variable is duplicated"
    return next((why for why in map(_invalid_question, survey["spec"]) if why), None)


def _invalid_question(one):
    odd = [key for key, kind in NEEDED.items() if not isinstance(one.get(key), kind)]
    if odd or one["type"] not in TYPES:
        return "%s of %s is missing or not what it has to be" % (", ".join(odd) or "type", one)
    chosen = one["type"] in ("multiplechoice", "multiselect")
    faults = {
        "has a key that AWX does not know": set(one) - KEYS,
        "has a limit that is no whole number": any(one.get(key) is not None and not isinstance(one[key], int) for key in ("min", "max")),
        "has a default of another type": "default" in one and not isinstance(one["default"], TYPES[one["type"]]),
        "has no choices": chosen and not one.get("choices"),
        "has a default that is none of its choices": chosen and set(str(one.get("default", "")).splitlines()) - set(one.get("choices") or []),
    }
    return next(("%s %s" % (one["variable"], fault) for fault, found in faults.items() if found), None)


def options_of(playbook):
    """The options of the role that a playbook runs last, of the entry at which it does, and the role's tasks as text."""
    play = yaml.safe_load((ROOT / "playbooks" / playbook).read_text())
    imported = [task["ansible.builtin.import_role"] for one in play for task in one["tasks"]]
    main = [one for one in imported if one.get("tasks_from", "main") == "main"] or imported[-1:]
    role = ROOT / "roles" / main[-1]["name"].rpartition(".")[2]
    spec = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return spec[main[-1].get("tasks_from", "main")]["options"], "\n".join(path.read_text() for path in role.glob("tasks/*.yml"))


def mismatches(survey, options, tasks=""):
    """In words, where a survey is not what the role's options say."""
    for one in survey["spec"]:
        name, option = one["variable"], options.get(one["variable"])
        if option is None:
            yield "%s is no option of the role" % name
            continue
        if one["type"] not in ASKS[option["type"]] + (("multiplechoice",) if "choices" in option else ()):
            yield "%s is asked for as %s, and is of type %s" % (name, one["type"], option["type"])
        if one.get("choices") != _choices(name, option):
            yield "%s has the choices %s, and the role's are %s" % (name, one.get("choices"), _choices(name, option))
        default = str(option["default"]).lower() if option["type"] == "bool" and "default" in option else option.get("default")
        if one.get("default") != default:
            yield "%s has the default %r, and the role's is %r" % (name, one.get("default"), default)
        if one["required"] is not option.get("required", False):
            yield "%s is required or not, unlike in the role" % name
        if "default" not in one and not one["required"] and re.search(r"\b%s \| default\((?![^)]*, true\))" % name, tasks):
            yield "%s may come back empty, and the role does not take that as not given" % name
        if "default" not in one and one["type"] == "multiplechoice":
            yield "%s has no default, and a form answers with an empty text that is no choice" % name


def _choices(name, option):
    if option["type"] == "bool":
        return BOOLEAN
    if name == "nodecare_checks":  # areas, rules or globs; a form offers the areas
        return sorted({rule.area for rule in RULES.values()})
    return option.get("choices")
