"""When there is a cluster to be asked: a repair that passes it over would take no lock, ask no gate and cordon nothing, and say nothing of it."""

from __future__ import annotations

import json
import os
import re

import pytest
from checkout import BIN, ROOT, run

from lab.fleet import Fleet

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "prod",
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
    "clusters": [{"name": "prod", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "x"}}],
}
CASES = {
    "nothing is named": ({}, False),
    "a kubeconfig": ({"nodecare_kubeconfig": "~/.kube/config"}, True),
    "a context": ({"nodecare_context": "prod"}, True),
    "an empty answer of a form": ({"nodecare_kubeconfig": "", "nodecare_context": ""}, False),
    "a kubeconfig, and no cluster by word": ({"nodecare_kubeconfig": "~/.kube/config", "nodecare_cluster": False}, False),
}
PLACES = {"guard": "roles/guard/tasks/enter.yml", "preflight": "roles/preflight/tasks/main.yml", "repair": "roles/repair/vars/main.yml"}


def play(case):
    """What is said of the cluster, without going on to it: the guard ends because of a serial that cannot be, and preflight finds nobody there."""
    guard = {"name": "nodecare.kubernetes.guard", "tasks_from": "enter"}
    quick = {"nodecare_checks": ["node"], "nodecare_fail_on": "never", "nodecare_report_formats": [], "nodecare_serial": 0}
    return {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **quick, **CASES[case][0]},
        "tasks": [
            {
                "block": [{"ansible.builtin.include_role": guard, "vars": {"guard_repair": "test"}}],
                "rescue": [{"ansible.builtin.include_role": {"name": "nodecare.kubernetes.preflight"}}],
            },
            {"ansible.builtin.debug": {"msg": "guard: {{ guard_cluster }}, preflight: {{ preflight_cluster is not skipped }}"}},
        ],
    }


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """{case: whether guard and preflight have a cluster to ask}, of one run."""
    place = tmp_path_factory.mktemp("named")
    (place / ".kube").mkdir()
    (place / ".kube/config").write_text(json.dumps(KUBECONFIG))
    (place / "plays.yml").write_text(json.dumps([play(case) for case in CASES]))
    words = run(BIN / "ansible-playbook", place / "plays.yml", "-i", "localhost,", "-c", "local", HOME=str(place))
    return dict(zip(CASES, re.findall(r"guard: (\w+), preflight: (\w+)", words)))


@pytest.mark.parametrize("case", CASES)
def test_it_is_asked_wherever_somebody_names_one(case, said):
    assert said[case] == (str(CASES[case][1]),) * 2


@pytest.mark.parametrize("name", ["KUBECONFIG", "K8S_AUTH_KUBECONFIG", "K8S_AUTH_HOST", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_the_cluster_of_who_runs_the_tests_is_not_asked(name, monkeypatch, tmp_path):
    assert name not in os.environ
    monkeypatch.setenv(name, "theirs")
    assert name not in Fleet({}, tmp_path).environment()
    assert Fleet({}, tmp_path).environment(**{name: "ours"})[name] == "ours"


def test_all_go_by_the_same():
    """Also what looks whether a repair has helped."""
    said = {role: re.findall(r"^ *%s_((?:given|named): .*)$" % role, (ROOT / path).read_text(), re.M) for role, path in PLACES.items()}
    assert len(said["guard"]) == 2
    assert len({"\n".join(lines).replace(role + "_", "") for role, lines in said.items()}) == 1, said
