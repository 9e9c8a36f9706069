# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter that puts together what several runs have read."""

from __future__ import annotations

DOCUMENTATION = r"""
name: merge_reports
short_description: Put together what several runs have read
version_added: 0.1.0
author:
  - The nodecare contributors (@nodecare)
description:
  - Takes the facts that several runs have saved, each of other nodes, such as the slices of a job of AWX, and judges them as if one run had read them
    all. Nodes of different runs are compared with each other, too.
  - The answer is the report that this one run would have made.
positional: expected
options:
  _input:
    description:
      - Saved bundles (C(schema) V(nodecare.bundle/1)), as M(nodecare.kubernetes.report) writes them with
        O(nodecare.kubernetes.report#module:save_facts=true).
    type: list
    elements: dict
    required: true
  expected:
    description: Nodes that one of the runs has to know. Each other one is reported as not read.
    type: list
    elements: str
    default: []
seealso:
  - module: nodecare.kubernetes.report
  - plugin: nodecare.kubernetes.judge
    plugin_type: filter
"""

EXAMPLES = r"""
- name: How many nodes fail in all slices together?
  ansible.builtin.debug:
    msg: "{{ (slices | nodecare.kubernetes.merge_reports(groups['all'])).summary }}"
  vars:
    files: "{{ query('ansible.builtin.fileglob', 'slices/*.json') }}"
    slices: "{{ query('ansible.builtin.file', *files) | map('from_json') }}"
"""

RETURN = r"""
_value:
  description: The report, as C(report.json) has it; its schema is C(docs/report.schema.json).
  type: dict
"""

from ansible.errors import AnsibleFilterError

from ..plugin_utils import _judge, _merge, _report
from ..plugin_utils._policy import PolicyError
from ..plugin_utils._site import plain


def merge_reports(bundles, expected=()):
    """The report about the nodes of all these runs."""
    if not isinstance(bundles, list):
        raise AnsibleFilterError("nodecare.kubernetes.merge_reports needs a list of saved facts, not %s" % type(bundles).__name__)
    try:
        found = _merge.merged([("number %d" % number, plain(one)) for number, one in enumerate(bundles, 1)], map(str, expected))
    except (_judge.SelectionError, _merge.MergeError, PolicyError) as error:
        raise AnsibleFilterError("nodecare.kubernetes.merge_reports: %s" % error) from None
    return _report.document(found.nodes, found.findings)


class FilterModule:
    """Filters for reports."""

    def filters(self):
        return {"merge_reports": merge_reports}
