"""The page in a real browser: what it shows, that it sorts and filters, and that nothing a node says can act in it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._report import page
from browser import CHROMIUM, Browser
from findings import HOSTILE, finding, fleet, hostile, report

NEEDS_CHROMIUM = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed (Debian package chromium): the HTML page is not tried in a browser")
SHOWN = "[...document.querySelectorAll('#findings tbody tr:not([hidden])')].map((row) => row.cells[%d].textContent.trim())"
NODES = "[...document.querySelectorAll('#nodes tbody tr:not([hidden])')].map((row) => row.cells[0].textContent)"
SET = "(() => {const field = document.forms[0].elements[%s]; field.value = %s; field.dispatchEvent(new Event('input', {bubbles: true}))})()"


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


def some():
    return report(
        [
            finding("swap.active", "n2", "fail", "swap is on"),
            finding("load.memory", "n10", "warn", "memory is short", title="Little memory"),
            finding("host.ports", "n10", "unknown", "cannot tell", title="Ports"),
            finding("swap.active", "n1", "pass", "nothing found"),
        ]
    )


def show(browser, made, path, **how):
    path.write_text(page.write(made), encoding="utf-8", errors="backslashreplace")
    browser.open(path, **how)


def put(browser, field, value):
    browser.tell(SET % (json.dumps(field), json.dumps(value)))


@NEEDS_CHROMIUM
def test_shows_filters_and_sorts(browser, tmp_path):
    show(browser, some(), tmp_path / "report.html")
    assert browser.tell(SHOWN % 2) == ["n2", "n10", "n10"]
    assert browser.tell(NODES) == ["n2", "n10", "n1"]
    assert browser.tell("document.querySelector('#nodes td a').textContent") == "fail"
    for field, value, rules in (
        ("node", "n10", ["Little memoryload.memory", "Portshost.ports"]),
        ("node", "n1", []),  # the whole name of another node
        ("area", "swap", ["Swap is onswap.active"]),
        ("status", "unknown", ["Portshost.ports"]),
        ("text", "IS SHORT", ["Little memoryload.memory"]),
    ):
        put(browser, field, value)
        assert browser.tell(SHOWN % 1) == rules, field
        assert browser.tell("document.querySelector('output').textContent") == "%d of 3 rows" % len(rules)
        put(browser, field, "")
    for _click, order in enumerate((["n1", "n2", "n10"], ["n10", "n2", "n1"])):
        browser.tell("document.querySelector('#nodes th button').click()")
        assert browser.tell(NODES) == order
    assert browser.tell("document.querySelector('#nodes th').getAttribute('aria-sort')") == "descending"
    browser.tell("document.querySelector('#nodes td a[href]').click()")
    assert browser.tell("document.forms[0].elements.node.value") == "n10"
    assert browser.tell("location.hash").startswith("#f")
    browser.tell("document.forms[0].reset()")
    assert browser.tell("new Promise((done) => setTimeout(done)).then(() => %s.length)" % (SHOWN % 1)) == 3
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith("file://%s" % tmp_path)] == []


@NEEDS_CHROMIUM
def test_reads_without_scripts(browser, tmp_path):
    show(browser, some(), tmp_path / "report.html", scripts=False)
    assert browser.tell("document.querySelector('form').checkVisibility()") is False
    assert browser.tell("document.querySelectorAll('#findings tbody tr').length") == 3
    assert browser.tell("[...document.links].every((link) => document.querySelector(link.hash).checkVisibility())") is True


@NEEDS_CHROMIUM
def test_nothing_that_a_node_says_acts(browser, tmp_path):
    show(browser, hostile(), tmp_path / "report.html")
    for field in ("node", "text"):
        for text in HOSTILE[:3]:
            put(browser, field, text)
        put(browser, field, "")
    browser.tell("document.querySelectorAll('th button').forEach((button) => button.click())")
    browser.tell("document.querySelectorAll('#nodes a').forEach((link) => link.click())")
    assert browser.tell("document.title").startswith("Node report: ")
    assert browser.tell("document.querySelectorAll('img, [onmouseover], [onerror]').length") == 0
    assert browser.tell("document.scripts.length") == 1
    assert "<img src=x onerror=document.title='struck'>" in browser.tell("document.querySelector('#findings').textContent")
    assert browser.complaints() == []


@NEEDS_CHROMIUM
def test_the_policy_would_stop_what_escaping_missed(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page.write(some()).replace("</h1>", "</h1><img src=x onerror=document.title='struck'><script>document.title='struck'</script>"))
    browser.open(path)
    assert browser.tell("document.title").startswith("Node report: ")
    assert browser.complaints()


@NEEDS_CHROMIUM
def test_a_thousand_nodes_stay_usable(browser, tmp_path):
    show(browser, fleet(1000), tmp_path / "report.html")
    put(browser, "node", "worker-777")
    assert 0 < len(browser.tell(SHOWN % 1)) < 45
    put(browser, "node", "")
    assert browser.tell("(() => {const start = performance.now(); %s; return performance.now() - start})()" % (SET % ('"text"', '"full"'))) < 1000


def test_a_thousand_nodes_fit_a_page_and_all_else_is_counted():
    made = page.write(fleet(1000))
    assert len(made.encode()) < 5 << 20
    worse = report([finding("swap.r%d" % rule, "n%d" % node, "fail", "%d %d " % (rule, node) + "x" * 1400) for rule in range(6) for node in range(600)])
    made = page.write(worse)
    assert len(made.encode()) < 5 << 20
    assert "more rows are only in report.json" in made


def test_names_nothing_outside_itself():
    made = page.write(hostile())
    assert "http://" not in made
    assert "https://" not in made
    assert made.count("<script") == 1
