# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx makes the docsite of what docs/build_docsite.py has put together.

The guides link to files as a Git forge shows them. Here such a link leads to the page that the file has become, or to a copy of it.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from docutils import nodes

ROOT = Path(__file__).resolve().parents[1]

REPOSITORY = yaml.safe_load((ROOT / "galaxy.yml").read_text())["repository"]

project = "nodecare.kubernetes"
title = html_title = html_short_title = project
project_copyright = "the nodecare contributors"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "sphinx_ansible_theme"
html_theme_options = {"documentation_home_url": REPOSITORY, "topbar_links": {"Repository": REPOSITORY}}
pygments_style = "ansible"
highlight_language = "YAML+Jinja"
html_use_index = html_copy_source = html_show_sphinx = False
default_role = "any"
nitpicky = True
myst_all_links_external = True  # those to other pages, too, are resolved below

# Where Ansible's own documentation says what plugin pages refer to. To ask it for all of its labels, the site could not be built without a network.
ANSIBLE = "https://docs.ansible.com/ansible/latest/"
ANSIBLES = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
}
BUILTIN = re.compile(r"ansible_collections\.ansible\.builtin\.(\w+_(?:module|filter|lookup))$")


def file_of(docname):
    """The path in the repository that a page was made of, if it is one that links to others."""
    if docname.startswith("collection/docsite/"):
        return docname.replace("collection/docsite/", "docs/docsite/rst/") + ".rst"
    return docname + ".md" if docname.startswith("docs/") else None


def page_of(path):
    """The page that a file of the repository has become, or None."""
    if path.startswith("docs/") and path.endswith(".md"):
        return path[: -len(".md")]
    if path.startswith("docs/docsite/rst/"):
        return "collection/docsite/" + path[len("docs/docsite/rst/") : -len(".rst")]
    role = re.fullmatch(r"roles/(\w+)/README\.md", path)
    return "collection/%s_role" % role.group(1) if role else None


def resolve(app, document, docname):
    """Make each relative link of a page one that works in the site."""
    here = file_of(docname)
    for link in document.findall(nodes.reference) if here else ():
        written = urlsplit(link.get("refuri", ""))
        if link.get("internal") or written.scheme or written.netloc or not written.path:
            continue
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), written.path))
        page, anchor = page_of(path), "#" + written.fragment if written.fragment else ""
        if page:
            link["refuri"] = app.builder.get_relative_uri(docname, page) + anchor
        elif (ROOT / path).is_file():
            link["refuri"] = app.builder.get_relative_uri(docname, "files/").removesuffix(".html") + path
            copied = Path(app.outdir) / "files" / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, copied)
        elif (ROOT / path).is_dir():
            link["refuri"] = REPOSITORY


def resolve_ansibles(app, env, missing, text):
    """A link into Ansible's own documentation, where it is known where that is."""
    label = missing["reftarget"]
    builtin = BUILTIN.match(label)
    page = "collections/ansible/builtin/%s.html" % builtin.group(1) if builtin else ANSIBLES.get(label)
    return nodes.reference("", "", text, refuri=ANSIBLE + page, internal=False) if page else None


def setup(app):
    app.connect("missing-reference", resolve_ansibles)
    app.connect("doctree-resolved", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
