"""What runtimes answer and what their files hold comes from outside: it is read right, or refused, and never breaks the probe."""

from __future__ import annotations

import pytest
import tomllib
from ansible_collections.nodecare.kubernetes.plugins.module_utils import _grpc
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.runtime import _answers, _config, _journal, _processes, _toml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recorded import TREES, encoded

REAL = [path.read_text() for path in sorted(TREES.glob("*/etc/containerd/config.toml"))]
WORDS = st.text(st.sampled_from("ab_-\"\\' .=#[]{},\n\ttruefalse019+:eExu\u00e9\x00"), max_size=60)
KEYS = st.sampled_from(["version", "plugins", '"io.containerd.grpc.v1.cri"', "'a.b'", "x", "1", '"\\u00e9"'])
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


def quoted(text):
    return '"%s"' % "".join(sign if " " <= sign < "\x7f" and sign not in '"\\' else "\\U%08X" % ord(sign) for sign in text)


PLAIN = st.one_of(
    st.booleans().map(lambda value: str(value).lower()),
    st.integers(-(10**12), 10**12).map(str),
    st.integers(0, 999).map(lambda value: "1_%03d" % value),
    st.integers(0, 9999).map(hex),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    TEXTS.map(quoted),
    st.text(st.sampled_from('abc \\"#=[]\u00e9\t'), max_size=9).map("'{}'".format),
    st.text(st.sampled_from("abc \n'\"#]"), max_size=9).filter(lambda text: "'''" not in text and not text.endswith("'")).map("'''{}'''".format),
    st.text(st.sampled_from("abc \n'#]"), max_size=9).map('"""\n{}"""'.format),
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda rows: "[ # so\n%s]" % "".join(row + " ,\n" for row in rows)),
        st.dictionaries(KEYS, inner, max_size=2).map(lambda table: "{ %s }" % ", ".join("%s = %s" % pair for pair in table.items())),
    ),
    max_leaves=4,
)
PATHS = st.lists(KEYS, min_size=1, max_size=3).map(".".join)
LINES = st.one_of(
    st.tuples(PATHS, VALUES).map(lambda pair: "  %s = %s # as it is" % pair),
    PATHS.map("[{}]".format),
    PATHS.map("[[ {} ]]".format),
    st.just("# nothing"),
)


def theirs(text):
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def ours(text):
    try:
        return _toml.loads(text)
    except ValueError:
        return None


@settings(max_examples=120, deadline=None)
@given(st.lists(LINES, max_size=7).map("\n".join))
def test_a_valid_file_is_read_as_python_reads_it(text):
    wanted = theirs(text)
    assert wanted is None or ours(text) == wanted


@settings(max_examples=300, deadline=None)
@given(WORDS)
@example("a = 1979-05-27")
@example("a = inf")
@example("a" + " = [" * 999)
@example('a = """\\')
@example("a.b = 1\n[a]\nb = 2")
@example("a = [1 " + "#" * 300 + "\n!")
@example('a = "' + "\\" * 301 + '"')
@example("a = 1" + "_1" * 300 + "x")
def test_an_odd_file_is_refused_and_never_misread(text):
    wanted, found = theirs(text), ours(text)
    assert wanted is None or found is None or found == wanted


@pytest.mark.parametrize("text", REAL)
def test_real_files_are_read_as_python_reads_them(text):
    assert ours(text) == tomllib.loads(text)


JSON = st.recursive(st.one_of(st.booleans(), st.integers(), TEXTS), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["version", "imports", "disabled_plugins", "plugins", "grpc"]),
        JSON | st.dictionaries(st.sampled_from(_config.CRI_PLUGINS), st.dictionaries(st.sampled_from(["containerd", "sandbox_image", "pinned_images"]), JSON)),
    )
)
def test_settings_of_any_shape_do_not_break_it(document):
    _config.settings(document)


MESSAGES = st.recursive(st.integers(0, 2**64 - 1) | TEXTS, lambda inner: st.dictionaries(st.integers(1, 500), inner, max_size=3), max_leaves=6)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.integers(1, 500), MESSAGES, max_size=4))
def test_a_message_is_read_as_it_was_written(message):
    wanted = {number: [encoded(value) if isinstance(value, dict) else value if isinstance(value, int) else value.encode()] for number, value in message.items()}
    assert _grpc.fields(encoded(message)) == wanted


def told(data, cuts=()):
    """A reply fed in pieces: what it is read as, or None where it is refused."""
    reply, places = _grpc.Reply(), sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    try:
        for begin, end in zip(places, places[1:], strict=False):
            reply.feed(data[begin:end])
    except ValueError:
        return None
    return reply.greeted, reply.ended, reply.code, reply.message


def answer(body, status=b"0", huffman=True, pieces=1):
    """What a gRPC server sends."""
    name = b"\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f" if huffman else b"\x0bgrpc-status"
    message = b"\x00" + len(body).to_bytes(4, "big") + body
    size = -(-len(message) // pieces)
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return (
        _grpc.frame(_grpc.SETTINGS, 0, 0, b"\x00\x05\x00\x00\x40\x00")
        + _grpc.frame(_grpc.HEADERS, _grpc.END_HEADERS, 1, b"\x88")
        + b"".join(_grpc.frame(_grpc.DATA, 0, 1, part) for part in parts)
        + _grpc.frame(_grpc.HEADERS, _grpc.END_HEADERS | _grpc.END_STREAM, 1, b"\x40" + name + bytes([len(status)]) + status)
    )


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"0", b"5", b"12"]), st.booleans(), st.integers(1, 4), st.lists(st.integers(0, 999), max_size=6))
def test_a_reply_is_the_same_however_it_is_cut(body, status, huffman, pieces, cuts):
    assert told(answer(body, status, huffman, pieces), cuts) == (True, True, int(status), body)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: answer(b"x")[:30] + tail))
@example(b"HTTP/1.1 400 Bad Request\r\n\r\n")
@example(b"\x08\x00")
def test_noise_is_no_reply(data):
    told(data)
    for reader in (_grpc.fields, lambda noise: _answers.conditions({1: [noise]}), lambda noise: _answers.pods({1: [noise]})):
        try:
            reader(data)
        except ValueError:
            continue


@settings(deadline=None)
@given(
    st.text(max_size=300) | st.lists(st.sampled_from(["dockerd[1]: transport is closing", "no space left on device", "17.5 h c[1]: x", "\x00"])).map("\n".join)
)
def test_a_journal_never_breaks_it(text):
    for one in _journal.complaints(text, 1790000000.0):
        assert one["count"] >= 1 and len(one["line"]) <= 300


@given(st.binary(max_size=120) | st.binary(max_size=15).map(lambda name: b"7 (" + name + b") D 1 7 7 0 -1 64 1 2 3 4 5 6 7 8 20 0 12 0 8000 1"))
def test_a_process_may_have_any_name(said):
    found = _processes.status(said)
    assert found is None or len(found) == 4
    assert not said.startswith(b"7 (") or not said.endswith(b"8000 1") or found == (said[3 : said.rindex(b")")], b"D", 64, 8000)
