"""The alert rules in Prometheus' own hands: Debian's promtool checks them and lets them fire. Needs no guests."""

from __future__ import annotations

import shutil

import pytest
import yaml
from alertmanager import program
from checkout import ROOT, run
from guides import texts

RULES = ROOT / "contrib/prometheus/nodecare.rules.yml"
NAMES = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


@pytest.fixture
def place(tmp_path):
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "tests/lab/alerts.yml", tmp_path)
    return tmp_path


def test_prometheus_takes_them_as_the_page_says(place):
    (configuration,) = texts("docs/metrics.md", "yaml")
    (place / "prometheus.yml").write_text(configuration)
    assert "SUCCESS: %d rules found" % len(NAMES) in run(program("promtool"), "check", "config", "prometheus.yml", cwd=place)


def test_they_fire_when_they_should_and_only_then(place):
    assert "SUCCESS" in run(program("promtool"), "test", "rules", "alerts.yml", cwd=place)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_missed_where_it_does_not_fire(name, place):
    """So that no row of the table passes by chance."""
    rules = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        if rule["alert"] == name:
            rule["expr"] = "vector(0) > 1"
    (place / RULES.name).write_text(yaml.safe_dump(rules))
    assert "alertname: %s" % name in run(program("promtool"), "test", "rules", "alerts.yml", cwd=place, expect=(1,))
