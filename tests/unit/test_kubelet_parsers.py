"""The parsers of what a kubelet leaves on a node, against the real readers of the same text: PyYAML and the cryptography package."""

from __future__ import annotations

import datetime
import json

import pytest
import yaml
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _yaml
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.kubelet import _certificate, _settings, complaints
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = st.sampled_from(
    ["failSwapOn", "memorySwap", "swapBehavior", "evictionHard", "memory.available", "kind", "x-y", '"quoted key"', "'single'", "yes", "a/b"]
)
SCALARS = st.sampled_from(
    ["true", "false", "False", "no", "on", "null", "~", "", "NoSwap", "100Mi", "10%", "2m0s", "0", "-1", "10248", "010", "0x1f", "1e3", "1.5", ".5", "1_000"]
    + [
        "2026-11-18",
        "1:30",
        "127.0.0.1",
        "::1",
        "10.0.0.0/8",
        "unix:///run/x.sock",
        '"a: b"',
        "'it''s'",
        '"\\u0041"',
        '"esc\\n"',
        "a # comment",
        "a#b",
        '"a" # b',
    ]
    + [
        "{}",
        "{a: 1}",
        '{a: "1", b: x}',
        "{a: {b: c}}",
        "{a: 1, a: 2}",
        "{a: 1,}",
        "[]",
        "[a, 1, 'x, y']",
        "[a: b]",
        "&anchor x",
        "*anchor",
        "!!str 1",
        "|",
        ">-",
        "- a",
    ]
    + [
        "a: b",
        "a:",
        "=",
        "<<",
        "@x",
        "`x`",
        "%x",
        "?",
        "- ",
        "-",
        "x\ty",
        '"open',
        "[open",
        "{open",
        "multi\n  line",
        "|\n  block: x\n  # y",
        "\u00e9",
        "\x85",
        "12h30m",
        "5E",
        "1G",
    ]
)


def block(children):
    """Lists of lines that look like block mappings and lists, indented at random."""
    pair = st.builds(lambda key, value: "%s: %s" % (key, value), KEYS, SCALARS)
    nested = st.builds(lambda key, n, lines: "\n".join([key + ":"] + [" " * n + line for line in lines.split("\n")]), KEYS, st.integers(0, 4), children)
    item = st.builds(lambda dash, lines: dash + ("\n  ").join(lines.split("\n")), st.sampled_from(["- ", "-   ", "-\n  "]), st.one_of(children, SCALARS))
    return st.lists(st.one_of(pair, pair, nested, item, st.sampled_from(["", "# c", "   # c", "---", "...", "\t"])), min_size=1, max_size=4).map("\n".join)


DOCUMENTS = st.recursive(st.builds(lambda key, value: "%s: %s" % (key, value), KEYS, SCALARS), block, max_leaves=12)


def same(ours, theirs):
    if ours is _yaml.UNREAD:
        return True
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


@settings(max_examples=600, deadline=None)
@given(st.one_of(DOCUMENTS, st.text(), st.text("ab:-#{}[]'\"|> \n&*!,0?\t%")))
def test_yaml_is_read_as_pyyaml_reads_it_or_not_at_all(text):
    ours = _yaml.read(text)
    if ours is not None:
        try:
            theirs = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            return  # the kubelet would refuse it too
        assert same(ours, theirs if theirs is not None else {}), (ours, theirs)


SIMPLE = st.one_of(
    st.booleans(), st.integers(-(10**9), 10**9), st.sampled_from(["NoSwap", "100Mi", "unix:///run/x.sock", "10%", "0s", "", "a: b", "#", "it's"])
)
TREES = st.dictionaries(
    st.from_regex(r"[a-z][A-Za-z.]{0,12}", fullmatch=True),
    st.one_of(SIMPLE, st.lists(SIMPLE, max_size=3), st.dictionaries(KEYS.filter(str.isalpha), SIMPLE, max_size=3)),
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(TREES, st.sampled_from([yaml.safe_dump, json.dumps]))
def test_what_kubeadm_writes_is_read_whole(tree, write):
    tree = {key: value for key, value in tree.items() if isinstance(_yaml._scalar(key), str)}
    assert _yaml.read(write(tree)) == tree


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_flags_and_unit_files_never_raise(text):
    _settings.flags_of(_settings.words(text))
    dict(_settings.environment(text))
    _settings.expand(_settings.words(text), dict(_settings.environment(text)))
    list(_settings.directives("[Service]\n" + text))
    for name, _flag, _keys, usual in _settings.SETTINGS:
        _settings.flag_value(name, text, usual)
    json.dumps(complaints(text))


@given(st.lists(st.from_regex(r"[A-Za-z0-9=,.:/<-]{1,8}", fullmatch=True)))
def test_a_variable_gives_as_many_words_as_systemd_would(values):
    assert _settings.expand(["kubelet", "$ARGS", "a${ARGS}b"], {"ARGS": " ".join(values)}) == ["kubelet", *values, "a%sb" % " ".join(values)]


DATES = st.datetimes(datetime.datetime(1951, 1, 1), datetime.datetime(2120, 1, 1)).map(lambda date: date.replace(microsecond=0))


@pytest.fixture(scope="module")
def sign():
    """Makes certificates as an API server does."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "system:nodes"), x509.NameAttribute(x509.NameOID.COMMON_NAME, "system:node:" + "n" * 50)]
    )

    def signed(begin, end):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(begin).not_valid_after(end).sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)

    return signed


@settings(max_examples=60, deadline=None)
@given(
    DATES,
    st.timedeltas(datetime.timedelta(seconds=1), datetime.timedelta(days=36500)).map(lambda delta: datetime.timedelta(seconds=int(delta.total_seconds()))),
)
def test_a_certificate_has_the_dates_that_it_was_made_with(sign, begin, length):
    zero = datetime.datetime(1970, 1, 1)
    assert _certificate.validity(sign(begin, begin + length)) == ((begin - zero).total_seconds(), (begin + length - zero).total_seconds())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_broken_certificate_is_an_error_and_never_a_date(sign, data):
    der = sign(datetime.datetime(2026, 1, 1), datetime.datetime(2027, 1, 1))
    torn = data.draw(st.one_of(st.binary(max_size=200), st.integers(0, 120).map(lambda size: der[:size])))
    with pytest.raises(ValueError):
        _certificate.validity(torn)
