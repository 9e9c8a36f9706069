"""What the host probes read, against the programs that read the same; and clocks, against what they truly were."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import host
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.host import _confd, _ipvs, _modules, _ports, _sysctl
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._policy import policy
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._rules.host import _clock
from hypothesis import given, settings
from hypothesis import strategies as st
from spaces import has_ipv6

SYSTEMD = "/usr/lib/systemd/systemd-sysctl"

# -- sysctl.d: systemd itself applies the files, in a network namespace of its own -------------------------------------------

KEYS = ["net/ipv4/conf/%s/%s" % (link, name) for link in ("all", "default", "lo") for name in ("rp_filter", "log_martians")] + ["net/ipv4/ip_forward"]
SPELT = [key.replace("/", ".") for key in KEYS] + KEYS + ["net.ipv4.conf.all.forwarding", "/net//ipv4/conf/lo/rp_filter"]
PATTERNS = ["net.ipv4.conf.*.rp_filter", "net/ipv4/conf/*/log_martians", "net.ipv4.conf.l?.*", "net.ipv4.conf.[ad]*.rp_filter", "net.*.forwarding"]
LINES = st.one_of(
    st.builds(
        "{}{}{}{}".format, st.sampled_from(["", "-", " ", "- "]), st.sampled_from(SPELT + PATTERNS), st.sampled_from(["=", " = ", "\t="]), st.sampled_from("01")
    ),
    st.sampled_from(SPELT).map("-{}".format),
    st.sampled_from(["", "# net.ipv4.ip_forward = 1", "; x", "no assignment", "=1", "-", "net.ipv4.ip_forward"]),
)
TEXTS = st.one_of(st.just(None), st.lists(LINES, max_size=6).map("\n".join))
FILES = st.dictionaries(
    st.tuples(st.sampled_from(_confd.FOLDERS), st.sampled_from(["10-a.conf", "50-b.conf", "99-c.conf", "zz", "k8s.conf"])), TEXTS, max_size=6
)


def can_unshare():
    tools = os.path.exists(SYSTEMD) and shutil.which("systemd-analyze") and shutil.which("unshare")
    return bool(tools) and subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="needs systemd-sysctl and the right to make a network namespace")
@settings(max_examples=25, deadline=None)
@given(files=FILES)
def test_the_next_boot_is_what_systemd_makes_of_the_same_files(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("root")
    for (folder, name), text in files.items():
        path = root / folder.lstrip("/") / "sysctl.d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/dev/null") if text is None else path.write_text(text)
    (root / "usr/lib/systemd").mkdir(parents=True)
    (root / "usr/lib/systemd/systemd-sysctl").touch()
    predicted = _sysctl.next_boot(_sysctl.sources(Node(str(root))), KEYS)
    shown = subprocess.run(["systemd-analyze", "cat-config", "--root=%s" % root, "sysctl.d"], capture_output=True, text=True, check=False)
    (root / "all.conf").write_text(shown.stdout)
    # A link's setting that was never written follows the default's; one that was stays.
    own = " ".join("echo 0 >%s;" % key for key in KEYS if "/lo/" in key)
    look = "cd /proc/sys; {3} cat {0}; {1} {2}/all.conf; cat {0}".format(" ".join(KEYS), SYSTEMD, root, own)
    said = subprocess.run(["unshare", "-n", "sh", "-c", look], capture_output=True, text=True, check=False).stdout.split()
    before, after = said[: len(KEYS)], said[len(KEYS) :]
    assert [predicted.get(key, [was])[0] for key, was in zip(KEYS, before)] == after


def test_who_sets_a_value_is_named():
    texts = [("a", "net.ipv4.ip_forward=0"), ("b", "net.ipv4.conf.all.forwarding = 1"), ("c", "vm.*=7")]
    assert _sysctl.next_boot(texts, ["net/ipv4/ip_forward", "vm/max_map_count"]) == {"net/ipv4/ip_forward": ("1", "b"), "vm/max_map_count": ("7", "c")}


# -- ports: real listeners in the kernel's own table -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "address", "table"), [(socket.AF_INET, "127.0.0.1", "/proc/net/tcp"), (socket.AF_INET6, "::1", "/proc/net/tcp6")], ids=["IPv4", "IPv6"]
)
def test_a_real_listener_is_found_with_its_inode_and_its_process(family, address, table):
    if family == socket.AF_INET6 and not has_ipv6():
        pytest.skip("this machine has no ::1")
    with socket.socket(family) as listener, socket.socket(family) as bound:
        listener.bind((address, 0))
        listener.listen()
        bound.bind((address, 0))
        inode = str(os.fstat(listener.fileno()).st_ino)
        found = list(_ports.listening(Node().read(table)))
        assert (listener.getsockname()[1], inode) in found
        assert bound.getsockname()[1] not in [port for port, _inode in found]
        assert _ports.holders(Node(), {inode})[inode]["pid"] == os.getpid()


@pytest.mark.parametrize("count", [1, 25, 26, 27, 28, 200])
def test_a_table_is_read_to_its_end_whether_its_last_page_is_full_or_not(count):
    with contextlib.ExitStack() as open_ones:
        listeners = [open_ones.enter_context(socket.socket()) for _one in range(count)]
        for one in listeners:
            one.bind(("127.0.0.1", 0))
            one.listen()
        found = {inode for _port, inode in _ports.listening(Node().table("/proc/net/tcp"))}
        assert {str(os.fstat(one.fileno()).st_ino) for one in listeners} <= found


# -- modules -----------------------------------------------------------------------------------------------------------------


@given(st.sets(st.sampled_from(_modules.WATCHED)), st.sampled_from(["", ".xz", ".zst", ".gz"]), st.booleans())
def test_exactly_the_modules_of_an_index_are_found(names, packed, dashes):
    spelt = [name.replace("_", "-") if dashes else name for name in sorted(names)]
    index = "".join("kernel/net/x/%s.ko%s: kernel/lib/my_%s.ko%s\n" % (name, packed, name, packed) for name in spelt)
    assert {name for name in _modules.WATCHED if _modules._lists(index, name)} == names


# -- whatever stands in the files ----------------------------------------------------------------------------------------------


class Hostile(Node):
    """A machine where the same text stands in every file and is every name in every directory."""

    text = ""

    def read(self, path, limit=0, last=0):
        return self.text

    def glance(self, path, limit=0):
        return self.text.encode("utf-8", "replace")

    def list(self, path):
        name = self.text.replace("\0", "").replace("/", "")  # which no name can hold
        return [name, name + ".conf", "1"]

    def points(self, path):
        return [None, self.text, "socket:[%s]" % self.text]

    def run(self, argv, deadline=None):
        return super().run(["/nowhere"])


WORDS = st.sampled_from(
    ["localhost", "127.0.0.1", "nameserver", "search", "install", "0A", ":280A", "=", "-", "\0", "\t", "#", "[", "*", "net.ipv4.*", "SELINUX=", "1"]
)


@settings(max_examples=50, deadline=None)
@given(text=st.one_of(st.text(), st.lists(st.one_of(WORDS, st.sampled_from([" ", "\n", "\r\n"])), max_size=40).map("".join)))
def test_no_text_breaks_a_probe(text):
    node = Hostile("/nowhere")
    node.text = text
    facts = node.facts({**host.FACTS, **host.WAITING})
    assert not [one for one in node.problems if "Error" in one["why"]]
    assert all(value is not None for value in facts.values())


# -- clocks ------------------------------------------------------------------------------------------------------------------

DELAYS = st.floats(0, 5)


@st.composite
def readings(draw):
    """(the true offset, what would be noted of it) for a clock that was read over a slow line."""
    true, start = draw(st.floats(-20, 20)), draw(st.floats(0, 600))
    before, during, after = draw(DELAYS), draw(DELAYS), draw(DELAYS)
    at = start + before + true
    noted = {"sent": start, "at": at, "until": at + during, "seconds": round(during, 3), "received": start + before + during + after}
    return true, noted


@given(readings())
def test_the_true_offset_is_always_inside_the_interval(reading):
    true, noted = reading
    low, high = _clock.offset(noted)
    assert low <= true <= high
    assert high - low <= noted["received"] - noted["sent"] - noted["seconds"] + 0.01


@given(readings(), st.floats(-100, 100))
def test_a_clock_that_is_set_while_it_is_read_gives_an_interval_around_both(reading, step):
    true, noted = reading
    low, high = _clock.offset({**noted, "until": noted["until"] + step})
    assert low <= max(true, true + step)
    assert high >= min(true, true + step)


@settings(max_examples=100)
@given(st.lists(readings(), min_size=2, max_size=8))
def test_only_clocks_that_truly_differ_from_most_others_are_accused(readings):
    true = {"n%d" % number: offset for number, (offset, _noted) in enumerate(readings)}
    said = _clock.clock_skew({"n%d" % number: [noted, {"kernel": None}] for number, (_offset, noted) in enumerate(readings)}, policy({}))
    for name, verdict in said.items():
        apart = sum(abs(true[name] - other) > 1.0 for other_name, other in true.items() if other_name != name)
        assert verdict.status != "fail" or apart > (len(readings) - 1) / 2, (name, true, verdict)
        assert verdict.status != "pass" or apart == 0, (name, true, verdict)


@given(st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=8), st.floats(4, 1000))
def test_a_clock_that_differs_by_more_than_reading_took_is_accused_alone(offsets, wrong):
    offsets = [*offsets, wrong]
    noted = [{"sent": 0.0, "at": 0.5 + offset, "until": 0.7 + offset, "seconds": 0.2, "received": 1.0} for offset in offsets]
    nodes = {str(number): [one, {"kernel": None}] for number, one in enumerate(noted)}
    said = _clock.clock_skew(nodes, policy({}))
    assert [name for name, verdict in said.items() if verdict.status == "fail"] == [str(len(offsets) - 1)]


# -- IPVS: as ip_vs_info_seq_show of the kernel writes it ------------------------------------------------------------------

VIRTUAL = """IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:01BB rr %s
  -> 0A000002:192B      Masq    1      3          0         \x20
  -> 0A000001:192B      Masq    1      3          0         \x20
TCP  0A60000A:0035 rr\x20
TCP  [fd00:0000:0000:0000:0000:0000:0000:0001]:01BB rr\x20
  -> [fd00:0000:0000:0000:0000:0000:0000:0011]:192B      Masq    1      0          0         \x20
FWM  00000001 rr\x20
  -> 0A000001:0000      Route   1      0          0         \x20
UDP  0A60000A:0035 rr\x20
  -> 0AF40102:0035      Masq    1      0          1         \x20
"""


@pytest.mark.parametrize("flags", ["", "persistent 10800 FFFFFFFF"])
def test_ipvs(tmp_path, flags):
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/ip_vs").write_text(VIRTUAL % flags)
    assert host.ipvs(Node(str(tmp_path))) == {
        "count": 4,
        "empty_count": 1,
        "empty": ["tcp 10.96.0.10:53"],
        "https": {"tcp 10.96.0.1:443": 2, "tcp [fd00::1]:443": 1},
    }


def test_no_ipvs_is_no_problem(tmp_path):
    node = Node(str(tmp_path))
    assert host.ipvs(node) is None
    assert node.problems == []


@given(st.text(max_size=300) | st.lists(st.sampled_from(VIRTUAL.splitlines()), max_size=12).map("\n".join))
def test_any_ipvs_table_is_read(text):
    for one in _ipvs.services(text):
        assert one["servers"] >= 0
