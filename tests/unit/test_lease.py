"""The lock of a cluster against an API server in memory, in which others are quicker, clocks run, and answers fail. tests/lab/test_lock.py has a real one."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils import _lease
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api import NoAnswerError, _insist
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._holder import Run

US, THEM = Run("us", "me@here, process 1"), Run("them", "AWX job 7")


class Server:
    """One object, its versions, and what happens just before the next write."""

    def __init__(self):
        self.thing, self.version, self.now = None, 0, 1795030943.0
        self.before_write, self.fails = [], []

    def get(self, _path, _query, _seconds):
        self._fail()
        if self.thing is None:
            raise NoAnswerError("not found", status=404)
        return copy.deepcopy(self.thing)

    def create(self, _path, body, _seconds, dry_run=False):
        return self._write(body, dry_run, self.thing is None)

    def replace(self, _path, body, _seconds, dry_run=False):
        return self._write(body, dry_run, lambda: self.thing and body["metadata"]["resourceVersion"] == self.thing["metadata"]["resourceVersion"])

    def delete(self, _path, _seconds, body=None, dry_run=False):
        self._interfere()
        if self.thing["metadata"]["resourceVersion"] != body["preconditions"]["resourceVersion"]:
            raise NoAnswerError("conflict", status=409)
        self.thing = self.thing if dry_run else None

    def _write(self, body, dry_run, fits):
        self._interfere()
        if not (fits() if callable(fits) else self.thing is None):
            raise NoAnswerError("conflict", status=409)
        self.version += 1
        written = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version), "uid": "u"}}
        self.thing = self.thing if dry_run else written
        return copy.deepcopy(written)

    def _interfere(self):
        self._fail()
        if self.before_write:
            self.before_write.pop()()

    def _fail(self):
        if self.fails:
            raise self.fails.pop()


@pytest.fixture
def server(monkeypatch):
    found = Server()
    monkeypatch.setattr(_insist.time, "sleep", lambda seconds: setattr(found, "now", found.now + seconds))
    return found


def take(server, run, **options):
    how, lease, _before = _insist.insisting(lambda seconds: _lease.Lock(server, run, **options).take("swap", 600, seconds), 5)
    return how, lease


def test_of_two_one_waits_until_the_other_is_through(server):
    assert take(server, US)[0] == _lease.CREATED
    with pytest.raises(_lease.HeldError, match=r"run us\), for swap, since 2026-11-18T19:42:23Z. It was renewed 0 s ago"):
        take(server, THEM)
    assert _lease.Lock(server, THEM).free(1)[0] == _lease.NOTHING
    assert take(server, US)[0] == _lease.RENEWED
    assert _lease.Lock(server, US).free(1)[0] == _lease.FREED
    assert take(server, THEM)[0] == _lease.CREATED


@pytest.mark.parametrize(("passed", "over"), [(599, False), (601, False), (629, False), (631, True)])
def test_taken_over_only_when_it_is_over(server, passed, over):
    take(server, US)
    server.now += passed
    if not over:
        with pytest.raises(_lease.HeldError):
            take(server, THEM)
        return
    assert take(server, THEM)[0] == _lease.TAKEN_OVER
    with pytest.raises(_lease.LostError, match="this run has lost the cluster's lock to AWX job 7"):
        take(server, US)


def test_a_renewal_counts_from_now_and_keeps_since_when(server):
    first = take(server, US)[1]
    server.now += 500
    second = take(server, US)[1]
    assert (second.since, second.until) == (first.since, first.until + 500)


def test_who_is_quicker_wins_the_creation(server):
    server.before_write = [lambda: take(server, THEM)]
    with pytest.raises(_lease.HeldError, match="AWX job 7"):
        take(server, US)


def test_who_is_quicker_wins_the_take_over(server):
    take(server, Run("third", ""))
    server.now += 700
    server.before_write = [lambda: take(server, THEM)]
    with pytest.raises(_lease.HeldError, match="AWX job 7"):
        take(server, US)


def test_a_lock_that_is_lost_in_the_moment_of_its_renewal(server):
    take(server, US)
    server.now += 700
    server.before_write = [lambda: take(server, THEM)]
    with pytest.raises(_lease.LostError, match="this run has lost"):
        take(server, US)


def test_two_tasks_of_one_run_do_not_take_it_from_each_other(server):
    take(server, US)
    server.before_write = [lambda: take(server, US)]
    assert take(server, US)[0] == _lease.RENEWED


def test_what_is_freed_is_not_what_another_has_taken_meanwhile(server):
    take(server, US)
    server.now += 700
    server.before_write = [lambda: take(server, THEM)]
    assert _insist.insisting(_lease.Lock(server, US).free, 5)[0] == _lease.NOTHING
    assert server.thing["spec"]["holderIdentity"] == "them"


def test_check_mode_takes_nothing(server):
    assert take(server, US, dry_run=True)[0] == _lease.CREATED
    assert server.thing is None
    take(server, US)
    assert _lease.Lock(server, US, dry_run=True).free(1)[0] == _lease.FREED
    assert server.thing


BROKEN = {
    "no time": {"renewTime": None},
    "no duration": {"leaseDurationSeconds": None},
    "a year that nobody means": {"renewTime": "9999-12-31T23:59:59.000000Z"},
    "a holder that acts on terminals": {"holderIdentity": "\x1b[2J{{ 7 * 7 }}"},
}


@pytest.mark.parametrize("note", ["[[", '{"holder": "\\u001b[2J", "repair": "\\u0007"}'])
@pytest.mark.parametrize("spec", BROKEN.values(), ids=BROKEN)
def test_a_broken_lease_is_somebodys(server, spec, note):
    take(server, THEM)
    server.thing["spec"].update(spec)
    server.thing["metadata"]["annotations"] = {"nodecare/repair": note}
    with pytest.raises(_lease.HeldError) as error:
        take(server, US)
    assert str(error.value).isprintable() and _lease.BY_HAND in str(error.value)
    assert error.value.lease.facts()


def test_a_lease_of_nobody_is_free(server):
    take(server, THEM)
    server.thing["spec"]["holderIdentity"] = ""
    assert take(server, US)[0] == _lease.CREATED


@pytest.mark.parametrize("status", [0, 409, 429, 500, 503])
def test_what_passes_is_tried_again(server, status):
    server.fails = [NoAnswerError("later", status=status)] * 3
    assert take(server, US)[0] == _lease.CREATED


@pytest.mark.parametrize("status", [401, 403, 422])
def test_what_stays_is_said_at_once(server, status):
    server.fails = [NoAnswerError("never", status=status)]
    with pytest.raises(NoAnswerError, match="never"):
        take(server, US)


# -- in the loops of those who wait long -----------------------------------------------------------------------------------


@pytest.fixture
def clock(server, monkeypatch):
    monkeypatch.setattr(_lease.time, "monotonic", lambda: server.now)
    return server


def test_it_is_renewed_while_somebody_waits(clock):
    take(clock, US)
    keeper = _lease.Keeper(clock, US)
    for _minute in range(60):
        clock.now += 60
        keeper.keep()
    assert clock.version < 30
    with pytest.raises(_lease.HeldError):
        take(clock, THEM)


def test_an_api_server_that_is_away_is_borne_as_long_as_the_lease_lasts(clock):
    take(clock, US)
    keeper = _lease.Keeper(clock, US)
    clock.now += 300
    clock.fails = [NoAnswerError("away")]
    keeper.keep()
    clock.now += 301
    clock.fails = [NoAnswerError("away")]
    with pytest.raises(NoAnswerError, match="away"):
        keeper.keep()


def test_a_lease_that_is_anothers_by_now_is_lost(clock):
    take(clock, US)
    keeper = _lease.Keeper(clock, US)
    clock.now += 700
    take(clock, THEM)
    with pytest.raises(_lease.LostError, match="to AWX job 7"):
        keeper.keep()
    clock.thing = None
    with pytest.raises(_lease.LostError, match="somebody has deleted"):
        keeper.keep()


def test_nothing_is_kept_where_the_run_has_no_lease(clock):
    take(clock, THEM)
    _lease.Keeper(clock, US).keep()
    assert clock.version == 1
