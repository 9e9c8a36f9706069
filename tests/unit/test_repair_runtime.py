"""The repair of a silent runtime: what it plans on recorded and written machines, and what it does to daemons that really run."""

from __future__ import annotations

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes import kubelet, runtime
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.runtime._processes import arguments
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.runtime._containers import container_of, unit_path
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.runtime._look import look
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.runtime._plan import plan
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import RecordedNode, machine
from tables import table

CASES = [pytest.param(case, id=case["case"]) for case in table("repairs/runtime")]
USUAL = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "Result": "success", "NRestarts": 0, "KillMode": "process"}
STAT = "%d (%s) %s 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8000 1000 100 0\n"
STATUS = "Name:\t%s\nTracerPid:\t0\nvoluntary_ctxt_switches:\t90\nnonvoluntary_ctxt_switches:\t7\n"
ID = "0c5f1a7ad4e3b291" * 4


def units(said):
    """What systemctl show says about these."""
    blocks = [{"Id": name, **USUAL, **properties} for name, properties in said.items()]
    return "\n".join("".join("%s=%s\n" % item for item in block.items() if item[1] is not None) for block in blocks)


def processes(said):
    """The files that the kernel shows of these."""
    files = {}
    for pid, one in said.items():
        name, state, cgroup = one["name"], one.get("state", "S"), one["cgroup"]
        shown = {"stat": STAT % (pid, name, state), "status": one.get("status", STATUS % name), "wchan": one.get("wchan", "0")}
        shown.update(cgroup=cgroup if ":" in cgroup.split("/")[0] else "0::%s\n" % cgroup, cmdline="\0".join(one.get("cmdline", [name])) + "\0")
        files.update({"/proc/%d/%s" % (pid, file): text for file, text in shown.items()})
        files.update({"/proc/%d/task/%d/%s" % (pid, pid, file): shown[file] for file in ("stat", "status", "wchan")})
    return files


def foreseen(case, where):
    """The plan for a case's machine."""
    change = {part: dict(what) for part, what in case.get("change", {}).items()}
    files = {"/proc/uptime": "90000.00 1000.00\n", **processes(case.get("processes", {})), **change.get("files", {})}
    if "tree" not in case and not case.get("bare"):
        files["/run/systemd/system/x"] = ""
    if "units" in case:
        change["commands"] = {"systemctl show": units(case["units"]), **change.get("commands", {})}
    root, recorded, denied = machine(case.get("tree"), {**change, "files": files}, where)
    node = RecordedNode(root, recorded, denied, units=[*runtime.UNITS, *kubelet.UNITS])
    return plan(look(node))


@pytest.mark.parametrize("case", CASES)
def test_case(case, tmp_path):
    found = foreseen(case, tmp_path)
    assert ["%s %s%s" % (one.act, one.unit, " if needed" if one.unless_well else "") for one in found.steps] == case["steps"]
    kills = case.get("kills", [])
    assert len(found.kills_pods) == len(kills) and all(part in why for part, why in zip(kills, found.kills_pods)), found.kills_pods
    assert case["refused"] in "; ".join(found.refusals) if "refused" in case else found.refusals == []


def test_the_table_says_where_its_units_come_from():
    assert [one.id for one in CASES if not one.values[0].get("from")] == []


# -- parsers -------------------------------------------------------------------------------------------------------------

WORD = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1, max_size=20).filter(lambda word: not word.startswith("-"))
FLAGS = st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,12}", fullmatch=True).filter(lambda name: name not in ("id", "workdir")), WORD, max_size=5)


@settings(max_examples=40)
@given(FLAGS, WORD, st.sampled_from(["-%s\0%s", "--%s\0%s", "-%s=%s", "--%s=%s"]), st.booleans())
def test_each_way_to_tell_a_shim_its_id_is_read(flags, name, spelling, switch):
    words = ["/usr/bin/containerd-shim-runc-v2", *(spelling % item for item in {**flags, "id": name}.items()), *(["-debug"] if switch else []), "start"]
    found = arguments("\0".join(words).encode())
    assert found["id"] == name and all(found[flag] == value for flag, value in flags.items() if flag != "debug")


@given(st.binary(max_size=300))
def test_no_command_line_breaks_the_reader(line):
    assert isinstance(arguments(line).get("id"), str)


def test_a_shim_of_the_first_generation_has_its_id_in_its_directory():
    line = "containerd-shim\0-namespace\0moby\0-workdir\0/var/lib/containerd/io.containerd.runtime.v1.linux/moby/%s\0-address\0/run/x.sock\0" % ID
    assert arguments(line.encode())["id"] == ID


POD = "d1b7ac3e-9a64-4bd5-8b5f-6a1ea3d8c9f0"
# as drivers and runtimes write it
CGROUPS = {
    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (POD.replace("-", "_"), ID): POD,
    "0::/kubepods.slice/kubepods-pod%s.slice/crio-%s.scope/container" % (POD.replace("-", "_"), ID): POD,
    "0::/../kubepods-besteffort-pod%s.slice/docker-%s.scope" % (POD.replace("-", "_"), ID): POD,
    "11:memory:/kubepods/burstable/pod%s/%s\n1:name=systemd:/kubepods/burstable/pod%s/%s" % (POD, ID, POD, ID): POD,
    "5:cpu:/system.slice/containerd.service/kubepods-burstable-pod%s.slice:cri-containerd:%s" % (POD.replace("-", "_"), ID): POD,
    "0::/kubepods/pod%s/%s" % (POD.replace("-", ""), ID): POD.replace("-", ""),
    "0::/docker/%s" % ID: None,
    "0::/system.slice/docker-%s.scope" % ID: None,
}


@pytest.mark.parametrize("text", CGROUPS)
def test_a_container_is_known_by_its_cgroup(text):
    assert container_of(text) == (ID, CGROUPS[text])


@given(st.text(max_size=200))
def test_no_cgroup_breaks_the_reader(text):
    container, _pod = container_of(text)
    assert container is None or (len(container) == 64 and container in text)
    unit_path(text)
