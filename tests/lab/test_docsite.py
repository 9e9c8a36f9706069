"""The docsite as `make docsite` builds it, where a warning is an error: all that there is to read is in it and found from its first page."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import build_docsite
import pytest
import yaml
from checkout import ROOT, files


class Page(HTMLParser):
    """The links of a page, and what can be linked to on it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """{page: what is on it}"""
    made = build_docsite.build(tmp_path_factory.mktemp("docsite")).parent
    return {path: Page(path) for path in made.rglob("*.html")}


def test_each_link_within_it_leads_somewhere(site):
    assert dead(site) == [] and len(site) > 100


def test_what_leads_nowhere_is_seen(tmp_path):
    path = tmp_path / "a.html"
    path.write_text('<p id="b"><a href="#b"/><a href="a.html#b"/><a href="https://example.org/c"/><a href="#c"/><a href="a.html#c"/><a href="b.html"/></p>')
    assert dead({path: Page(path)}) == [("a.html", "#c"), ("a.html", "a.html#c"), ("a.html", "b.html")]


def test_all_that_there_is_to_read_is_found_from_its_first_page(site):
    (first,) = (path for path in site if path.parts[-2:] == ("html", "index.html"))
    found, waiting = set(), [first]
    while waiting:
        path = waiting.pop()
        if path in site and path not in found:
            found.add(path)
            waiting += [inside(path, link)[0] for link in site[path].links]
    assert {path for path in expected(first.parent) if path not in found} == set()
    assert set(site) - found == set()


def test_no_link_of_a_page_leaves_for_the_repository_but_to_a_directory(site):
    """What a guide links to is in the site."""
    repository = yaml.safe_load((ROOT / "galaxy.yml").read_text())["repository"]
    assert {link for page in site.values() for link in page.links if link.startswith(repository)} == {repository}


def dead(site):
    """The links within it that lead nowhere, as (page, link)."""
    return [(path.name, link) for path, page in site.items() for link in page.links if is_dead(*inside(path, link), site)]


def is_dead(target, anchor, site):
    return bool(target) and (not target.is_file() or bool(anchor) and target in site and anchor not in site[target].anchors)


def inside(path, link):
    """(the file of the site that a link leads to, its anchor), or (None, "") where it leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None, ""
    return (path.parent / unquote(parts.path)).resolve() if parts.path else path, unquote(parts.fragment)


def expected(made):
    """The page of each guide, rule, module, filter and role."""
    pages = [made / page.replace(".md", ".html") for page in files("docs/*.md")]
    pages += [made / "collection/docsite" / path.with_suffix(".html").name for path in ROOT.glob("docs/docsite/rst/*.rst")]
    for kind, found in (("module", "plugins/modules/*.py"), ("filter", "plugins/filter/*.py"), ("role", "roles/*")):
        pages += [made / "collection" / ("%s_%s.html" % (path.stem, kind)) for path in ROOT.glob(found)]
    return pages
