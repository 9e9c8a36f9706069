"""Real nodes: one cluster for all tests that need one. A machine that cannot run a lab skips them all, with its reason."""

from __future__ import annotations

import os

import pytest
from labs import ROOT, Lab, own_name
from lanes import CLUSTER, MACHINES, lane_of

from lab.shell import go_after

GIVE_WAY = 10  # the niceness of what runs beside a cluster


def pytest_collection_modifyitems(config, items):
    """What several files share stands from its first test to the end, so what needs a lab of its own comes before; but machines before all else."""
    items.sort(key=lambda item: (not MACHINES.search(item.nodeid), bool({"cluster", "nodes"} & set(item.fixturenames))))
    here = [item for item in items if item.path.parent == ROOT / "tests" / "lab"]
    if config.pluginmanager.hasplugin("timeout"):
        for item in here:  # all that they wait for has a limit of its own, and what ends them would leave their machines standing
            item.add_marker(pytest.mark.timeout(0))
    unable, why = Lab("none").ask("check")
    for item in here if unable else []:
        item.add_marker(pytest.mark.skip(reason=why))


class FailuresAtOnce:
    """The controller of several processes tells why a test failed when all are done, which may be two hours later."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.failed:
            terminal = self.config.pluginmanager.getplugin("terminalreporter")
            terminal.write_sep("_", "%s of %s" % (report.when, report.nodeid), red=True)
            terminal.write_line(report.longreprtext)


def pytest_configure(config):
    if config.getoption("numprocesses", None):
        config.pluginmanager.register(FailuresAtOnce(config))


def pytest_runtest_setup(item):
    """The cluster's nodes have kubelets and probes with deadlines, and are judged by their load: all other lanes give way to theirs."""
    if os.environ.get("PYTEST_XDIST_WORKER") and lane_of(item.nodeid) != CLUSTER and not os.nice(0):
        os.setsid()
        os.nice(GIVE_WAY)
        go_after(os.getpid(), GIVE_WAY)


@pytest.fixture
def figure(record_property):
    """Takes down what a test has measured."""
    return lambda said: record_property("figure", said)


def pytest_terminal_summary(terminalreporter):
    told = [(one.nodeid, said) for one in terminalreporter.getreports("passed") for name, said in one.user_properties if name == "figure"]
    if told:
        terminalreporter.section("figures")
    for test, said in told:
        terminalreporter.line("%s: %s" % (test.partition("::")[2], said))


@pytest.fixture(scope="session")
def cluster():
    """Three nodes (or LAB_NODES) with Calico: the lab LAB_ID where that stands, else one of our own that goes with us."""
    yield from _standing_or_own("LAB_ID", "c", "--layer", "calico", "--nodes", os.environ.get("LAB_NODES") or 3)


@pytest.fixture(scope="session")
def nodes():
    """Two nodes without Kubernetes: the lab LAB_OF_NODES where that stands, else one of our own that goes with us."""
    yield from _standing_or_own("LAB_OF_NODES", "n", "--layer", "nodes", "--nodes", 2)


@pytest.fixture(scope="session")
def api():
    """An API server without machines: the lab LAB_OF_API where that stands, else one of our own that goes with us."""
    yield from _standing_or_own("LAB_OF_API", "s", "--layer", "cluster", "--nodes", 0)


def _standing_or_own(variable, letter, *words):
    standing = Lab(os.environ.get(variable) or "none")
    if standing.ask("status")[0] == 0:
        yield standing
        return
    made = Lab(own_name(letter))
    try:
        made.up(*words)
        yield made
    finally:
        made.do("down")
