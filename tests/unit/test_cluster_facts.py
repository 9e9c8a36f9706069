"""The facts of a cluster: what is kept of an API server's objects, what is never shown, and what becomes of a server that is ill."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _api, _sweep
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import _client
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api._why import NoAnswerError
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._sweep import _values
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._sweep._sweep import Sweep
from api_server import OBJECTS, Api, facts, standing_in
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

CASES = table("api/cases")
HEALTHY = table("clusters/healthy")
SECRET = "hunter2"


def at(document, path):
    """``nodes[0].calico``, ``pods[name=calico-node-7w8jl].ready``; a last step may have dots in it."""
    if not path or document is None:
        return document
    step, _dot, rest = re.match(r"([^.\[]+|\[[^\]]+\])(\.?)(.*)", path).groups()
    if step.startswith("["):
        name, equals, value = step[1:-1].partition("=")
        return at(next(one for one in document if one[name] == value) if equals else document[int(name)], rest)
    return document[path] if path in document else at(document[step], rest)


@pytest.mark.parametrize("case", [pytest.param(one, id=one["case"]) for one in CASES])
def test_case(case):
    found = facts(Api(case.get("change"), case.get("answers")))
    assert {path: at(found, path) for path in case["want"]} == case["want"]
    problems = {one["fact"]: "%(kind)s: %(why)s" % one for one in found["problems"]}
    assert set(problems) == set(case["problems"]), problems
    assert all(problems[fact].startswith(why) for fact, why in case["problems"].items()), problems
    assert SECRET not in json.dumps(found)


def test_the_healthy_cluster_is_what_the_objects_say():
    """So that cases of rules stand on what is really read."""
    found = facts(Api())
    for part in set(HEALTHY) - {"taken", "events"}:
        assert found[part] == HEALTHY[part], part
    assert sorted(found["events"], key=_identity) == sorted(HEALTHY["events"], key=_identity)


def _identity(event):
    return event["kind"], event["name"], event["reason"]


def test_no_kind_is_listed_twice():
    api = Api({"/api/v1/nodes": [{"metadata": {"name": "n%d" % number}} for number in range(1201)]})
    found = facts(api)
    assert len(found["nodes"]) == 1201
    pages = [(path, query.get("continue")) for path, query in api.asked]
    assert len(pages) == len(set(pages))
    assert [one for one in pages if one[0] == "/api/v1/nodes"] == [("/api/v1/nodes", None), ("/api/v1/nodes", "500"), ("/api/v1/nodes", "1000")]


def test_affinities_are_counted_without_being_sent():
    api = Api({"/apis/crd.projectcalico.org/v1/blockaffinities": [{}] * 5000})
    assert facts(api)["calico"]["block_affinities"] == 5000
    assert sum(path.endswith("blockaffinities") for path, _query in api.asked) == 1


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner)
)


@settings(max_examples=50)
@given(st.data())
def test_whatever_an_object_holds_nothing_raises(data):
    """One part of one object is something else than it should be."""
    objects = json.loads(json.dumps(OBJECTS))
    path = data.draw(st.sampled_from(sorted(objects)))
    whole = {"there": objects[path]}
    holder, key = whole, "there"
    while isinstance(holder[key], (dict, list)) and holder[key] and data.draw(st.integers(0, 7)):
        holder = holder[key]
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[key] = data.draw(JUNK)
    api = Api()
    api.objects[path] = whole["there"]
    found = facts(api)
    json.dumps(found)
    assert all(set(one) == {"fact", "what", "why", "kind"} for one in found["problems"])


@pytest.mark.parametrize("said", ["", None, 7, "yesterday", "2026-13-01T00:00:00Z"])
def test_no_time(said):
    assert _values.time({"at": said}, "at") is None


@pytest.mark.parametrize("said", ["2026-11-18T19:19:51Z", "2026-11-18T19:19:51.000000Z", "2026-11-18T20:19:51+01:00", "2026-11-18T19:19:51"])
def test_time(said):
    assert _values.time({"at": said}, "at") == 1795029591.0


# -- a server -------------------------------------------------------------------------------------------------------------

kubernetes = pytest.importorskip("kubernetes")
ANYBODY = {"username": "u", "password": SECRET}


def read(url, seconds=20, **options):
    return _sweep.read({**ANYBODY, "host": url, **options}, seconds, {})


def only_problem(found):
    (problem,) = found["problems"]
    assert problem["fact"] == "cluster"
    assert all(found[name] is None for name in ("nodes", "pods", "events", "calico", "kube_proxy", "services", "kubeadm", "budgets"))
    assert SECRET not in json.dumps(found)
    return problem


def test_a_server_is_read_as_the_objects_are():
    api = Api()
    with standing_in(api) as server:
        found = read(server.url)
    assert found["problems"] == []
    assert found["nodes"] == HEALTHY["nodes"]
    assert found["taken"]["server"] == server.url.removeprefix("http://")
    assert found["taken"]["requests"] == len(api.asked)
    assert abs(found["taken"]["server_time"] - time.time()) < 60
    assert found["taken"]["answers"]["median_s"] <= found["taken"]["answers"]["slowest_s"] < 20


def test_a_server_that_is_down():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        problem = only_problem(read("http://127.0.0.1:%d" % closed.getsockname()[1]))
    assert (problem["kind"], problem["why"]) == ("error", "Connection refused")


def test_a_server_that_accepts_and_says_nothing():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(64)
        began = time.monotonic()
        problem = only_problem(read("http://127.0.0.1:%d" % deaf.getsockname()[1], 2))
    assert (problem["kind"], problem["why"]) == ("hung", "no answer within 1 s")
    assert time.monotonic() - began < 30


def test_a_slow_server_is_read_as_far_as_time_allows():
    """One kind has too many pages for the time that there is, another one takes too long for a single answer."""
    nodes = [{"metadata": {"name": "n%d" % number}} for number in range(5000)]
    slow = {"/api/v1/nodes": 2, "/apis/policy/v1/poddisruptionbudgets": 5}
    with standing_in(Api({"/api/v1/nodes": nodes}), slow) as server:
        began = time.monotonic()
        found = read(server.url, 6)
        assert time.monotonic() - began < 18  # of the 20 that all pages would take
    assert found["pods"] == HEALTHY["pods"]
    assert (found["nodes"], found["budgets"]) == (None, None)
    problems = {one["fact"]: (one["kind"], one["why"]) for one in found["problems"]}
    assert problems == {
        "cluster.nodes": ("late", "no complete answer within the 6 s of a whole sweep"),
        "cluster.budgets": ("hung", "no answer within 3 s"),
    }


@pytest.mark.parametrize(("left", "kind"), [(1, "late"), (9, "hung")])
def test_what_the_end_of_a_sweep_cuts_short_is_late_and_not_hung(left, kind):
    def silent(*_asked):
        raise NoAnswerError("no answer within %d s" % left, "hung")

    sweep = Sweep(SimpleNamespace(server_time=1.0, get=silent), 10)
    sweep.end = time.monotonic() + left
    with pytest.raises(NoAnswerError) as met:
        sweep._get("/version", {})
    assert met.value.kind == kind


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[]"])
def test_something_else_than_an_api_server(body):
    with standing_in(Api(), body=body) as server:
        assert only_problem(read(server.url))["why"] == "what answers there is no API server"


def test_a_server_that_has_none_of_it():
    """Then it has not said either that Calico is absent."""
    with standing_in(Api(answers={"*": 404})) as server:
        assert only_problem(read(server.url))["why"] == "this API server has no such thing"


def test_nobody_is_led_elsewhere_with_the_credentials():
    api = Api(answers={"*": 302})
    with standing_in(api) as server:
        assert only_problem(read(server.url))["why"] == "it broke (HTTP status 302)"
    assert "/elsewhere" not in {path for path, _query in api.asked}


def test_a_server_that_breaks_off():
    with socket.socket() as rude:
        rude.bind(("127.0.0.1", 0))
        rude.listen(64)
        rude.settimeout(0.05)
        ended = threading.Event()

        def serve():
            while not ended.is_set():
                try:
                    rude.accept()[0].close()
                except OSError:
                    continue

        threading.Thread(target=serve, daemon=True).start()
        found = read("http://127.0.0.1:%d" % rude.getsockname()[1])
        ended.set()
    assert found["nodes"] is None
    assert {one["kind"] for one in found["problems"]} == {"error"}


# -- who asks -------------------------------------------------------------------------------------------------------------


def kubeconfig(url, **user):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "here", "user": "me"}}, {"name": "two", "context": {"cluster": "there", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": url}}, {"name": "there", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": user}],
    }


@pytest.fixture
def server():
    with standing_in(Api()) as made:
        yield made


def told(server, options, environment=None):
    """The headers of one request, and whether the cluster was read."""
    found = _sweep.read(options, 20, environment or {})
    return server.headers_seen[0] if server.headers_seen else {}, found


def test_a_token(server):
    headers, _found = told(server, {"host": server.url + "/", "api_key": SECRET})
    assert headers["Authorization"] == "Bearer " + SECRET


def test_a_token_of_the_environment_as_awx_gives_it(server):
    headers, _found = told(server, {}, {"K8S_AUTH_HOST": server.url, "K8S_AUTH_API_KEY": SECRET, "K8S_AUTH_VERIFY_SSL": "False"})
    assert headers["Authorization"] == "Bearer " + SECRET


def test_an_option_comes_before_the_environment(server):
    headers, _found = told(server, {"api_key": SECRET}, {"K8S_AUTH_HOST": server.url, "K8S_AUTH_API_KEY": "other"})
    assert headers["Authorization"] == "Bearer " + SECRET


def test_name_and_password(server):
    headers, _found = told(server, {"host": server.url, **ANYBODY})
    assert headers["Authorization"] == "Basic dTpodW50ZXIy"


def test_somebody_else(server):
    headers, _found = told(server, {"host": server.url, **ANYBODY, "impersonate_user": "reader", "impersonate_groups": ["some", "more"]})
    assert headers["Impersonate-User"] == "reader"


@pytest.mark.parametrize("how", ["option", "dictionary", "environment", "kubectl's environment", "home"])
def test_a_kubeconfig(how, server, tmp_path, monkeypatch):
    content = kubeconfig(server.url, token=SECRET)
    file = tmp_path / ".kube" / "config"
    file.parent.mkdir()
    file.write_text(json.dumps(content))
    monkeypatch.setenv("HOME", str(tmp_path) if how == "home" else "/nowhere")
    options = {"option": {"kubeconfig": str(file)}, "dictionary": {"kubeconfig": content}}.get(how, {})
    environment = {"environment": {"K8S_AUTH_KUBECONFIG": str(file)}, "kubectl's environment": {"KUBECONFIG": str(file)}}.get(how, {})
    headers, found = told(server, options, environment)
    assert headers["Authorization"] == "Bearer " + SECRET
    assert found["problems"] == []


def test_another_context(server):
    _headers, found = told(server, {"kubeconfig": kubeconfig(server.url), "context": "two"})
    assert found["taken"]["server"] == "127.0.0.1:1"


def test_a_program_for_credentials(server):
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": SECRET}}
    program = {"apiVersion": said["apiVersion"], "command": "echo", "args": [json.dumps(said)], "interactiveMode": "Never"}
    headers, _found = told(server, {"kubeconfig": kubeconfig(server.url, exec=program)})
    assert headers["Authorization"] == "Bearer " + SECRET


def test_a_program_for_credentials_that_hangs():
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["30"], "interactiveMode": "Never"}
    with pytest.raises(_api.ClientError, match="has given none within 1 s"):
        _sweep.read({"kubeconfig": kubeconfig("http://127.0.0.1:1", exec=program)}, 1, {})


class Program:
    """One that gives tokens, each for a minute; it remembers how often it was asked."""

    def __init__(self, place):
        self.answer, self.runs = place / "answer", place / "runs"
        self.config = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never"}
        self.config["args"] = ["-c", 'echo >> "%s"; cat "%s"' % (self.runs, self.answer)]

    def gives(self, token):
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
        status = {"token": token, "expirationTimestamp": end}
        self.answer.write_text(json.dumps({"apiVersion": self.config["apiVersion"], "kind": "ExecCredential", "status": status}))

    @property
    def asked(self):
        return len(self.runs.read_text())


def test_a_token_that_ends_is_followed_by_the_next(server, tmp_path, monkeypatch):
    """Where a task lasts longer. The program is not run for each question; where it gives none, the server says what the old one is worth."""
    program, later = Program(tmp_path), [0.0]
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(later))
    program.gives("first")
    with _api.opened({"kubeconfig": kubeconfig(server.url, exec=program.config)}, 20, {}) as door:

        def sent(seconds_later=0.0):
            later.append(seconds_later)
            door.get("/version", {}, 0.5)
            return server.headers_seen[-1]["Authorization"]

        program.gives("second")
        asked = program.asked
        assert {sent() for _time in range(20)} == {"Bearer first"} and program.asked == asked
        assert {sent(31), sent(), sent()} == {"Bearer second"} and program.asked == asked + 1
        program.answer.unlink()
        assert sent(31) == sent() == "Bearer second" and program.asked == asked + 2
        os.mkfifo(program.answer)
        assert sent(31) == "Bearer second", "it hangs"
        program.answer.write_text("")  # and so it ends


def test_keys_of_a_kubeconfig_leave_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    content = kubeconfig("http://127.0.0.1:1", **{"client-certificate-data": "aHVudGVyMg==", "client-key-data": "aHVudGVyMg=="})
    for _time in range(2):  # the client remembers what it wrote
        _sweep.read({"kubeconfig": content}, 5, {})
        assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "no cluster is named: set kubeconfig"),
        ({"kubeconfig": "/nowhere/config"}, "kubeconfig: there is no file /nowhere/config on the controller"),
        ({"host": "https://a", "api_key": "x", "ca_cert": "/nowhere/ca.crt"}, "ca_cert: there is no file /nowhere/ca.crt"),
        ({"host": "10.0.0.1:6443", "api_key": "x"}, "host is '10.0.0.1:6443', and must be an URL such as"),
        ({"kubeconfig": {"kind": "Config"}}, "the kubeconfig that is given as a dictionary cannot be used: "),
        ({"kubeconfig": {**kubeconfig("http://127.0.0.1:1"), "current-context": "three"}}, "the kubeconfig that is given as a dictionary cannot be used: "),
    ],
)
def test_who_cannot_be_asked_is_told_why(options, why, monkeypatch):
    monkeypatch.setenv("HOME", "/nowhere")
    with pytest.raises(_api.ClientError, match=re.escape(why)):
        _sweep.read(options, 20, {})


def test_without_the_library(monkeypatch):
    monkeypatch.setattr(_client, "client", None)
    with pytest.raises(_api.ClientError, match="pip install kubernetes"):
        _sweep.read({}, 20, {})
