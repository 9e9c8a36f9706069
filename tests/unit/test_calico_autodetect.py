"""The prediction of Calico's choice against tables of what Calico's own code answered, and its own claims against itself."""

from __future__ import annotations

import ipaddress
import json
from contextlib import suppress
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.nodecare.kubernetes.plugins.filter.calico_autodetect import calico_autodetect
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico import _re2, _versions
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._host import host
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._methods import METHODS, Asked, detect
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._stability import NEWCOMERS
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._startup import Situation, poll_seconds, start_up
from hypothesis import given
from hypothesis import strategies as st
from predicted import differences
from tables import loaded

TABLES = Path(__file__).parent / "cases" / "calico"
QUESTION = ("ask", "family", "internal", "reached")
TWO_NICS = ["lo 127.0.0.1/8", "eth0 10.0.2.15/24 2001:db8::15/64", "eth1 192.168.1.10/24", "br-3a10a9384428 172.18.0.1/16"]


def table(name):
    return loaded((TABLES / (name + ".yml")).read_text())


def facts_of(links, routes=()):
    """Facts in the form of node_check: `eth0 10.0.2.15/24 10.0.2.16/24` is a link with two addresses."""
    present = [_link(at, *text.split()) for at, text in enumerate(links, 1)]
    return {
        "present": {"links": present, "left_out": {"count": 0, "kinds": {}, "examples": []}},
        "routes": {"main": [_route(one) for one in routes], "left_out": {}},
    }


def _link(index, name, *words):
    addresses = []
    for at, word in enumerate(words):
        if "/" in word:
            ip, prefix = word.split("/")
            addresses.append({"ip": ip, "prefix": int(prefix)})
        elif words[at - 1] == "peer":
            addresses[-1]["peer"] = word
    kind = {"kind": "bridge"} if name.startswith("br") else {"nic": True} if name.startswith(("eth", "ens")) else {}
    return {"index": index, "name": name, "up": True, "addresses": addresses, **kind}


def _route(text):
    to, *words = text.split()
    said = dict(zip(words[::2], words[1::2]))
    family = 6 if ":" in (to + said.get("via", "")) else 4
    return {"to": to, "family": family, "links": [said["dev"]], "via": said.get("via", ""), "near": "via" not in said, "source": said.get("src", "")}


ASKS = [
    pytest.param(row, ask, version, want, id="%s: %s %s" % (row["layout"], ask["ask"], version))
    for row in table("layouts")
    for ask in row["asks"]
    for version, want in ask.items()
    if version not in QUESTION
]


@pytest.mark.parametrize(("row", "ask", "version", "want"), ASKS)
def test_a_layout(row, ask, version, want):
    facts = {"links": facts_of(row["links"], row.get("routes") or ())}
    more = {"family": ask.get("family", 4), "internal_ip": ask.get("internal"), "reached": ask.get("reached", "")}
    said = calico_autodetect(facts, ask["ask"], version, **more)
    taken = [one for one in said["candidates"] if one["taken"]]
    if want == "unknown":
        assert said["unknown"] and not said["crash"] and said["changed"] is None
    elif want in ("none", "ends"):
        assert (said["address"], said["source"], said["link"], taken, said["crash"]["exit_code"]) == ("", "nothing", None, [], 1)
        assert said["crash"]["message"].startswith("Invalid" if want == "ends" else ("Couldn't autodetect", "Failed to configure"))
    else:
        address, link = want.split()
        assert (said["address"], said["source"], said["crash"]) == (address, "detected", None)
        assert [(one["address"], one["link"]) for one in taken] == [(address, link)]


STARTS = [pytest.param(row, version, want, id="%s, %s" % (row["start"], version)) for row in table("starts") for version, want in row["want"].items()]


@pytest.mark.parametrize(("row", "version", "want"), STARTS)
def test_a_start(row, version, want):
    def both(held):
        return {4: held or "", 6: ""} if not isinstance(held, dict) else {4: held["v4"], 6: held["v6"]}

    stored = both(row["stored"]) if "stored" in row else None
    others = {name: both(held) for name, held in (row.get("others") or {}).items()}
    said = start_up(Situation(host(facts_of(TWO_NICS)), _versions.version(version), row["env"], stored, others))
    texts = [text for _level, text in said.log]
    assert said.ends == ("ends" in want), texts
    if said.ends:
        assert texts[-1] == "Terminating" and want["ends"] in texts
    for family in (4, 6):
        assert said.addresses[family] == want.get("v%d" % family, said.addresses[family])
    assert want.get("says", texts[0] if texts else None) in [*texts, None]
    assert said.changed == want.get("changed", said.changed)


def test_a_network_without_a_change_compares_nobody():
    facts = {"links": facts_of(TWO_NICS)}
    kept = [{"name": name, "addresses": held} for name, held in (("eth0", ["10.0.2.15"]), ("eth1", ["192.168.1.10"]))]
    question = {"method": "interface=eth1", "version": "3.31.0", "stored": "192.168.1.10/24", "others": {"n1": "192.168.1.10/24"}}
    assert calico_autodetect(facts, **question)["crash"] == {
        "message": "Calico node 'n1' is already using the IPv4 address 192.168.1.10.",
        "exit_code": 1,
        "takes_back": True,
    }
    assert calico_autodetect(facts, **question, stored_links=kept)["crash"] is None
    assert calico_autodetect(facts, **question, stored_links=kept[:1])["conflicts"] == ["n1"]


def test_what_ends_writes_nothing():
    facts = {"links": facts_of(TWO_NICS)}
    taken = {"others": {"n1": "192.168.1.10/24"}}
    first = calico_autodetect(facts, version="3.31.0", **taken)
    assert (first["address"], first["link"], first["detected"], first["changed"]) == ("", None, "192.168.1.10/24", False)
    later = calico_autodetect(facts, version="3.31.0", stored="10.0.2.15/24", **taken)
    assert (later["address"], later["crash"]["takes_back"], later["changed"]) == ("", True, True)
    explicit = calico_autodetect(facts, version="3.31.0", stored="10.0.2.15/24", ip_env="192.168.1.10", **taken)
    assert (explicit["address"], explicit["link"], explicit["source"], explicit["crash"]["takes_back"]) == ("10.0.2.15/24", "eth0", "stored", False)


def test_every_candidate_has_its_reason():
    facts = {"links": facts_of([*TWO_NICS, "veth0 10.1.1.1/24", "eth7"])}
    said = calico_autodetect(facts, "first-found", "3.31.0")
    assert [(one["link"], one["taken"], one["why"]) for one in said["candidates"]] == [
        ("eth7", False, "it has no IPv4 address"),
        ("veth0", False, "its name is excluded by ^veth.*"),
        ("br-3a10a9384428", False, "its name is excluded by ^br-.*"),
        ("eth1", True, "it is the first that qualifies, from the end of the kernel's list"),
        ("eth0", False, "192.168.1.10/24 on eth1 comes before it"),
        ("lo", False, "its name is excluded by ^lo"),
    ]
    assert said["runner_up"] == {"address": "10.0.2.15/24", "link": "eth0"}


METHOD_NAMES = ("first-found", "interface=eth", "skip-interface=^wg", "cidr=10.0.0.0/8,192.168.0.0/16", "interface=^eth0$")


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("version", ["3.31.0", "3.22.0"])
def test_a_threat_is_one(method, version):
    """Each newcomer that is named, and no other, takes over where it is created with an address that the method allows."""
    said = calico_autodetect({"links": facts_of(TWO_NICS)}, method, version)
    for who, name in NEWCOMERS:
        after = calico_autodetect({"links": facts_of([*TWO_NICS, name + " 10.200.0.1/16"])}, method, version)
        named = any(threat.startswith("%s makes %s " % (who, name)) for threat in said["threats"]) or any(
            "is made later" in one or "made later" in one for one in said["threats"]
        )
        assert (after["link"] == name) == named, (name, said["threats"])


@pytest.mark.parametrize("version", ["3.31.0", "3.22.0"])
def test_a_link_that_is_made_again_takes_over(version):
    links = [TWO_NICS[0], "br0 172.30.0.1/16", *TWO_NICS[1:3]]
    said = calico_autodetect({"links": facts_of(links)}, "first-found", version)
    assert said["link"] == "eth1" and "br0 (172.30.0.1/16) is made again" in said["threats"]
    assert "eth0 (10.0.2.15/24) is found after eth1 at a boot" in said["threats"]
    again = [one for one in links if not one.startswith("br0")] + [links[1]]
    assert calico_autodetect({"links": facts_of(again)}, "first-found", version)["link"] == "br0"


def test_what_is_anchored_is_stable():
    said = calico_autodetect({"links": facts_of(TWO_NICS)}, "interface=^eth1$", "3.31.0")
    assert (said["stable"], said["threats"], said["runner_up"]) == (True, [], None)


def test_polling():
    known = _versions.version("3.31.0")
    assert [poll_seconds(text, known) for text in ("", "30m", "1m30s", "1.5h", "0", "nonsense", "60", "-5s", "500ms")] == [
        60,
        1800,
        90,
        5400,
        0,
        60,
        60,
        -5,
        0.5,
    ]
    assert poll_seconds("", _versions.version("3.15.1")) is None
    facts = {"links": facts_of(TWO_NICS)}
    assert calico_autodetect(facts, ip_env="")["poll_seconds"] is None
    assert calico_autodetect(facts, poll_interval="30s")["poll_seconds"] == 30


@pytest.mark.parametrize("text", ["3", "3.1.9", "2.6.0", "v", "x3.31", "3.31.0.1"])
def test_a_version_that_is_none_is_refused(text):
    with pytest.raises(AnsibleFilterError, match="Calico"):
        calico_autodetect({"links": facts_of(TWO_NICS)}, version=text)


def test_versions():
    assert [_versions.version(text) for text in ("v3.24.5", "3.24", "3.31.0-0.dev")] == [(3, 24, 5), (3, 24, 0), (3, 31, 0)]
    assert _versions.version("") > (3, 34, 0)


@pytest.mark.parametrize("wrong", [{}, {"links": {}}, {"links": {"present": None}}, "text"])
def test_without_links_it_says_what_it_needs(wrong):
    with pytest.raises(AnsibleFilterError, match="checks=links"):
        calico_autodetect(wrong)
    with pytest.raises(AnsibleFilterError, match="4 or 6"):
        calico_autodetect({"links": facts_of(TWO_NICS)}, family=5)


def test_links_that_the_facts_do_not_list_in_full_are_unknown():
    facts = facts_of(TWO_NICS)
    facts["present"]["links"][-1].update({"addresses": [], "address_count": 40})
    facts["present"]["links"][-1]["addresses"] = [{"ip": "169.254.1.1", "prefix": 16}]
    assert "more addresses" in calico_autodetect({"links": facts}, "cidr=172.18.0.0/16", "3.31.0")["unknown"]
    assert calico_autodetect({"links": facts}, "first-found", "3.31.0")["unknown"] == ""
    problems = [{"fact": "links.present", "what": "links", "why": "9 more than 200 links hold an address", "kind": "error"}]
    assert "200 links" in calico_autodetect({"links": facts, "problems": problems}, "first-found", "3.31.0")["unknown"]


PATTERNS = table("patterns")


@pytest.mark.parametrize("row", PATTERNS["patterns"], ids=lambda row: row["pattern"])
def test_a_pattern_of_go(row):
    """The answers are those of Go's regexp package, asked through Calico's GetInterfaces."""
    joined = "(%s)" % row["pattern"]
    if "error" in row:
        with pytest.raises(_re2.Refused) as refused:
            _re2.compiled(joined)
        assert str(refused.value) == row["error"]
    else:
        found = _re2.compiled(joined)
        assert {name for name in PATTERNS["names"] if found(name)} == set(row["finds"])


@given(st.text(max_size=30), st.text(max_size=15))
def test_no_pattern_stops_the_engine(pattern, name):
    with suppress(_re2.Refused, _re2.Untold):
        _re2.compiled(pattern)(name)


@given(st.text(alphabet="()|[]{}*+?^$.\\-:,ab01dwspPQEzAxiLm<>!=", max_size=14), st.text(alphabet="ab01.-", max_size=8))
def test_no_pattern_of_signs_stops_the_engine(pattern, name):
    with suppress(_re2.Refused, _re2.Untold):
        _re2.compiled(pattern)(name)


def test_a_pattern_cannot_take_long():
    assert not _re2.compiled("(a*)*(a*)*(a*)*b")("a" * 15)
    assert _re2.compiled("(a{1,30}){1,30}")("a" * 15)


LINKS = st.lists(
    st.tuples(st.sampled_from(["eth0", "br0", "lo", "docker0", "ens7"]), st.lists(st.ip_addresses(v=4) | st.ip_addresses(v=6), max_size=3)), max_size=5
)


@given(LINKS, st.sampled_from([prefix or "" for prefix, _since, _find in METHODS]), st.text(max_size=20), st.sampled_from((4, 6)))
def test_no_method_stops_the_prediction(links, prefix, said, family):
    facts = facts_of(["%s %s" % (name, " ".join("%s/%d" % (ip, ip.max_prefixlen // 2) for ip in held)) for name, held in links] or ["lo"])
    found = detect(prefix + said, Asked(host(facts), family, _versions.version("3.31.0"), [said, "10.0.0.1"]))
    assert found.address is None or ipaddress.ip_interface(found.address).version == family
    assert sum(one["taken"] for one in found.candidates) == bool(found.address)


RECORDED = json.loads((TABLES / "recorded.json").read_text())


@pytest.mark.parametrize("got", RECORDED, ids=lambda got: "layout %d" % got["seed"])
def test_what_calico_answered(got):
    """Answers of Calico's own code; tests/lab/record.py asks it, tests/lab/test_autodetect.py compares many more."""
    assert [one for one in differences(got) if one[-1] is not None] == []
