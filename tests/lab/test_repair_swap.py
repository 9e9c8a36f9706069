"""Swap on real nodes: found, turned off for good, proven by a real reboot, and taken back to the very bytes.

A case makes swap return in its own way, and the node is looked at by plain commands. Nodes without Kubernetes are enough; the story with a
kubelet is the scenario repair_swap.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from labs import IMPATIENT, PLAYBOOK, ROOT, Lab, changed, eventually

FSTAB = "printf '%s' >/etc/fstab; chmod 640 /etc/fstab"
# All that a repair could change, but for its own journal: what each path is, to whom it belongs, and its bytes.
STATE = r"find /etc /usr/lib/systemd -xdev \( -type f -exec sha256sum {} + \) -o -printf '%p %y %l\n'; find /etc -xdev -printf '%p %m %U %G\n'"
SWAPS = "tail -n +2 /proc/swaps | awk '{print $1}'"
AWAKE = "systemctl -q unmask swap.target; systemctl daemon-reload"  # a node of the lab has it masked, to be well

# Debian's own packages, put into the node as they are.
ZRAM_TOOLS = "systemctl daemon-reload; echo PERCENT=5 >>/etc/default/zramswap; systemctl -q enable --now zramswap"
ZRAM_GENERATOR = AWAKE + "; printf '[zram0]\\nzram-size = 64\\n' >/etc/systemd/zram-generator.conf; systemctl daemon-reload; systemctl start dev-zram0.swap"
PACKAGES = {ZRAM_TOOLS: "zram-tools", ZRAM_GENERATOR: "systemd-zram-generator"}
UNIT = """
test -e /var/swap || { dd if=/dev/zero of=/var/swap bs=1M count=16 2>/dev/null; chmod 600 /var/swap; mkswap /var/swap >/dev/null; }
printf '[Swap]\\nWhat=/var/swap\\n[Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/var-swap.swap
systemctl daemon-reload; systemctl -q enable --now var-swap.swap
"""
# how swap is made to be on and to return, and what is on then; spelled as people do, with carriage returns and without a last newline
GPT = AWAKE + "; systemctl start swap.target", "/dev/ubda1"
BY_LABEL = FSTAB % r"# \344\377\r\n\tPARTLABEL=swap\tnone  swap\tsw\t0 0\r\n/dev/nothing none swap noauto 0 0" + "; " + AWAKE + "; swapon -a", "/dev/ubda1"
BY_PATH = FSTAB % r"/dev/ubda2 / ext4 defaults 0 1\n  /dev/ubda1 x swap\n" + "; " + AWAKE + "; swapon -a", "/dev/ubda1"
BY_UNIT = UNIT, "/var/swap"
BY_ZRAM_TOOLS = ZRAM_TOOLS, "/dev/zram0"
BY_ZRAM_GENERATOR = ZRAM_GENERATOR, "/dev/zram0"
CASES = {
    "an empty fstab and a GPT partition": [GPT],
    "fstab by label, a swap unit and zram-tools": [BY_LABEL, BY_UNIT, BY_ZRAM_TOOLS],
    "fstab by path and zram-generator": [BY_PATH, BY_ZRAM_GENERATOR],
}
WELL = """
rm -f /usr/local/sbin/swapoff
systemctl -q disable var-swap.swap zramswap 2>/dev/null || true
rm -rf /etc/systemd/system/var-swap.swap /usr/lib/systemd/system/zramswap.service /etc/default/zramswap /usr/sbin/zramswap /var/lib/nodecare
rm -f /usr/lib/systemd/system-generators/zram-generator /etc/systemd/system-generators/zram-generator /etc/systemd/zram-generator.conf
: >/etc/fstab; chmod 644 /etc/fstab
swapoff -a; systemctl -q mask swap.target; systemctl daemon-reload
systemctl -q stop systemd-zram-setup@zram0 2>/dev/null || true
rmmod zram 2>/dev/null || true
"""


class Nodes(Lab):
    def preflight(self, place, *words, checks=("swap",)):
        """{rule: status} of the nodes' worst findings."""
        self.play("preflight", *words, nodecare_checks=list(checks), nodecare_report_dir=str(place), nodecare_fail_on="never", nodecare_cluster=False)
        order = ["fail", "warn", "unknown", "pass", "skip"]
        found = {}
        for one in json.loads((place / "report.json").read_text())["findings"]:
            found[one["id"]] = min(found.get(one["id"], "skip"), one["status"], key=order.index)
        return found

    def reboot(self, node):
        before = self.boot_id(node)
        self.ask("ssh", node, "systemctl reboot")
        eventually("%s to have booted again" % node, lambda: self.ask("ssh", node, "cat /proc/sys/kernel/random/boot_id")[1] not in ("", before), 900)
        eventually("%s to be through with that" % node, lambda: self.ask("ssh", node, "systemctl is-system-running --wait")[1] in ("running", "degraded"), 900)


def put(lab, node, package, place):
    """The files of a package of Debian's, without its scripts."""
    argv = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
    if subprocess.run(argv, cwd=place, capture_output=True, check=False).returncode:
        pytest.skip("this machine's apt does not give out %s" % package)
    with next(place.glob(package + "*.deb")).open("rb") as content:
        words = "cat >/tmp/x.deb; dpkg -x /tmp/x.deb /tmp/x; cp -r /tmp/x/etc /tmp/x/usr /; cp -r /tmp/x/lib/. /usr/lib/; rm -rf /tmp/x /tmp/x.deb"
        subprocess.run(lab.command("ssh", node, words), cwd=ROOT, stdin=content, check=True)


def make(ways, lab, node, place):
    """Let swap return in these ways; answers what is on then."""
    for words, _area in ways:
        if words in PACKAGES:
            put(lab, node, PACKAGES[words], place)
        lab.on(node, words)
    return sorted(area for _words, area in ways)


def on(lab, node):
    return sorted(lab.on(node, SWAPS).split())


@pytest.fixture(scope="module")
def lab(nodes):
    return Nodes(nodes.name)


@pytest.fixture
def node(lab):
    lab.on("n1", WELL)
    yield "n1"
    lab.on("n1", WELL)


@pytest.mark.parametrize("case", CASES)
def test_swap_is_off_for_good_and_undo_brings_back_the_very_bytes(case, lab, node, tmp_path):
    areas, only = make(CASES[case], lab, node, tmp_path), ("--limit", node)
    before = lab.on(node, STATE)
    assert on(lab, node) == areas
    assert lab.preflight(tmp_path, *only)["swap.active"] == "fail"

    predicted = lab.play("repair_swap", "--check", "--diff", *only)
    assert lab.on(node, STATE) == before and on(lab, node) == areas, "check mode has changed something"
    done = lab.play("repair_swap", "--diff", *only)
    assert diff(done) == diff(predicted) != []
    assert changed(done) == changed(predicted) == {node: 1}
    assert lab.on(node, SWAPS) == ""
    repaired = lab.on(node, STATE)
    assert changed(lab.play("repair_swap", *only)) == {node: 0}

    lab.reboot(node)
    assert lab.on(node, SWAPS) == "" and lab.on(node, STATE) == repaired
    said = lab.play("repair_swap", *only)
    assert changed(said) == {node: 0} and "it is proven that the next boot leaves it off" in said
    assert {status for rule, status in lab.preflight(tmp_path, *only).items() if rule != "swap.kubelet_policy"} == {"pass"}

    lab.play("undo", *only)
    assert lab.on(node, STATE) == before
    assert changed(lab.play("undo", *only)) == {node: 0}
    lab.reboot(node)
    assert on(lab, node) == areas, "the undone repair is still at work"


def diff(said):
    return re.findall(r"^(?:---|\+\+\+|@@|[-+]).*$", said, re.M)


def test_undo_at_once_turns_swap_on_again(lab, node, tmp_path):
    areas = make([BY_ZRAM_TOOLS], lab, node, tmp_path)
    before = lab.on(node, STATE)
    lab.play("repair_swap", "--limit", node)
    assert lab.on(node, SWAPS + "; systemctl is-active zramswap || true") == "inactive"
    assert "WARNING" not in lab.play("undo", "--limit", node)
    assert lab.on(node, STATE) == before
    assert lab.on(node, SWAPS + "; systemctl is-active zramswap").split() == [*areas, "active"]


SHORT = {**IMPATIENT, "nodecare_swap_wait": 60}
SLOW_SWAPOFF = "printf '#!/bin/sh\\ntouch /run/at-work; until test -e /run/go; do sleep 1; done; exec /usr/sbin/swapoff \"$@\"\\n' >/usr/local/sbin/swapoff"
PLUGS = {"pulled": ("cut", "start"), "frozen": ("freeze", "thaw")}


@pytest.fixture
def both(lab, node):
    """Two nodes whose GPT partition is on."""
    for name in ("n1", "n2"):
        lab.on(name, WELL)
        lab.on(name, GPT[0])
    yield lab
    for name in ("n1", "n2"):
        lab.on(name, WELL)


@pytest.mark.parametrize("plug", PLUGS)
def test_a_node_that_is_lost_in_the_middle_ends_the_run(plug, both):
    """While swapoff is at work on n1 its power is cut, or its time stops. n2 is not even looked at; when n1 is back, a second run finishes."""
    lose, regain = PLUGS[plug]
    both.on("n1", SLOW_SWAPOFF + "; chmod 755 /usr/local/sbin/swapoff; rm -f /run/at-work /run/go")
    untouched = both.on("n2", STATE)
    argv = [PLAYBOOK, "-i", "lab/hosts.sh", "playbooks/repair_swap.yml", "-e", json.dumps(SHORT)]
    with subprocess.Popen(argv, cwd=ROOT, env=both.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        eventually("swapoff to be at work", lambda: both.ask("ssh", "n1", "test -e /run/at-work")[0] == 0 or run.poll() is not None)
        both.do(lose, "n1")
        said = run.communicate(timeout=900)[0]
    assert run.returncode != 0 and "No further node is touched" in said, said
    assert not re.search(r"\bn2\b", said), "the next node was looked at:\n" + said
    assert both.on("n2", STATE) == untouched and both.on("n2", SWAPS) == "/dev/ubda1"
    both.do(regain, "n1", timeout=900)
    both.on("n1", "touch /run/go")
    both.play("repair_swap", **SHORT)
    assert [both.on(name, SWAPS) for name in ("n1", "n2")] == ["", ""]
