"""The parsers of the load probe: whatever a node says, they do not raise, and they find what the kernel wrote."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import load
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.load import _numbers, _room, _window
from hypothesis import given
from hypothesis import strategies as st
from recorded import read
from tables import table

TEXT = st.text(max_size=200) | st.text(alphabet="cpu some=avg10.: -()0123456789ab\n\t\\²", max_size=200)
PARSERS = [
    load.stalls,
    lambda text: _numbers.sized(text.splitlines()),
    _numbers.number,
    _numbers.hexadecimal,
    lambda text: float(text) if _numbers.decimal(text) else None,
    _room.mount_of,
    _window.cgroup,
    _window.disk,
    lambda text: _window.shares(text, text[::-1]),
    lambda text: _window.dropped(text.splitlines()),
    lambda text: _window.overflows(text.splitlines()),
    lambda text: _window.overflows(["TcpExt: ListenOverflows ListenDrops", "TcpExt: " + text]),
    lambda text: _window.status(text.encode("utf-8", "surrogatepass")),
]
TAIL = b" 1 1 1 0 -1 4194560 100 0 0 0 %d %d 0 0 20 0 12 0 500 1000000 %d 18446744073709551615 1 1\n"
COUNT = st.integers(0, 2**63)


@pytest.mark.parametrize("parser", PARSERS, ids=range(len(PARSERS)))
@given(text=TEXT)
def test_nothing_that_a_node_says_breaks_a_parser(parser, text):
    parser(text)


@given(name=st.binary(max_size=64), user=COUNT, system=COUNT, pages=COUNT)
def test_a_process_may_be_called_anything(name, user, system, pages):
    found = _window.status(b"77 (" + name + b") S" + TAIL % (user, system, pages))
    assert found == (user + system, 1, b"500", pages, name, b"S")


def test_a_process_that_got_the_number_of_an_earlier_one_starts_from_nothing():
    def line(start, ticks):
        return {7: (ticks, 1, start, 0, b"x", b"R")}

    assert _window.delta(line(b"500", 900), line(b"500", 920), 7)[0] == 20
    assert _window.delta(line(b"500", 900), line(b"800", 20), 7)[0] == 20
    assert _window.delta({}, line(b"800", 20), 7)[0] == 20


@given(path=st.text(alphabet="ab/ \t\n\\#0134", max_size=40), device=st.from_regex(r"[0-9]{1,3}:[0-9]{1,3}", fullmatch=True))
def test_mount_points_are_read_as_the_kernel_escapes_them(path, device):
    escaped = "".join("\\%03o" % ord(sign) if sign in " \t\n\\#" else sign for sign in "/" + path)
    mount = _room.mount_of("36 35 %s / %s rw,noatime shared:1 master:2 - ext3 /dev/root rw" % (device, escaped))
    assert mount == {"device": device, "mount": "/" + path, "type": "ext3", "source": "/dev/root"}


@given(before=st.lists(st.integers(0, 10**9), min_size=8, max_size=10), spent=st.lists(st.integers(0, 500), min_size=8, max_size=8))
def test_shares_are_parts_of_one(before, spent):
    after = [was + more for was, more in zip(before, spent)]
    found = _window.shares("cpu  " + " ".join(map(str, before)), "cpu  " + " ".join(map(str, after)))
    assert (found is None) == (sum(spent) == 0)
    if found:
        assert sum(found.values()) == pytest.approx(1, abs=0.001)
        assert found["steal"] == pytest.approx(spent[7] / sum(spent), abs=0.001)


@given(start=st.integers(0, 2**32 - 1), grown=st.integers(0, 2**31))
def test_disk_counters_may_turn_over(start, grown):
    def counted(ms):
        return {"sda": {"device": "8:0", "done": 10 if ms == start else 14, "ms": ms % 2**32, "now": 0, "busy": ms % 2**32, "waited": ms % 2**32}}

    found = _window.disks(counted(start), counted(start + grown), 1.0)
    assert (found[0]["ms_each"] == round(grown / 4, 2)) if grown else found == []


@pytest.mark.parametrize(
    ("name", "whole", "is_part"),
    [
        ("sda1", "sda", True),
        ("sdaa", "sda", False),
        ("nvme0n1p2", "nvme0n1", True),
        ("nvme0n10", "nvme0n1", False),
        ("dm-10", "dm-1", False),
        ("sda", "sda", False),
    ],
)
def test_partitions_are_told_from_disks(name, whole, is_part):
    assert _window.partition(name, whole) is is_part


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("0::/kubepods.slice/a.scope\n", "/kubepods.slice/a.scope"),
        ("12:cpu,cpuacct:/kubepods/pod1/a\n1:name=systemd:/user.slice\n0::/\n", "/kubepods/pod1/a"),
        ("4:cpuset:/x:y\n3:cpuacct:/with:colon\n", "/with:colon"),
        ("1:name=systemd:/\n", "/"),
        ("", None),
    ],
)
def test_the_control_group_is_found_in_both_versions(text, path):
    assert _window.cgroup(text) == path


def test_what_one_window_shows(tmp_path):
    cases = table("cases/load")
    facts = read(None, cases[0]["change"], tmp_path, ["load"])
    seen = facts["load"]
    assert facts["problems"] == []
    assert seen["window"]["processes"] == [
        {"name": "calico (node) x", "pid": 1234, "cpus": pytest.approx(20 / load._window.TICKS / 0.25), "rss_mib": 25600 * _window.PAGE >> 20}
    ]
    assert seen["window"]["own_cpus"] == pytest.approx(5 / load._window.TICKS / 0.25)
    assert seen["window"]["cgroups"][0]["path"] == "/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope"
    assert seen["window"]["cpu"] == {"user": 0.3, "nice": 0.0, "system": 0.1, "idle": 0.5, "iowait": 0.1, "irq": 0.0, "softirq": 0.0, "steal": 0.0}
    assert seen["window"]["disks"] == [{"name": "vda", "device": "254:0", "done": 10, "ms_each": 2.0, "queue": 0.08, "busy": 0.08, "in_flight": 1}]
    assert seen["window"]["network"]["softnet_dropped"] == [2, 0]
    assert seen["limits"]["neighbours_4"] == {"used": 13, "max": 1024}
    assert [(one["source"], one["paths"]) for one in seen["file_systems"]] == [
        ("/dev/vda1", ["/", "/var/lib/kubelet", "/var/log"]),
        ("/dev/vdb", ["/var/lib/docker"]),
    ]


def test_a_file_system_that_hangs_costs_its_deadline_and_no_other_its_facts():
    back = threading.Event()

    class Lost(Node):
        def room(self, path):
            if path == "/var/log":
                back.wait()
            return super().room(path)

    node = Lost(deadline=0.3)
    start = time.monotonic()
    found = node.facts({"file_systems": load.file_systems})["file_systems"]
    waited = time.monotonic() - start
    back.set()
    assert waited >= 0.3
    assert [(one["what"], one["kind"]) for one in node.problems] == [("/var/log", "hung")]
    assert any("/" in one["paths"] for one in found)
    assert not any("/var/log" in one["paths"] for one in found)


def test_who_works_hard_on_this_machine_is_among_the_heaviest():
    # The probe leaves out itself and its children, so the busy loop is a grandchild.
    shell = subprocess.Popen(["sh", "-c", "sh -c 'while :; do :; done' & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    busy = int(shell.stdout.readline())
    try:
        until = time.monotonic() + 60
        heaviest = []
        while busy not in heaviest and time.monotonic() < until:  # others may be busier for a while
            seen = load.window(Node())
            heaviest = [one["pid"] for one in seen["processes"]]
        assert busy in heaviest
        assert os.getpid() not in heaviest
        assert seen["cpu"]["idle"] < 1
    finally:
        os.kill(busy, 9)
        shell.communicate()


def test_two_passes_over_a_thousand_processes_cost_little():
    node = Node()
    start = time.process_time()
    passes, count = 20, 0
    for _pass in range(passes):
        count += len(_window.sample(node, again=True)["processes"])
    assert 1000 * 2 * (time.process_time() - start) / count < 0.3  # it takes some 0.04 s; a slow machine may need several times as much
