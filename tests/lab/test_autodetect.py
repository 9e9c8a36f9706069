"""What Calico's own code answers in real network namespaces, and what we had foreseen: equal in every case.

LAYOUTS=2000 tries more layouts than the default, FROM=100000 others. A seed that was ever wrong is kept.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from itertools import islice

import layouts
import pytest
from ansible_collections.nodecare.kubernetes.plugins.filter.calico_autodetect import calico_autodetect
from ansible_collections.nodecare.kubernetes.plugins.filter.calico_recommend import calico_recommend
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico import _re2, _versions
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._stability import NEWCOMERS
from predicted import differences

from lab.autodetect import VERSIONS, autodetect

COUNT = int(os.environ.get("LAYOUTS", "300"))
FIRST = int(os.environ.get("FROM", "1000"))
AT_ONCE = 50
KEPT = (17, 19, 106, 114, 244, 272, 501, 504, 548, 1116, 1169)
SIGNS = r"""
eth 0 br- e a [a-c] [^a-z] \d \w+ \W \s [[:alpha:]] [[:^digit:]] [[:x:]] \pL \p{Lu} \PN \p{^L} \p{Any} \pX \p{L ^ $ \b \B \A \z \Z . .* ( ) | (?: (?i)
(?i: (?s) (?-i) (?U) (?im-s: (?-) (?i (?P<n> (?<m> (?P<> (?P=n) (?=a) (?!b) (?<=c) (?>a) * + ? *? +? ?? ** {2} {1,3} {,2} {2,1} {1001} {0} {1,} {01} { }
\1 \01 \x41 \x{65} \xg \x{} \x{110000} \Qa.b\E \Q( \E \. \- \C \a \_ []a] [^]] [a [b-a] [\d-z] [a-\d] [a\-z] [-a] [a-] [[:alpha:] [:alpha:] \ K k s (?i)k
[^\n] \pZ (?i)[a-k] (?i)\pLu (?i)\p{Ll} x* (a|b)+ (|a) () a||b {1000} (a{100}){20} (a{2}){3}
""".split()


@pytest.fixture(scope="session")
def programs():
    return {version: autodetect(version) for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS)
def test_exclusions(programs, version):
    said = subprocess.run([programs[version], "--exclusions"], capture_output=True, text=True, check=True).stdout
    assert tuple(said.split()) == _versions.excluded(_versions.version(version))


@pytest.mark.parametrize(
    "seeds", [KEPT, *(range(at, min(at + AT_ONCE, FIRST + COUNT)) for at in range(FIRST, FIRST + COUNT, AT_ONCE))], ids=lambda seeds: str(seeds[0])
)
def test_layouts(programs, seeds):
    wrong, unknown, count = [], 0, 0
    for seed in seeds:
        got = layouts.tried(seed, programs)
        count += len(got["questions"]) * len(programs)
        found = [(seed, *one) for one in differences(got)]
        unknown += sum(one[-1] is None for one in found)
        wrong += [one for one in found if one[-1] is not None]
    assert not wrong, "%d wrong of %d; the first: %s" % (len(wrong), count, "\n".join(map(str, wrong[0])))
    assert unknown <= 0.03 * count + 3, "%d of %d could not be told" % (unknown, count)


def test_the_two_old_versions_differ_in_nothing(programs):
    """So that one of them stands for both where answers are recorded."""
    got = layouts.tried(FIRST, programs)
    assert got["answers"]["3.22.0"] == got["answers"]["3.23.0"]


NODE = (
    *("link set lo up", "link add eth0 type ifb", "address add 10.0.2.15/24 dev eth0", "link add ens7 type ifb", "address add 10.0.0.66/24 dev ens7"),
    *("link set eth0 up", "link set ens7 up"),
)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_comes_later_takes_over_where_we_say_so(programs, version):
    def before_and_after(name):
        layouts.configured(NODE)
        facts = layouts.probed()
        layouts.configured(["link add %s type bridge" % name, "address add 10.200.0.1/16 dev %s" % name])
        (answer,) = layouts.asked(programs[version], [{"method": "first-found", "family": 4, "internal": None}])
        return {"facts": facts, "cidr": answer["cidr"]}

    for who, name in NEWCOMERS:
        got = layouts.in_a_namespace(lambda name=name: before_and_after(name))
        threats = calico_autodetect({"links": got["facts"]}, version=version)["threats"]
        assert (got["cidr"] == "10.200.0.1/16") == any(one.startswith("%s makes %s " % (who, name)) for one in threats), (name, got["cidr"], threats)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_recommended(programs, version):
    """Whichever address of a node is the right one: by the method that is recommended, Calico's own code takes it."""

    def compared(seed):
        commands, _questions = layouts.layout(seed)
        layouts.configured(commands)
        facts, answers = layouts.in_a_quiet_moment(lambda: list(recommended(layouts.probed(), version, programs[version])))
        return {"facts": facts, "answers": answers}

    methods = {}
    for seed in range(FIRST, FIRST + COUNT // 5):
        got = layouts.in_a_namespace(lambda seed=seed: compared(seed))
        for wanted, method, answer in got["answers"]:
            assert answer["cidr"].partition("/")[0] == wanted, (seed, wanted, method, answer)
            methods[method.partition("=")[0]] = methods.get(method.partition("=")[0], 0) + 1
    assert len(methods) >= 2 and sum(methods.values()) >= COUNT // 5, methods


def recommended(facts, version, program):
    """(the address that is wanted, the method for it, Calico's answer) for some of the node's addresses, with and without a Node of it."""
    held = [one["ip"] for link in facts["present"]["links"] for one in link["addresses"] if ":" not in one["ip"]]
    for wanted in list(dict.fromkeys(held))[:4]:
        for internal in ([wanted], None):
            cluster = {"nodes": [{"name": "n", "internal_ips": internal}], "problems": []} if internal else None
            network = [] if internal else ["%s/32" % wanted]
            said = calico_recommend({"n": {"links": facts, "taken": {"hostname": "n"}}}, version, cluster=cluster, network=network)
            if said["method"]:
                # Where the InternalIP is recommended of a node that has not joined yet, it is foreseen that its Node will have this one.
                (answer,) = layouts.asked(program, [{"method": said["method"], "family": 4, "internal": internal or [wanted]}])
                yield wanted, said["method"], answer


def test_patterns(programs):
    """Go's regexp and ours on patterns put together from signs at random: the same names, the same refusal in the same words."""
    chance = random.Random(FIRST)
    patterns = sorted({"".join(chance.choice(SIGNS) for _time in range(chance.randint(1, 5))) for _pattern in range(4000)})
    names = [*layouts.NAMES, "aaa", "a1b2", "K", "^x$"]
    answers = layouts.asked(programs["3.31.0"], [{"names": names, "include": [pattern]} for pattern in patterns])
    wrong = [(pattern, theirs, ours) for pattern, theirs, ours in zip(patterns, map(_gos, answers), (_ours(one, names) for one in patterns)) if theirs != ours]
    assert not wrong, "%d of %d: %s" % (len(wrong), len(patterns), json.dumps(list(islice(wrong, 3)), indent=1))


def _gos(answer):
    return answer.get("error") or sorted(answer.get("names") or [])


def _ours(pattern, names):
    try:
        found = _re2.compiled("(%s)" % pattern)
    except _re2.Refused as refused:
        return str(refused)
    return sorted(name for name in names if found(name))
