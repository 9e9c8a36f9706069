"""The repair of swap on machines made of directories: what it changes, byte by byte, what it refuses, and that nothing is left after undo.

- case: one sentence
  tree: debian-12-gpt-swap     # a recorded machine; without one the machine is empty
  files: {path: text, null or {link: …}}
  systemd: 239                 # the version, where it is not the tree's
  swaps: [/dev/vda2]           # what is on
  runs: [zramswap.service]     # services that are active
  settings: {…}                # of the module, where they differ from its defaults
  becomes: {path: text, null, directory or {link: …}}   # all paths that differ afterwards
  order: [path, …]             # in which they are changed
  stops: [zramswap.service]
  left: [path]                 # what is only named
  refused: a part of the reason, and nothing has changed
  fails: a part of the message
"""

from __future__ import annotations

import contextlib
import os
import re
import time

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _changes
from ansible_collections.nodecare.kubernetes.plugins.module_utils._journal import Busy, Conflict, Entry, Journal
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs import Failed, Refused, undo
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.swap import Settings, _off, absent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import machine
from tables import table

CASES = [pytest.param(case, id=case["case"]) for case in table("repairs/swap")]
HEADER = "Filename\tType\tSize\tUsed\tPriority\n"
OURS = ("/var", "/run/nodecare", "/proc/swaps", "/asked", "/run")

# What the machine's programs do to it: they find it by their own place.
PROGRAMS = {
    "/usr/sbin/swapoff": 'case $1 in /dev/broken) echo "swapoff failed: Cannot allocate memory"; exit 4;; esac\n'
    'grep -v -F "$1" "$root/proc/swaps" > "$root/proc/new"; mv "$root/proc/new" "$root/proc/swaps"\n',
    "/usr/sbin/swapon": 'for device; do :; done; printf "%s\\tpartition\\t2000000\\t0\\t-2\\n" "$device" >> "$root/proc/swaps"\n',
    "/usr/bin/systemctl": 'echo "$@" >> "$root/asked"\n'
    'case $1 in --version) echo systemd VERSION;; is-active) case " RUNS " in *" $3 "*) ;; *) exit 3;; esac;; esac\n',
}


@pytest.fixture
def made(tmp_path):
    """A function that makes the machine of a case; answers its root."""

    def make(case):
        files = {"/proc/swaps": HEADER + "".join(_area(one) for one in case.get("swaps", ()))}
        files.update({"/proc/meminfo": "MemTotal: 4017564 kB\nMemAvailable: 3402188 kB\n", "/proc/sys/kernel/random/boot_id": "one\n"})
        for path, text in PROGRAMS.items():
            script = text.replace("VERSION", str(case.get("systemd", 252))).replace("RUNS", " ".join(case.get("runs", ())))
            files[path] = '#!/bin/sh\nroot=$(dirname "$0")/../..\n' + script
        if "systemd" in case:
            files["/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-252.so"] = None
        root, _recorded, _denied = machine(case.get("tree"), {"files": {**files, **case.get("files", {})}}, tmp_path)
        for path in (*PROGRAMS, "/etc/rc.local"):
            if (root / path[1:]).exists():
                (root / path[1:]).chmod(0o755)
        return root

    return make


def _area(one):
    one = one if isinstance(one, dict) else {"device": one, "used": 0}
    return "%s\tpartition\t4194300\t%d\t-2\n" % (one["device"], one["used"])


def state(root):
    """All that a machine's paths are, but for what the repair keeps for itself."""
    return {
        path: _of(root / path[1:]) for path in ("/" + str(one.relative_to(root)) for one in root.rglob("*")) if not path.startswith(OURS[:4]) and path != "/run"
    }


def _of(path):
    if path.is_symlink():
        return {"link": os.readlink(path)}
    return "directory" if path.is_dir() else (path.read_bytes(), path.stat().st_mode & 0o7777)


def wanted(before, becomes):
    """The state that a case asks for."""
    after = dict(before)
    for path, text in becomes.items():
        if text is None:
            del after[path]
        elif isinstance(text, dict) or text == "directory":
            after[path] = text
        else:
            after[path] = text.encode(), before[path][1] if path in before else 0o644
    return after


def on(root):
    return [line.split("\t")[0] for line in (root / "proc/swaps").read_text().splitlines()[1:]]


@pytest.mark.parametrize("case", CASES)
def test_case(case, made):
    root = made(case)
    given = Settings(**case.get("settings", {}))
    before, areas = state(root), on(root)
    if "fails" in case or "refused" in case:
        with pytest.raises(Failed if "fails" in case else Refused, match=re.escape(case.get("fails", case.get("refused")))):
            absent(given, root=str(root))
        assert (state(root), on(root)) == (before, areas)
        return
    foreseen = absent(given, check=True, root=str(root))
    assert (state(root), on(root)) == (before, areas), "check mode has changed something"
    done = absent(given, root=str(root))
    assert state(root) == wanted(before, case["becomes"])
    assert on(root) == done["active"] == done["waiting"] == []
    assert done["changed"] is bool(areas or case["becomes"])
    assert [done[key] for key in ("changed", "changes", "diff", "was_active")] == [foreseen[key] for key in ("changed", "changes", "diff", "was_active")]
    assert {one["path"] for one in done["changes"]} == set(case["becomes"])
    assert "order" not in case or [one["path"] for one in done["changes"]] == case["order"]
    assert [one["by"] for one in done["left"]] == case.get("left", [])
    asked = (root / "asked").read_text() if (root / "asked").exists() else ""
    assert re.findall("^stop (.*)", asked, re.M) == case.get("stops", [])
    assert not re.search("^daemon-reload$.*^stop ", asked, re.M | re.S), "a masked unit has no ExecStop any more"
    again = absent(given, root=str(root))
    assert not again["changed"] and again["for_good"] == "predicted" and state(root) == wanted(before, case["becomes"])
    back = undo.take_back(check=True, root=str(root))
    assert state(root) == wanted(before, case["becomes"])
    assert undo.take_back(root=str(root))["changes"] == back["changes"]
    assert (state(root), on(root)) == (before, areas)
    assert not undo.take_back(root=str(root))["changed"]


# -- any fstab at all ----------------------------------------------------------------------------------------------------

LINE = st.builds(
    lambda lead, what, where, kind, rest: lead + what + where + kind + rest,
    st.sampled_from([b"", b" ", b"\t", b"#", b"# off by nodecare: "]),
    st.sampled_from([b"/dev/sda2", b"UUID=1-2", b'LABEL="a b"', b"/swap\\040file", b"\xff\xfe", b"/dev/mapper/vg-swap"]),
    st.sampled_from([b" none ", b"\tswap\t", b" - ", b"\t\t/x \t"]),
    st.sampled_from([b"swap", b"swap", b"swap", b"ext4", b"Swap", b"swap\x0b"]),
    st.sampled_from([b"", b" sw 0 0", b"\tnoauto\t0\t0", b" sw,pri=5\r", b"\r", b" sw # \xc3\xa4\xff"]),
)
LINES = st.lists(st.one_of(LINE, LINE, st.binary(max_size=20).map(lambda some: some.replace(b"\n", b""))), max_size=6)
FSTAB = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, st.sampled_from([b"", b"\n", b"\n\n", b"\r\n"]))
EXAMPLES = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])


def machine_with(where, content):
    root = where / "root"
    (root / "etc").mkdir(parents=True, exist_ok=True)
    (root / "etc/fstab").write_bytes(content)
    os.chmod(root / "etc/fstab", 0o640)
    return root


@EXAMPLES
@given(FSTAB)
def test_undo_brings_back_the_very_bytes_of_any_fstab(tmp_path, content):
    root = machine_with(tmp_path, content)
    done = absent(Settings(), root=str(root))
    after = (root / "etc/fstab").read_bytes()
    pairs = list(zip(content.split(b"\n"), after.split(b"\n")))
    assert after.count(b"\n") == content.count(b"\n")
    assert all(new in (old, b"# off by nodecare: " + old) for old, new in pairs), "something else than a comment's mark has changed"
    assert done["changed"] is (after != content)
    assert not absent(Settings(), root=str(root))["changed"]
    undo.take_back(root=str(root))
    assert (root / "etc/fstab").read_bytes() == content
    assert (root / "etc/fstab").stat().st_mode & 0o7777 == 0o640


@EXAMPLES
@given(FSTAB, st.lists(st.tuples(st.integers(0, 8), st.sampled_from([b"/dev/nfs /data nfs defaults 0 0", b"# a word", b""])), min_size=1, max_size=3))
def test_undo_leaves_the_lines_that_others_have_added_since(tmp_path, content, added):
    root = machine_with(tmp_path, content)

    def add(text):
        lines = text.split(b"\n")
        for place, line in added:
            lines.insert(place, line)
        return b"\n".join(lines)

    absent(Settings(), root=str(root))
    (root / "etc/fstab").write_bytes(add((root / "etc/fstab").read_bytes()))
    undo.take_back(root=str(root))
    assert (root / "etc/fstab").read_bytes() == add(content)


# -- killed in the middle ------------------------------------------------------------------------------------------------

GPT = {"tree": "debian-12-gpt-swap", "files": {"/etc/fstab": "PARTLABEL=swap none swap sw 0 0\n"}, "swaps": ["/dev/vda2"]}


class Killed(BaseException):
    """As a SIGKILL: nothing cleans up behind it."""


@pytest.mark.parametrize("after", range(1, 10))
@pytest.mark.parametrize("then", ["undone", "finished"])
def test_a_repair_that_was_killed_is_undone_or_finished(after, then, made, monkeypatch):
    root = made(GPT)
    before, puts = state(root), []
    put = _changes.Paths.put

    def dying(self, path, what):
        puts.append(path)
        if len(puts) > after:
            raise Killed
        put(self, path, what)

    monkeypatch.setattr(_changes.Paths, "put", dying)
    with contextlib.suppress(Killed):
        absent(Settings(), root=str(root))
    monkeypatch.undo()
    if then == "finished":
        absent(Settings(), root=str(root))
        assert on(root) == []
        assert os.readlink(root / "etc/systemd/system/swap.target") == "/dev/null"
        assert not absent(Settings(), root=str(root))["changed"]
    undo.take_back(root=str(root))
    assert (state(root), on(root)) == (before, ["/dev/vda2"])


def test_what_cannot_be_written_is_taken_back_at_once(made, monkeypatch):
    """The disk is full in the middle: what was done is undone, and the journal does not pretend anything."""
    root = made(GPT)
    before, put = state(root), _changes.Paths.put

    def full(self, path, what):
        if path == "/etc/fstab" and what.content.startswith(b"# off"):
            raise _changes.Unchangeable("/etc/fstab cannot be changed: No space left on device")
        put(self, path, what)

    monkeypatch.setattr(_changes.Paths, "put", full)
    with pytest.raises(_changes.Unchangeable, match="No space left"):
        absent(Settings(), root=str(root))
    assert (state(root), on(root)) == (before, ["/dev/vda2"])
    assert not undo.take_back(root=str(root))["changed"]


@pytest.mark.parametrize("state", ["done", "undone"])
def test_what_was_done_is_not_called_unchanged_where_only_the_journal_fails(state, made, monkeypatch):
    root = made(GPT)
    note = Entry.note

    def full(self, **more):
        if more.get("state") == state:
            raise _changes.Unchangeable("no space left")
        note(self, **more)

    monkeypatch.setattr(Entry, "note", full)
    with pytest.raises(Failed, match="it was changed, but that it was done could not be noted: no space left"):
        absent(Settings(), root=str(root))
        undo.take_back(root=str(root))
    assert on(root) == ([] if state == "done" else ["/dev/vda2"])


# -- the journal ---------------------------------------------------------------------------------------------------------


def test_undo_refuses_what_somebody_else_has_changed(made):
    root = made(GPT)
    absent(Settings(), root=str(root))
    (root / "etc/fstab").write_text("something else\n")
    before = state(root)
    with pytest.raises(Conflict, match="/etc/fstab was changed by somebody else since; its earlier bytes are in /var/lib/nodecare/journal/.*/before-3"):
        undo.take_back(root=str(root))
    assert state(root) == before, "half of it was taken back"


def test_two_repairs_of_one_file_are_taken_back_one_after_the_other(made):
    root = made({"files": GPT["files"]})
    first = (root / "etc/fstab").read_bytes()
    one = absent(Settings(), root=str(root))["journal"]
    with (root / "etc/fstab").open("a") as fstab:
        fstab.write("/swap.img none swap sw 0 0\n")
    second = (root / "etc/fstab").read_bytes()
    two = absent(Settings(), root=str(root))["journal"]
    assert undo.take_back(name=two, root=str(root))["entries"] == [two]
    assert (root / "etc/fstab").read_bytes() == second
    absent(Settings(), root=str(root))
    assert undo.take_back("swap", root=str(root))["entries"][-1] == one
    assert (root / "etc/fstab").read_bytes() == first + b"/swap.img none swap sw 0 0\n"


def test_undo_of_what_is_not_there(made):
    root = made(GPT)
    assert undo.take_back(root=str(root))["changed"] is False
    with pytest.raises(Refused, match="the journal has no entry x; it has none"):
        undo.take_back(name="x", root=str(root))


def test_after_a_boot_it_is_proven_and_undo_turns_nothing_on(made):
    root = made(GPT)
    absent(Settings(), root=str(root))
    (root / "proc/sys/kernel/random/boot_id").write_text("two\n")
    assert absent(Settings(), root=str(root))["for_good"] == "proven"
    undo.take_back(root=str(root))
    assert on(root) == []


def test_only_one_at_a_time(made):
    root = made(GPT)
    with Journal(_changes.Paths(str(root))).alone(), pytest.raises(Busy, match="another run"):
        absent(Settings(), root=str(root))


def test_the_journal_is_for_root_only(made):
    root = made(GPT)
    absent(Settings(), root=str(root))
    for path in (root / "var/lib/nodecare").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


# -- swapoff -------------------------------------------------------------------------------------------------------------


def slowly(root):
    """Lets swapoff wait until there is a file go, or until the test has failed and all is gone."""
    swapoff = root / "usr/sbin/swapoff"
    swapoff.write_text(swapoff.read_text().replace("case", 'until test -e "$root/go" -o ! -e "$root"; do sleep 0.05; done\ncase', 1))


def to_the_end(root):
    """What the look says that has nothing left to wait for."""
    (root / "go").touch()
    looks = (absent(Settings(), root=str(root)) for _number in range(20))
    return next(look for look in looks if not look["waiting"])


def test_swapoff_that_takes_its_time_is_waited_for_by_the_next_look(made):
    root = made({"swaps": [{"device": "/dev/sdb1", "used": 1000}, "/dev/sdc1"]})
    slowly(root)
    first = absent(Settings(), root=str(root))
    assert [one["device"] for one in first["waiting"]] == ["/dev/sdb1", "/dev/sdc1"]
    assert (to_the_end(root)["active"], on(root)) == ([], [])
    assert undo.take_back(root=str(root))["entries"] == [first["journal"]], "every look made an entry of its own"
    assert sorted(on(root)) == ["/dev/sdb1", "/dev/sdc1"]


def test_undo_does_not_overtake_a_swapoff_that_is_still_at_work(made):
    """The device is on until it is through, and would be off afterwards, with nothing left that brings it back."""
    root = made(GPT)
    slowly(root)
    fstab = (root / "etc/fstab").read_bytes()
    absent(Settings(), root=str(root))
    repaired = state(root)
    for check in (True, False):
        with pytest.raises(Conflict, match="swapoff of /dev/vda2 is still at work: wait until it is through, then undo"):
            undo.take_back(check=check, root=str(root))
    assert (state(root), on(root)) == (repaired, ["/dev/vda2"])
    (root / "go").touch()
    until = time.monotonic() + 10
    while on(root) and time.monotonic() < until:
        time.sleep(0.05)
    undo.take_back(root=str(root))
    assert (on(root), (root / "etc/fstab").read_bytes()) == (["/dev/vda2"], fstab)


def test_what_made_the_swap_ends_by_its_own_words_also_after_a_wait(made):
    """The look that ends it no longer finds it among what would return, for the first one has masked it."""
    root = made(next(case for case in table("repairs/swap") if case.get("stops") == ["zramswap.service"]))
    slowly(root)
    assert absent(Settings(), root=str(root))["waiting"] and not (root / "asked").exists()
    to_the_end(root)
    assert re.findall("^(stop .*|daemon-reload)", (root / "asked").read_text(), re.M)[:2] == ["stop zramswap.service", "daemon-reload"]


def test_a_swapoff_that_ended_between_two_looks_is_finished_by_the_next_one(made):
    root = made(next(case for case in table("repairs/swap") if case.get("stops") == ["zramswap.service"]))
    slowly(root)
    assert absent(Settings(), root=str(root))["waiting"]
    (root / "go").touch()
    for _again in range(1000):
        if not on(root):
            break
        time.sleep(0.02)
    last = absent(Settings(), root=str(root))
    assert (last["changed"], last["active"]) == (True, [])
    assert re.findall("^(stop .*|daemon-reload)", (root / "asked").read_text(), re.M)[:2] == ["stop zramswap.service", "daemon-reload"]
    assert not absent(Settings(), root=str(root))["changed"]
    (root / "proc/sys/kernel/random/boot_id").write_text("two\n")
    assert absent(Settings(), root=str(root))["for_good"] == "proven"


@pytest.mark.parametrize("read", range(3, 7))
def test_a_swapoff_that_ends_between_two_reads_has_not_failed(read, made, monkeypatch):
    """The device is off, and the exit code is not written down yet."""
    root = made({"swaps": ["/dev/sdb1"]})
    slowly(root)
    swapoff, active, reads = root / "usr/sbin/swapoff", _off.swap.active, []
    swapoff.write_text(swapoff.read_text() + "sleep 0.5\n")

    def goes_off_after_this(node):
        areas = active(node)
        reads.append(areas)
        if len(reads) == read:
            (root / "go").touch()
            while on(root):
                time.sleep(0.01)
        return areas

    monkeypatch.setattr(_off.swap, "active", goes_off_after_this)
    assert _off.turn_off(Node(str(root), 5.0), lambda _node, _area: None) == []


def test_a_swapoff_whose_shell_was_killed_is_still_at_work(made):
    """It leaves no exit code, and a second one beside it would be in its way."""
    root = made({"swaps": ["/dev/sdb1"]})
    slowly(root)
    swapoff = root / "usr/sbin/swapoff"
    swapoff.write_text(swapoff.read_text().replace("until", "kill -9 $PPID\nuntil", 1))
    assert absent(Settings(), root=str(root))["waiting"]
    assert (to_the_end(root)["active"], on(root)) == ([], [])


def test_swapoff_that_was_killed_says_so(made):
    root = made({"swaps": ["/dev/sdb1"]})
    (root / "usr/sbin/swapoff").write_text("#!/bin/sh\nkill -9 $PPID\n")
    with pytest.raises(Failed, match="swapoff /dev/sdb1 was killed"):
        absent(Settings(), root=str(root))
    assert on(root) == ["/dev/sdb1"]
