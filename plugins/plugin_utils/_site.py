# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Site rules: a user's own rules, JMESPath over the facts with an expectation, checked before any node is touched."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ._rules._rule import Rule, fail, passed, unknown

try:
    import jmespath
    from jmespath.exceptions import JMESPathError
except ImportError:
    jmespath = None


class SiteRuleError(ValueError):
    """What is wrong with a site rule: which one, where in it, and what would be right."""


def _bound(compare):
    def holds(value, wanted):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and compare(value, float(wanted))

    return holds


EXPECTATIONS = {
    "equals": lambda value, wanted: value == wanted,
    "not_equals": lambda value, wanted: value != wanted,
    "in": lambda value, wanted: value in wanted,
    "contains": lambda value, wanted: value is not None and wanted in value,
    "matches": lambda value, wanted: isinstance(value, str) and re.search(wanted, value) is not None,
    "at_least": _bound(lambda value, wanted: value >= wanted),
    "at_most": _bound(lambda value, wanted: value <= wanted),
    "empty": lambda value, wanted: (value in (None, "", [], {})) == wanted,
    "exists": lambda value, wanted: (value is not None) == wanted,
}
OF_NOTHING = ("empty", "exists")  # the only expectations that finding nothing can meet or miss
SHAPES = {
    "in": (list, "a list"),
    "matches": (str, "a regular expression"),
    "at_least": ((int, float), "a number"),
    "at_most": ((int, float), "a number"),
    "empty": (bool, "true or false"),
    "exists": (bool, "true or false"),
}
KEYS = {"id", "title", "query", "expect", "message", "severity"}


@dataclass(frozen=True)
class SiteRule:
    rule: Rule
    query: object
    kind: str
    wanted: object
    message: str
    paths: tuple  # the facts that the query names: a pass is only believed where nothing hid them

    def verdict(self, facts):
        try:
            value = self.query.search(plain(facts))
        except JMESPathError as error:
            return unknown("the query does not fit these facts: %s" % _one_line(error))
        if value is None and self.kind not in OF_NOTHING:
            return unknown("the query found nothing")
        try:
            holds = EXPECTATIONS[self.kind](value, self.wanted)
        except TypeError:
            holds = False
        if holds:
            return passed("as expected: %s" % _short(value), value=value)
        return fail(self.message.replace("{value}", _short(value)), value=value, expected={self.kind: self.wanted})


def site_rules(raw):
    """Checked site rules from plain variables."""
    if not isinstance(raw, (list, tuple)):
        raise SiteRuleError("site_rules must be a list, not %r" % (raw,))
    made = [_site_rule(one, "site_rules[%d]" % place) for place, one in enumerate(raw)]
    seen = set()
    for one in made:
        if one.rule.id in seen:
            raise SiteRuleError("two site rules have the id %s" % one.rule.id)
        seen.add(one.rule.id)
    return tuple(made)


def plain(facts):
    """Facts without Ansible's tagged strings, which JMESPath's functions do not take for strings."""
    return json.loads(json.dumps(facts))


def _site_rule(raw, where):
    if jmespath is None:
        raise SiteRuleError("site rules need the Python library jmespath on the controller: pip install jmespath")
    if not isinstance(raw, dict):
        raise SiteRuleError("%s must be a dictionary, not %r" % (where, raw))
    raw = {str(key): value for key, value in raw.items() if value is not None}
    rule_id = str(raw.get("id", ""))
    if not re.fullmatch(r"site\.[a-z0-9_.]+", rule_id):
        raise SiteRuleError("%s: id is %r, but must be like site.kernel" % (where, rule_id))
    where = "site rule %s" % rule_id
    missing, strange = sorted({"query", "expect", "message"} - set(raw)), sorted(set(raw) - KEYS)
    if missing or strange:
        raise SiteRuleError("%s: %s" % (where, "; ".join(["has no %s" % one for one in missing] + ["has %s, which no site rule has" % one for one in strange])))
    severity = raw.get("severity", "error")
    if severity not in ("error", "warning", "info"):
        raise SiteRuleError("%s: severity is %r, but must be one of error, warning, info" % (where, severity))
    kind, wanted = _expectation(raw["expect"], where)
    query = _query(str(raw["query"]), where)
    rule = Rule(rule_id, str(raw.get("title") or rule_id), str(severity), (), (), {}, None)
    return SiteRule(rule, query, kind, wanted, str(raw["message"]), tuple(sorted(_paths(query.parsed))))


def _query(text, where):
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        place = getattr(error, "lex_position", None)
        pointer = "" if place is None or place < 0 else "\n  %s\n  %s^" % (text, " " * place)
        raise SiteRuleError("%s: query is no JMESPath expression: %s%s" % (where, _one_line(error), pointer)) from None


def _expectation(raw, where):
    if not isinstance(raw, dict) or len(raw) != 1 or next(iter(raw)) not in EXPECTATIONS:
        raise SiteRuleError("%s: expect is %r, but must have exactly one of %s" % (where, raw, ", ".join(EXPECTATIONS)))
    (kind, wanted) = next(iter(raw.items()))
    shape, words = SHAPES.get(kind, (object, ""))
    if not isinstance(wanted, shape):
        raise SiteRuleError("%s: expect.%s is %r, but must be %s" % (where, kind, wanted, words))
    if kind == "matches":
        try:
            re.compile(wanted)
        except re.error as error:
            raise SiteRuleError("%s: expect.matches is no regular expression: %s at position %s" % (where, error.msg, error.pos)) from None
    return str(kind), plain(wanted)


LEFT_FIRST = ("subexpression", "index_expression", "pipe", "projection", "filter_projection", "value_projection", "flatten")


def _paths(tree):
    """The longest dotted names in a parsed query that start at the facts' root: host.kernel of ``host.kernel[?x].y``."""
    chain = _chain(tree)
    if chain:
        return {chain}
    children = [child for child in tree["children"] if isinstance(child, dict)]
    if tree["type"] in LEFT_FIRST:  # what follows is looked up in what the first one found
        children = children[:1]
    return {path for child in children for path in _paths(child)}


def _chain(tree):
    if tree["type"] == "field":
        return tree["value"]
    if tree["type"] == "subexpression":
        names = [_chain(child) for child in tree["children"]]
        return ".".join(names) if all(names) else None
    return None


def _short(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _one_line(error):
    return str(error).splitlines()[0]
