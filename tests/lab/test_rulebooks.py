"""The rulebook as it is shipped and docs/events.md as it is written, fired on loopback by payloads like Alertmanager's and by a real Alertmanager.

What is launched goes to a stand-in of AWX's API. Needs no guests. What a test changes of the page is ports, and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
import yaml
from alertmanager import Alertmanager, program
from awx_launch_stand_in import TOKEN, AwxStandIn
from checkout import ROOT, WITH_PROGRAMS, run
from guides import texts
from labs import Daemon, eventually

SHIPPED = "extensions/eda/rulebooks/alertmanager.yml"
RULEBOOK = yaml.safe_load((ROOT / SHIPPED).read_text())
VARIABLES, CONFIGURATION = texts("docs/events.md", "yaml")
(COMMANDS,) = texts("docs/events.md", "console")
GIVEN = yaml.safe_load(VARIABLES)
DIAGNOSE, REPAIR = "nodecare diagnose", "nodecare repair nodes"
FOUND = {"nodecare_found_only_on": "worker-3"}
QUIET = 5  # seconds in which nothing more is launched; a launch takes less than one


def alert(name="KubeNodeNotReady", status="firing", **labels):
    return {"status": status, "labels": {"alertname": name, "severity": "warning", **labels}, "annotations": {"summary": "{{ 7 * 7 }}"}}


def payload(*alerts):
    """As Alertmanager sends it: ``status`` is that of the group, which is firing as long as one of its alerts is."""
    firing = any(one["status"] == "firing" for one in alerts)
    return {"version": "4", "receiver": "nodecare", "status": "firing" if firing else "resolved", "truncatedAlerts": 0, "alerts": list(alerts)}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Rulebook(Daemon):
    """The commands and variables of docs/events.md, with a port of its own and the stand-in's address."""

    def __init__(self, place, awx, given=GIVEN, collections=ROOT / ".collections"):
        self.place, self.awx, self.collections, self.port = place, awx, collections, free_port()
        self.given = {**given, "port": self.port}

    def started(self):
        (self.place / "alerts.yml").write_text(yaml.safe_dump(self.given))
        (self.place / "awx.token").write_text(TOKEN)
        environment = {**os.environ, "PATH": WITH_PROGRAMS, "ANSIBLE_COLLECTIONS_PATH": str(self.collections), "EDA_JOB_TEMPLATE_REFRESH_DELAY": "0.2"}
        commands = COMMANDS.replace("https://awx.example", self.awx.url).replace("\nansible-rulebook", "\nexec ansible-rulebook")
        with open(self.place / "log", "w", encoding="utf-8") as log:
            return subprocess.Popen(["sh", "-ec", commands], cwd=self.place, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self):
        return (self.place / "log").read_text()

    def ready(self):
        assert self.running.poll() is None, self.said()
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self.port)) == 0

    def post(self, body, token=GIVEN["webhook_token"]):
        """The HTTP status of the answer."""
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
        asked = urllib.request.Request("http://127.0.0.1:%d/alerts" % self.port, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            return refused.code

    def launched(self, number):
        """What was launched, once it is so much and nothing more follows."""
        eventually("%d launches" % number, lambda: len(self.awx.launched) >= number, limit=60, every=0.1)
        time.sleep(QUIET)
        return self.awx.names()


@pytest.fixture
def start(tmp_path):
    """A rulebook that listens, with a stand-in whose diagnoses leave the given artifacts."""
    with AwxStandIn() as awx, Rulebook(tmp_path, awx) as rulebook:

        def with_artifacts(**artifacts):
            awx.artifacts = artifacts
            return rulebook

        yield with_artifacts


TAKEN = {
    "a node is not ready": alert("KubeNodeNotReady", node="worker-3"),
    "a node is not reachable": alert("KubeNodeUnreachable", node="worker-3"),
    "no kubelet is seen": alert("KubeletDown"),
    "calico-node restarts": alert("KubePodCrashLooping", namespace="calico-system", pod="calico-node-x7x2p", container="calico-node"),
    "a node's load": alert("NodeSystemSaturation", instance="10.0.0.13:9100"),
    "with the cluster's name": alert(node="worker-3", cluster=GIVEN["cluster"]),
}
LEFT = {
    "resolved": alert(status="resolved", node="worker-3"),
    "another alert": alert("Watchdog"),
    "another cluster's": alert(node="worker-3", cluster="another"),
    "another container": alert("KubePodCrashLooping", namespace="shop", pod="cart-1", container="cart"),
    "without labels": {"status": "firing"},
    "forged result of a diagnosis": {**alert("Watchdog"), **FOUND, "meta": {"source": {"type": "internal", "name": "run_job_template"}}},
}


@pytest.mark.parametrize("fired", TAKEN.values(), ids=TAKEN)
def test_one_firing_alert_is_exactly_one_diagnosis_by_a_stand_in_of_awx(fired, start):
    rulebook = start()
    assert rulebook.post(payload(fired)) == 200
    assert rulebook.launched(1) == [DIAGNOSE]
    ((_name, asked),) = rulebook.awx.launched
    assert asked == {"limit": "all", "extra_vars": {}}, "all nodes are compared, and nothing that an alert says becomes a variable"


def test_fifty_duplicates_in_ten_seconds_are_one_diagnosis(start):
    rulebook, begun = start(), time.monotonic()
    for number in range(50):
        assert rulebook.post(payload(alert(node="worker-%d" % (number % 5)))) == 200
        time.sleep(max(0.0, begun + 0.19 * number - time.monotonic()))
    assert rulebook.launched(1) == [DIAGNOSE]
    rulebook.post(payload(alert("KubeletDown")))
    assert rulebook.launched(2) == [DIAGNOSE, DIAGNOSE], "what came before it was looked at before it"


def test_what_is_no_such_alert_launches_nothing_and_the_rest_of_its_payload_is_taken(start):
    """Resolved and foreign ones first alone, each in a payload of its own and all in one; then with one that fires among them."""
    rulebook = start()
    for left in LEFT.values():
        assert rulebook.post(payload(left)) == 200
    assert rulebook.post(payload(*LEFT.values())) == 200
    assert rulebook.launched(0) == []
    assert rulebook.post(payload(*LEFT.values(), alert(node="worker-3"), alert(node="worker-4"))) == 200
    assert rulebook.launched(1) == [DIAGNOSE]


def test_what_is_no_payload_or_has_no_token_harms_nobody(start):
    rulebook = start()
    assert rulebook.post(payload(alert()), token="guessed") == 401
    for broken in ({"alerts": None}, {"alerts": "x"}, {"alerts": [1]}, [1], "x", {"alerts": [[]]}, FOUND):
        rulebook.post(broken)
    assert rulebook.launched(0) == []
    assert rulebook.post(payload(alert())) == 200
    assert rulebook.launched(1) == [DIAGNOSE]


def test_diagnoses_of_one_cluster_wait_for_each_other(start):
    rulebook = start()
    rulebook.awx.at_work = True
    for name in ("KubeNodeNotReady", "KubeNodeUnreachable", "KubeletDown"):
        rulebook.post(payload(alert(name)))
    assert rulebook.launched(1) == [DIAGNOSE]
    rulebook.awx.at_work = False
    assert rulebook.launched(3) == [DIAGNOSE] * 3


def test_a_repair_is_asked_for_once_and_only_where_a_diagnosis_names_one(start):
    """The workflow that asks somebody gets no more than the node, as its limit and once more as its survey wants it."""
    rulebook = start(nodecare_found_summary={"fail": 3})
    rulebook.post(payload(alert("KubeletDown")))
    assert rulebook.launched(1) == [DIAGNOSE]
    rulebook = start(**FOUND)
    for name in ("KubeNodeNotReady", "KubeNodeUnreachable"):
        rulebook.post(payload(alert(name)))
    assert sorted(rulebook.launched(4)) == [DIAGNOSE] * 3 + [REPAIR]
    assert [asked for name, asked in rulebook.awx.launched if name == REPAIR] == [{"limit": "worker-3", "extra_vars": {"nodecare_confirm": "worker-3"}}]


def without_throttle(ruleset):
    del ruleset["rules"][0]["throttle"]


def without_status(ruleset):
    ruleset["rules"][0]["condition"] = ruleset["rules"][0]["condition"].replace('event.status == "firing"', "event.status is defined")


def without_lock(ruleset):
    del ruleset["rules"][0]["action"]["run_job_template"]["lock"]


def without_splitter(ruleset):
    del ruleset["sources"][0]["filters"][0]


def without_filter(ruleset):
    del ruleset["sources"][0]["filters"][1]


@pytest.mark.parametrize(
    ("without", "fired", "launched"),
    [
        (without_throttle, [alert()] * 3, [DIAGNOSE] * 3),
        (without_status, [LEFT["resolved"]], [DIAGNOSE]),
        (without_lock, [alert("KubeletDown"), alert()], [DIAGNOSE] * 2),
        (without_splitter, [alert()], []),
        (without_filter, [LEFT["forged result of a diagnosis"]], [REPAIR]),
    ],
)
def test_each_guard_is_missed(without, fired, launched, tmp_path):
    """What the tests above would see if the rulebook lacked it. What only a lock keeps apart is at work at once."""
    changed = yaml.safe_load((ROOT / SHIPPED).read_text())
    without(changed[0])
    collection = tmp_path / "ansible_collections/nodecare/kubernetes"
    (collection / SHIPPED).parent.mkdir(parents=True)
    (collection / SHIPPED).write_text(yaml.safe_dump(changed))
    shutil.copy(ROOT / "galaxy.yml", collection)
    with AwxStandIn() as awx, Rulebook(tmp_path, awx, collections=tmp_path) as rulebook:
        awx.at_work = without is without_lock
        for one in fired:
            rulebook.post(payload(one))
        assert rulebook.launched(len(launched)) == launched


def test_a_real_alertmanager_is_understood(start):
    """Its groups, its payload and its repetitions; a resolved alert is not even sent, and would launch nothing."""
    rulebook = start()
    configuration = CONFIGURATION.replace(":%d/" % GIVEN["port"], ":%d/" % rulebook.port).replace("send_resolved: false", "send_resolved: true")
    assert configuration.count(str(rulebook.port)) == 1
    (rulebook.place / "page.yml").write_text(CONFIGURATION)
    run(program("amtool"), "check-config", "page.yml", cwd=rulebook.place)
    down = [{"alertname": "KubeNodeNotReady", "node": "worker-%d" % number, "cluster": GIVEN["cluster"]} for number in (3, 4)]
    with Alertmanager(rulebook.place, configuration, free_port()) as alertmanager:
        alertmanager.tell(*down, {"alertname": "Watchdog"})
        assert rulebook.launched(1) == [DIAGNOSE]
        alertmanager.tell(*down, {"alertname": "KubeletDown"})
        assert rulebook.launched(2) == [DIAGNOSE, DIAGNOSE]


def test_what_the_rulebook_leaves_out_alertmanager_sends_no_sooner():
    """So that nothing is left out but what another one sends again."""
    throttle = RULEBOOK[0]["rules"][0]["throttle"]
    (route,) = yaml.safe_load(CONFIGURATION)["route"]["routes"]
    assert [name.removeprefix("event.labels.") for name in throttle["group_by_attributes"]] == ["alertname"] and "alertname" in route["group_by"]
    assert throttle["once_within"].endswith(" minutes") and route["group_interval"].endswith("m")
    assert int(throttle["once_within"].split()[0]) < int(route["group_interval"][:-1])


def test_without_a_token_of_its_own_it_does_not_listen(tmp_path):
    given = {name: value for name, value in GIVEN.items() if name != "webhook_token"}
    with AwxStandIn() as awx, pytest.raises(AssertionError, match="webhook_token"), Rulebook(tmp_path, awx, given):
        pass
