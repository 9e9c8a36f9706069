# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The user's policy: thresholds, networks, disabled rules, changed severities, site rules.

Every threshold is declared beside the rule that uses it, with its default and its meaning; the generated documentation
lists them all. A policy is checked whole before any node is touched.
"""

from __future__ import annotations

import fnmatch
import ipaddress
from dataclasses import dataclass, field

from ._declared import THRESHOLDS, threshold

# isort: split
# A module, and after the above: what it imports are the rules, which declare their thresholds through this file.
from . import _site

__all__ = ["THRESHOLDS", "Policy", "PolicyError", "matches", "policy", "threshold"]

SEVERITIES = ("error", "warning", "info")


class PolicyError(ValueError):
    """What is wrong with a policy: the variable, the value and the allowed ones."""


@dataclass(frozen=True)
class Policy:
    thresholds: dict = field(default_factory=dict)
    networks: dict = field(default_factory=dict)
    kubernetes_version: str = ""
    disable: tuple = ()
    severities: dict = field(default_factory=dict)
    site_rules: tuple = ()

    def __getitem__(self, name):
        return self.thresholds[name] if name in self.thresholds else THRESHOLDS[name].default

    def disables(self, rule_id):
        return any(matches(rule_id, pattern) for pattern in self.disable)

    def severity(self, rule_id, default):
        """The last pattern that names the rule wins, so that an exception can follow what it is an exception to."""
        return next((value for pattern, value in reversed(self.severities.items()) if matches(rule_id, pattern)), default)


def matches(rule_id, pattern):
    """Whether an area (``swap``), an id (``swap.returns``) or a glob (``*.version``) names a rule."""
    return rule_id == pattern or rule_id.split(".")[0] == pattern or fnmatch.fnmatchcase(rule_id, pattern)


def policy(raw, known_rules=()):
    """A checked Policy from plain variables."""
    raw = dict(raw or {})
    made = Policy(
        thresholds={str(name): _threshold(str(name), value) for name, value in _mapping(raw, "thresholds").items()},
        networks={str(kind): _networks(str(kind), values) for kind, values in _mapping(raw, "networks").items()},
        kubernetes_version=_version(raw.pop("kubernetes_version", None)),
        disable=tuple(_patterns(raw, "disable", known_rules)),
        severities={pattern: _severity(pattern, value, known_rules) for pattern, value in _mapping(raw, "severity").items()},
        site_rules=_site_rules(raw.pop("site_rules", None) or ()),
    )
    unknown = set(raw) - {"thresholds", "networks", "disable", "severity"}
    if unknown:
        raise PolicyError("policy has no %s; it has thresholds, networks, kubernetes_version, disable, severity and site_rules" % ", ".join(sorted(unknown)))
    return made


def _site_rules(raw):
    try:
        return _site.site_rules(raw)
    except _site.SiteRuleError as error:
        raise PolicyError("policy: %s" % error) from None


def _mapping(raw, name):
    value = raw.get(name) or {}
    if not isinstance(value, dict):
        raise PolicyError("policy.%s must be a dictionary, not %r" % (name, value))
    return value


def _threshold(name, value):
    if name not in THRESHOLDS:
        raise PolicyError("policy.thresholds has no %s; it has %s" % (name, ", ".join(sorted(THRESHOLDS))))
    default = THRESHOLDS[name].default
    try:
        if isinstance(default, bool):
            return {"true": True, "yes": True, "false": False, "no": False}[str(value).lower()]
        if isinstance(default, (int, float)):
            return float(value)
        if isinstance(default, list):
            return [str(one) for one in ([value] if isinstance(value, str) else value)]
        return str(value)
    except (KeyError, TypeError, ValueError):
        raise PolicyError("policy.thresholds.%s is %r, but must be like its default %r" % (name, value, default)) from None


NETWORKS = {
    "pods": "Networks that pods get their addresses from.",
    "services": "Networks that services get their addresses from.",
    "nodes": "Networks that the nodes' own addresses are in.",
    "calico": "Networks that Calico is to take the nodes' addresses from, where that is not the one of their InternalIPs.",
}


def _networks(kind, values):
    if kind not in NETWORKS:
        raise PolicyError("policy.networks has no %s; it has %s" % (kind, ", ".join(NETWORKS)))
    try:
        return [ipaddress.ip_network(str(value), strict=False) for value in ([values] if isinstance(values, str) else values or [])]
    except ValueError as error:
        raise PolicyError("policy.networks.%s: %s" % (kind, error)) from None


def _version(value):
    text = str(value or "").lstrip("v")
    if text and not all(part.isdigit() for part in text.split(".")):
        raise PolicyError("policy.kubernetes_version is %r, but must be like 1.36 or 1.36.3" % value)
    return text


def _patterns(raw, name, known):
    values = raw.get(name) or []
    values = [values] if isinstance(values, str) else values
    for pattern in values:
        _must_match(pattern, known, "policy.%s" % name)
    return [str(pattern) for pattern in values]


def _severity(pattern, value, known):
    _must_match(pattern, known, "policy.severity")
    if value not in SEVERITIES:
        raise PolicyError("policy.severity.%s is %r, but must be one of %s" % (pattern, value, ", ".join(SEVERITIES)))
    return str(value)


def _must_match(pattern, known, where):
    if known and not str(pattern).startswith("site.") and not any(matches(rule_id, str(pattern)) for rule_id in known):
        raise PolicyError("%s names %r, which is no rule; the rules are %s" % (where, pattern, ", ".join(known)))
