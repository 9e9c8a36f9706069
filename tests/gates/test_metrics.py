"""Dashboard, alert rules and docs/metrics.md know the metrics that a real run writes, with their labels, and no others."""

from __future__ import annotations

import json
import re
from functools import partial

import promql_parser
import pytest
import yaml
from checkout import ROOT, WITH_PROGRAMS, run
from guides import texts

PAGE = (ROOT / "docs/metrics.md").read_text()
DASHBOARD = json.loads((ROOT / "contrib/grafana/nodecare.json").read_text())
RULES = [rule for group in yaml.safe_load((ROOT / "contrib/prometheus/nodecare.rules.yml").read_text())["groups"] for rule in group["rules"]]
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
BY_SCRAPING = {"instance", "job"}  # labels that Prometheus adds to whatever it reads
SITE_RULES = [
    {"id": "site.%s" % severity, "query": "schema", "expect": {"equals": "another"}, "message": "it is {value}", "severity": severity}
    for severity in ("error", "warning")
]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """{name: labels} that the command of the page writes, on this machine; rules of a site's own see to it that something is wrong with it."""
    where = tmp_path_factory.mktemp("metrics")
    local = "ansible_connection=local ansible_python_interpreter='{{ ansible_playbook_python }}' ansible_become=false"
    (where / "hosts.ini").write_text("node-1 %s nodecare_site_rules='%s'\n" % (local, json.dumps(SITE_RULES)))
    (command,) = texts("docs/metrics.md", "console")
    without_sudo = command.replace(" --become", "")
    run("sh", "-c", without_sudo, cwd=where, expect=(2,), PATH=WITH_PROGRAMS, ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".collections"))
    (written,) = (where / "textfile").iterdir()
    found = {}
    for name, labels in re.findall(r"^(nodecare_\w+)(?:\{(.*)\})? ", written.read_text(), re.M):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


# -- what an expression of PromQL names --------------------------------------------------------------------------------


def asked(expression):
    """{metric: labels} of its selectors, and the labels that the rest of it names."""
    selected, named = {}, set()
    promql_parser.walk(promql_parser.parse(expression), partial(_note, selected, named))
    return selected, named


def _note(selected, named, part):
    if isinstance(part, promql_parser.VectorSelector):
        selected.setdefault(part.name, set()).update(matcher.name for matcher in part.matchers.matchers)
    elif isinstance(part, promql_parser.AggregateExpr) and part.modifier:
        named.update(part.modifier.labels)
    elif isinstance(part, promql_parser.BinaryExpr) and part.modifier:
        named.update(part.modifier.matching.labels if part.modifier.matching else (), part.modifier.group_labels or ())


def unknown(expression, metrics, also=()):
    """What it, or a text beside it that is about its result, names and nobody writes."""
    selected, named = asked(expression)
    wrong = [name for name in selected if name not in metrics]
    wrong += ["%s{%s}" % (name, label) for name, labels in selected.items() for label in labels - metrics.get(name, set()) - BY_SCRAPING]
    there = set().union(*(metrics.get(name, set()) for name in selected)) | BY_SCRAPING
    return wrong + sorted((named | set(also)) - there)


@pytest.mark.parametrize(
    ("expression", "also", "wrong"),
    [
        ("nodecare_nodes", (), []),
        ('sum by (node) (nodecare_findings{status="fail", instance="a"})', ("node",), []),
        ("nodecare_node", (), ["nodecare_node"]),
        ('nodecare_nodes{node="a"}', (), ["nodecare_nodes{node}"]),
        ("sum by (host) (nodecare_findings)", (), ["host"]),
        ("nodecare_findings / on (rule) nodecare_finding", (), ["rule"]),
        ("absent(nodecare_missing)", ("node",), ["nodecare_missing", "node"]),
    ],
)
def test_what_nobody_writes_is_seen(expression, also, wrong, metrics):
    assert unknown(expression, metrics, also) == wrong


# -- the three that must agree with a run ------------------------------------------------------------------------------


def test_the_page_describes_what_is_written(metrics):
    rows = re.findall(r"^\| `(nodecare_\w+)` \| ([^|]*)\|", PAGE, re.M)
    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == metrics
    assert re.findall(r"^\| `(Nodecare\w+)`", PAGE, re.M) == [rule["alert"] for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert(rule, metrics):
    words = " ".join(rule["annotations"].values())
    labels = set(re.findall(r"\$labels\.(\w+)", words))
    assert unknown(rule["expr"], metrics, labels) == []
    assert rule["labels"]["severity"] and set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("title", PANELS)
def test_panel(title, metrics):
    panel = PANELS[title]
    assert panel["targets"] and panel["description"].endswith(".")
    for target in panel["targets"]:
        used = set(re.findall(r"\$(\w+)", target["expr"]))
        assert used <= set(VARIABLES), used
        assert unknown(target["expr"], metrics, re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) == []
        assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    columns = {name for one in panel.get("transformations", []) for name in one["options"].get("indexByName", {})} - {"Value"}
    assert columns <= metrics["nodecare_finding"]


def test_variables(metrics):
    queries = [one["query"]["query"] for one in VARIABLES.values() if one["type"] == "query"]
    assert len(queries) == len(VARIABLES) - 1, "all but the data source"
    for query in queries:
        expression, label = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        assert unknown(expression, metrics, [label]) == []


def test_panels_have_a_place_and_a_number_of_their_own():
    places = [(x, y) for panel in PANELS.values() for x, y in cells(**panel["gridPos"])]
    assert len(places) == len(set(places)) and all(x < 24 for x, _y in places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"]) == len(PANELS)


def cells(x, y, w, h):
    return [(column, row) for column in range(x, x + w) for row in range(y, y + h)]
