"""The same comparison on a lab's node, whose older kernel lists links in another order: by the low byte of their index, the newest first.

GUEST_LAYOUTS=200 tries more than the default; a layout takes a node about ten seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from labs import ROOT
from predicted import differences

from lab.autodetect import autodetect

COUNT = int(os.environ.get("GUEST_LAYOUTS", "20"))
FIRST = int(os.environ.get("FROM", "1000"))
VERSIONS = ("3.31.0", "3.22.0")
LIMIT = 120  # seconds for one layout on a busy machine
TRY = """
import json, layouts
for seed in range(%d, %d):
    print(json.dumps(layouts.tried(seed, {version: "./autodetect-" + version for version in %r})), flush=True)
"""


def test_layouts_on_a_node(nodes, tmp_path):
    _bring(nodes, _parcel(tmp_path))
    said = nodes.on("n1", "cd /root/autodetect && python3 -c '%s'" % (TRY % (FIRST, FIRST + COUNT, VERSIONS)).replace("'", '"'), timeout=COUNT * LIMIT)
    nodes.on("n1", "rm -r /root/autodetect")
    tried = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert len(tried) == COUNT
    assert [one for got in tried for one in differences(got) if one[-1] is not None] == []
    indexes = [[link["index"] for link in got["facts"]["present"]["links"]] for got in tried]
    assert COUNT < 20 or any(one != sorted(one) for one in indexes), "this kernel lists links by their index, as newer ones do"


def _parcel(place):
    """What a node needs to ask by itself: the layouts, the probe, the programs."""
    shutil.copytree(ROOT / "plugins/module_utils", place / "ansible_collections/nodecare/kubernetes/plugins/module_utils")
    shutil.copy(ROOT / "tests/lab/layouts.py", place)
    for version in VERSIONS:
        shutil.copy(autodetect(version), place / ("autodetect-" + version))
    return place


def _bring(nodes, place):
    packed = subprocess.run(["tar", "-C", str(place), "-czf", "-", "."], stdout=subprocess.PIPE, check=True).stdout
    unpack = nodes.command("ssh", "n1", "rm -rf /root/autodetect && mkdir /root/autodetect && tar -C /root/autodetect -xzf -")
    subprocess.run(unpack, cwd=ROOT, input=packed, check=True)
