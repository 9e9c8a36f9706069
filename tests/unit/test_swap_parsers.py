"""The parsers of what can bring swap back, against the real readers of the same text: the C library, systemd and systemd-escape."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import swap
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.swap import _boot, _fstab, _suspects
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import RecordedNode

GENERATOR = Path("/usr/lib/systemd/system-generators/systemd-fstab-generator")
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300)
FIRST = st.sampled_from(
    ["/dev/sda2", "UUID=1-2", 'UUID="1-2"', "LABEL='a'", "PARTLABEL=sw\\040ap", "/swap\\040file", "/a\\134b", "#x", "swap", "/dev/mapper/vg-swap"]
)
KIND = st.sampled_from(["swap", "swap", "swap", "ext4", "none", "swap2", "Swap", "swap\r", "\\163wap", "swap\x0b", "swap\u00a0"])
OPTIONS = st.lists(st.sampled_from(["sw", "noauto", "auto", "defaults", "pri=5", "_netdev", "noautox", "nofail"]), max_size=3).map(",".join)
BLANKS = st.sampled_from([" ", "\t", "  ", " \t "])
LINE = st.builds(
    lambda lead, first, second, kind, options, blank, rest: lead + blank.join(part for part in (first, second, kind, options, rest) if part),
    st.sampled_from(["", "", " ", "\t"]),
    FIRST,
    st.sampled_from(["none", "swap", "-", "/swap", "#"]),
    KIND,
    OPTIONS,
    BLANKS,
    st.sampled_from(["", "0 0", "0", "# c"]),
)
FSTAB = st.lists(st.one_of(LINE, LINE, st.sampled_from(["", "# /dev/a none swap sw", "x", "a b"])), max_size=6).map("\n".join)
EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Mntent(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("fsname", "dir", "type", "opts")] + [("freq", ctypes.c_int), ("passno", ctypes.c_int)]


@pytest.fixture(scope="module")
def getmntent():
    """What the C library reads, and so systemd and mount: [(first field, options)] of the swap lines."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "getmntent"):
        pytest.skip("the C library has no getmntent")
    library.setmntent.restype, library.getmntent.restype = ctypes.c_void_p, ctypes.POINTER(Mntent)

    def lines(path):
        stream = ctypes.c_void_p(library.setmntent(os.fsencode(path), b"r"))
        found = []
        while True:
            entry = library.getmntent(stream)
            if not entry:
                break
            if entry.contents.type == b"swap":
                found.append((entry.contents.fsname.decode(), [one for one in entry.contents.opts.decode().split(",") if one]))
        library.endmntent(stream)
        return found

    return lines


@EXAMPLES
@given(FSTAB)
def test_every_swap_line_that_the_c_library_finds_is_found(getmntent, tmp_path, text):
    path = tmp_path / "fstab"
    path.write_text(text, newline="")
    assert [(one["what"], [option for option in one["options"] if option]) for one in _fstab.entries(text)] == getmntent(path)


@pytest.mark.skipif(not GENERATOR.exists(), reason="this machine has no systemd-fstab-generator to compare with")
@settings(EXAMPLES, max_examples=40)
@given(FSTAB)
def test_systemd_makes_of_an_fstab_what_is_predicted(tmp_path, text):
    (tmp_path / "etc").mkdir(exist_ok=True)
    (tmp_path / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    (tmp_path / "etc/fstab").write_text(text, newline="")
    (tmp_path / "made").mkdir(exist_ok=True)
    told = {"SYSTEMD_FSTAB": str(tmp_path / "etc/fstab"), "SYSTEMD_LOG_LEVEL": "debug", "SYSTEMD_LOG_TARGET": "console", "PATH": os.environ["PATH"]}
    said = subprocess.run([GENERATOR, *[tmp_path / "made"] * 3], env=told, capture_output=True, text=True, check=False).stderr
    if text.strip() and "Parsing %s" % (tmp_path / "etc/fstab") not in said:
        pytest.skip("this systemd-fstab-generator does not tell what it reads")
    theirs = {(what, noauto == "yes") for what, noauto in re.findall(r"^Found entry what=(.*?) where=.*? type=swap .*?noauto=(yes|no)", said, re.M)}
    node = RecordedNode(tmp_path, {})
    ours = {(_fstab.udev_path(one["what"]), one["why"] == "its options say noauto") for one in _fstab.fstab(node, _boot.Boot(node))}
    assert ours == theirs


@pytest.mark.skipif(not Path("/usr/bin/systemd-escape").exists(), reason="this machine has no systemd-escape to compare with")
@settings(EXAMPLES, max_examples=25)
@given(
    st.lists(st.text("ab./-_:\\ \u00e9@+", min_size=1, max_size=6).filter(lambda part: part.strip("/") not in ("", ".", "..")), min_size=1, max_size=3).map(
        "/".join
    )
)
def test_a_unit_is_named_as_systemd_names_it(path):
    answer = subprocess.run(["systemd-escape", "--path", "--suffix=swap", "/" + path], capture_output=True, text=True, check=False)
    if answer.returncode == 0 and "/./" not in "/%s/" % path:  # it takes a path apart first
        assert _boot.swap_unit("/" + path) == answer.stdout.strip()


FILES = ("/etc/fstab", "/proc/swaps", "/proc/meminfo", "/proc/cmdline", "/etc/crypttab", "/etc/waagent.conf", "/proc/self/mountinfo", "/etc/crontab")
FILES += ("/usr/lib/systemd/zram-generator.conf", "/etc/systemd/system/x.swap", "/run/systemd/generator/y.swap", "/etc/cloud/cloud.cfg", "/etc/rpi/swap.conf")
PROGRAMS = ("zram-generator", "rpi-swap-generator", "systemd-gpt-auto-generator")
WORDS = st.sampled_from(
    [
        "swap",
        "[zram0]",
        "What=",
        "size:",
        "systemd.swap=",
        "ResourceDisk.EnableSwap=y",
        " / ",
        "8:1",
        " - ",
        "swapon",
        "=",
        "\\040",
        "{",
        "\n",
        "\t",
        '"',
        "MemTotal:",
    ]
)


@settings(EXAMPLES, max_examples=60)
@given(st.one_of(TEXT, st.lists(WORDS, max_size=20).map(" ".join)))
def test_nothing_in_these_files_breaks_the_probe(tmp_path, text):
    for path in FILES:
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, newline="")
    for name in PROGRAMS:
        program = tmp_path / "usr/lib/systemd/system-generators" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("(a program)")
    (tmp_path / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    node = RecordedNode(tmp_path, {})
    json.dumps(node.facts(swap.FACTS))
    assert [one for one in node.problems if "Error" in one["why"]] == []


@given(TEXT)
def test_only_lines_that_turn_swap_on_are_suspects(text):
    for number in _suspects.swapon(text):
        line = text.split("\n")[number - 1]
        assert "swapon" in line and not line.lstrip(" \t").startswith("#")


@given(
    st.lists(st.tuples(st.sampled_from(["swap", "gpt_auto", "gpt-auto", "zram"]), st.sampled_from(["0", "no", "off", "1", "yes", ""])), min_size=1, max_size=4)
)
def test_the_last_switch_on_the_command_line_wins(switches):
    boot = object.__new__(_boot.Boot)
    boot.options = _boot.options(" ".join("systemd.%s=%s" % one for one in switches))
    name, value = switches[-1]
    assert boot.switch("systemd." + name.replace("_", "-")) is (value not in ("0", "no", "off"))
