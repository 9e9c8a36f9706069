"""The removal of bridges in real network namespaces: what goes, what stays, what is refused and why, and that undo brings back the very same.

Docker is a stand-in that answers as a real one was recorded to (docker_stand_in.py); tests/lab has a real one.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._repairs.bridge import _owners, _users
from docker_stand_in import StandIn, docker
from hypothesis import given
from hypothesis import strategies as st
from recorded import RecordedNode
from spaces import space, usable
from tables import table

HERE = Path(__file__).parent
B = "br-8e267f0e25b5"
CASES = [pytest.param(case, id=case["case"]) for case in table("repairs/bridge")]
REFUSALS = table("repairs/bridge-refusals")
CONTAINERS = json.loads((HERE / "repairs/docker-20.10.24-containers.json").read_text())
LINK = ["link add B type bridge", "address add 172.18.0.1/16 dev B", "link set B addrgenmode none", "link set B up"]
in_a_namespace = pytest.mark.skipif(bool(usable()), reason=usable() or "usable")


@contextmanager
def machine(files=()):
    """A directory that is a machine's root, with this machine's kernel; its path is short, since a socket lies in it."""
    place = Path(tempfile.mkdtemp(prefix="n", dir="/tmp"))
    try:
        for path in ("var/lib", "run", "etc"):
            (place / path).mkdir(parents=True)
        for path in ("proc", "sys"):
            (place / path).symlink_to("/" + path)
        for path, text in dict(files).items():
            (place / path[1:]).parent.mkdir(parents=True, exist_ok=True)
            (place / path[1:]).write_text(text)
        yield place
    finally:
        shutil.rmtree(place)


def named(words):
    """A command of ip, with the link's name in it."""
    return words.replace("B", B).split() if isinstance(words, str) else words


def tell(name, root, settings, *steps):
    """What each step answers, and how the links are after it; the first is how they were before."""
    argv = ["ip", "netns", "exec", name, sys.executable, HERE / "bridge_story.py", root, json.dumps(settings), *steps]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def set_up(name, case):
    for link, families in case.get("settings_of", {}).items():
        for family, settings in families.items():
            for setting, value in settings.items():
                subprocess.run(
                    ["ip", "netns", "exec", name, "tee", "/proc/sys/net/%s/conf/%s/%s" % (family, link.replace("B", B), setting)],
                    input=value,
                    text=True,
                    stdout=subprocess.DEVNULL,
                    check=True,
                )


@in_a_namespace
@pytest.mark.parametrize("case", CASES)
def test_case(case):
    settings = {**case.get("given", {}), "names": [one.replace("B", B) if len(one) == 1 else one for one in case["names"]]}
    gone = [one.replace("B", B) if len(one) == 1 else one for one in case["gone"]]
    with machine(case.get("files", ())) as root, space([named(one) for one in case["links"]]) as name:
        set_up(name, case)
        with docker(root / "run/docker.sock", **case["docker"]) if "docker" in case else nullcontext({"asked": []}) as daemon:
            was, foreseen, done, again, back_foreseen, back, nothing = tell(name, root, settings, "check", "do", "do", "check undo", "undo", "undo")
            steps = daemon["asked"]
        assert foreseen["links"] == was["links"], "check mode has changed something"
        assert sorted(set(was["links"]) - set(done["links"])) == sorted(gone)
        assert all(done["links"][other] == was["links"][other] for other in done["links"])
        assert done["answer"]["changed"] is foreseen["answer"]["changed"] is bool(gone or case.get("asked"))
        assert [done["answer"][key] for key in ("removed", "changes", "diff")] == [foreseen["answer"][key] for key in ("removed", "changes", "diff")]
        assert not again["answer"]["changed"] and again["answer"]["for_good"] == "predicted"
        assert case.get("left", "") in json.dumps(done["answer"]["left"])
        assert back_foreseen["links"] == done["links"]
        assert [line for one in back["answer"]["diff"] for line in one["prepared"].splitlines()] == [
            line for one in back_foreseen["answer"]["diff"] for line in one["prepared"].splitlines()
        ]
        assert case.get("warns", "") in json.dumps(back["answer"]["warnings"])
        assert back["links"] == {link: seen for link, seen in was["links"].items() if "undone" not in case or link not in gone}
        becomes = {**was["files"], **case.get("becomes", {})}
        assert foreseen["files"] == back["files"] == was["files"] and done["files"] == {path: text for path, text in becomes.items() if text is not None}
        assert not nothing["answer"]["changed"]
        assert steps == [*case.get("asked", []), *case.get("undone", [])]


# -- who needs it --------------------------------------------------------------------------------------------------------

LISTEN = """
import socket, sys, time
kept = []
for kind, address in [one.split() for one in sys.argv[1:]]:
    link = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    link.bind((address, 4567))
    if kind == "tcp":
        link.listen()
    kept.append(link)
print("listening", flush=True)
time.sleep(60)
"""


@in_a_namespace
def test_each_that_needs_a_bridge_is_named_and_nothing_is_changed():
    names = [case.get("name", "B%d" % number) for number, case in enumerate(REFUSALS)]
    commands = [words.replace("NAME", name) for name, case in zip(names, REFUSALS) for words in case["links"]]
    texts = {path: text.replace("NAME", name) for name, case in zip(names, REFUSALS) for path, text in case.get("files", {}).items()}
    with machine({path: text for path, text in texts.items() if "local-kv" not in path}) as root, space(commands) as name:
        (root / "var/lib/docker/network/files").mkdir(parents=True)
        (root / "var/lib/docker/network/files/local-kv.db").write_text(texts["/var/lib/docker/network/files/local-kv.db"])
        (root / "usr/bin/podman").chmod(0o755)
        argv = ["ip", "netns", "exec", name, sys.executable, "-c", LISTEN, *(" ".join(case["listens"]) for case in REFUSALS if "listens" in case)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as listening:
            try:
                assert listening.stdout.readline() == "listening\n"
                before, said = tell(name, root, {"names": names}, "do")
            finally:
                listening.kill()
        assert said["links"] == before["links"] and not (root / "var/lib/nodecare").exists()
    reasons = said["answer"]["refused"].split(". ")
    for own, case in zip(names, REFUSALS):
        mine = [one for one in reasons if one.startswith((own + ":", own + " "))]
        assert any(case["why"].replace("NAME", own) in one for one in mine), (own, case["why"], mine)


DOCKERS = {
    "containers, also those that do not run": ({"containers": CONTAINERS}, "the container never (created) of docker; by the container web (running) of docker"),
    "swarm's own end": ({"ends": {"gateway_x": {"Name": "gateway_ingress-sbox"}}}, "the container gateway_ingress-sbox of docker"),
    "a docker that hangs": ({"hangs": True}, "no answer within 0.5 s"),
    "a docker that no longer tells its networks": ({"fails": {"/networks": (1, StandIn.no_longer)}}, "docker does not tell which networks it has: hung"),
    "a docker that does not tell its containers": (
        {"fails": {"/containers/json?all=1": (0, StandIn.no_longer)}},
        "docker does not tell which containers it has: hung",
    ),
    "a docker that cannot tell its containers": (
        {"fails": {"/containers/json?all=1": (0, StandIn.broken)}},
        "docker does not tell which containers it has: database is locked",
    ),
    "a docker with more containers than are read": (
        {"fails": {"/containers/json?all=1": (0, StandIn.endless)}},
        "docker does not tell which containers it has: its answer is too long, or no JSON",
    ),
    "a docker that does not tell who is on a network": ({"fails": {"/networks/": (0, StandIn.broken)}}, "docker does not tell who is on its network one"),
    "a docker that is broken": ({"networks": None}, "docker does not answer, so nobody can tell whether the bridge is its own: put docker right first"),
}


@in_a_namespace
@pytest.mark.parametrize("which", DOCKERS)
def test_docker_says_who_is_on_it(which):
    state, why = DOCKERS[which]
    with machine() as root, space([named(one) for one in LINK]) as name, docker(root / "run/docker.sock", **state) as daemon:
        before, said = tell(name, root, {"names": [B], "deadline": 0.5}, "do")
        assert why in said["answer"]["refused"] and said["links"] == before["links"] and daemon["asked"] == []


@in_a_namespace
def test_a_docker_that_changes_its_mind_loses_nothing():
    with machine() as root, space([named(one) for one in LINK]) as name, docker(root / "run/docker.sock", busy=True) as daemon:
        before, failed, back = tell(name, root, {"names": [B]}, "do", "undo")
        assert "has active endpoints" in failed["answer"]["failed"]
        assert failed["links"] == back["links"] == before["links"] and back["answer"]["diff"] == [] and len(daemon["asked"]) == 1


@in_a_namespace
def test_undo_does_not_touch_what_somebody_else_has_made_since():
    with machine() as root, space([named(one) for one in LINK]) as name:
        tell(name, root, {"names": [B]}, "do")
        for words in (["link", "add", B, "type", "bridge"], ["address", "add", "192.0.2.1/24", "dev", B]):
            subprocess.run(["ip", "-n", name, *words], check=True)
        before, said = tell(name, root, {}, "undo")
        assert said["answer"] == {"conflict": "there is another link named %s by now" % B} and said["links"] == before["links"]


@in_a_namespace
def test_undo_needs_docker_for_what_only_docker_can_make():
    with machine() as root, space([named(one) for one in LINK]) as name:
        with docker(root / "run/docker.sock"):
            tell(name, root, {"names": [B]}, "do")
        (root / "run/docker.sock").unlink(missing_ok=True)
        _before, said = tell(name, root, {}, "undo")
        assert "only docker can make its network one again: start it, then undo" in said["answer"]["conflict"]


@in_a_namespace
def test_a_bare_link_does_not_come_back_after_a_boot():
    with machine() as root, space([named(one) for one in LINK]) as name:
        tell(name, root, {"names": [B]}, "do")
        (entry,) = (root / "var/lib/nodecare/journal").glob("*/entry.json")
        entry.write_text(json.dumps({**json.loads(entry.read_text()), "boot_id": "another"}))
        gone, again, back = tell(name, root, {"names": [B]}, "do", "undo")
        assert again["answer"]["for_good"] == "proven" and not again["answer"]["changed"]
        assert back["links"] == gone["links"] and back["answer"]["diff"] == []


# -- without a kernel ----------------------------------------------------------------------------------------------------


def link(name, *addresses):
    return {"index": hash(name), "name": name, "addresses": [{"ip": one, "prefix": 24} for one in addresses]}


CALICOS = [
    ({"IP_AUTODETECTION_METHOD": "interface=br-.*"}, [], "IP_AUTODETECTION_METHOD=interface=br-.* and finds nothing else"),
    ({"IP_AUTODETECTION_METHOD": "interface=eth0,br-.*"}, [link("eth0", "10.0.0.1")], None),
    ({"IP_AUTODETECTION_METHOD": "cidr=172.16.0.0/12"}, [link("eth0", "10.0.0.1")], "cidr=172.16.0.0/12 and finds nothing else"),
    ({"IP_AUTODETECTION_METHOD": "cidr=172.16.0.0/12"}, [link("eth0", "172.31.0.1")], None),
    ({"IP": "172.18.0.1/16"}, [link("eth0", "10.0.0.1")], "calico-node, which is told IP=172.18.0.1"),
    ({"IP": "autodetect", "IP_AUTODETECTION_METHOD": "first-found"}, [], None),
    ({"IP_AUTODETECTION_METHOD": "interface=((("}, [], None),
    (None, [], None),
]


@pytest.mark.parametrize("told, others, why", CALICOS)
def test_calico_may_be_told_to_use_it(told, others, why):
    bridge = link("br-x", "172.18.0.1")
    facts = {"calico": {"processes": {"env": told}}, "links": {"present": {"links": [bridge, *others]}}}
    said = list(_users._calico(None, facts, bridge))
    assert [why in one for one in said] == ([True] if why else [])


def test_what_was_set_on_it_by_hand_is_named():
    """Not every kernel that tests run on has either."""

    def attribute(kind, value):
        return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)

    kind = attribute(18, attribute(1, b"bridge\0") + attribute(2, attribute(7, b"\1")))
    message = struct.pack("=BxHiII", 0, 1, 7, 0, 0) + attribute(3, b"br0\0") + attribute(6, b"htb\0") + kind
    node = RecordedNode("/nonexistent", {"dumps": {"18": [message.hex()]}})
    assert list(_users._shaped(node, {}, {"index": 7, "kind": "bridge"})) == ["its queueing discipline htb", "VLANs, which it filters"]


@given(
    st.dictionaries(st.text(min_size=1).filter(lambda key: key != "bridge"), st.one_of(st.none(), st.text(), st.integers())), st.sampled_from([None, 1, "\t"])
)
def test_one_more_setting_changes_no_other(settings, indent):
    text = json.dumps(settings, indent=indent, ensure_ascii=False).encode()
    assert json.loads(_owners._with_setting(text)) == {"bridge": "none", **settings}
