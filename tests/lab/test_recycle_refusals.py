"""recycle_node on a real API server and over a real sshd, up to the reboot: what it refuses, and that the node is then as it was.

No target is ever rebooted: each run is one that has to be refused, or is only foreseen. tests/lab/test_recycle.py reboots real nodes.
"""

from __future__ import annotations

import json
import re
import uuid

import pytest
from labs import ROOT
from test_guard import NODES, Cluster

from lab.fleet import Face, Fleet, Target, missing

BUSY = {
    "/proc/loadavg": "96.00 94.00 60.00 97/400 1000\n",
    "/proc/pressure/cpu": "some avg10=98.00 avg60=97.00 avg300=80.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}
IDLE = {
    "/proc/loadavg": "0.10 0.10 0.10 1/400 1000\n",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}
BOOT = "/proc/sys/kernel/random/boot_id"
POD = {"containers": [{"name": "main", "image": "none"}]}


class Recycling(Cluster):
    def __init__(self, *given):
        super().__init__(*given)
        (self.place / "repair.yml").write_text((ROOT / "playbooks" / "repair_overload.yml").read_text())

    def pod(self, node, **spec):
        return self.client.create_namespaced_pod("default", {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"nodeName": node, **POD, **spec}})

    def clean(self):
        super().clean()
        for one in self.client.list_namespaced_pod("default").items:
            self.client.delete_namespaced_pod(one.metadata.name, "default", grace_period_seconds=0)


@pytest.fixture(scope="module")
def made(api, tmp_path_factory):
    why = missing(faces=True)
    if why:
        pytest.skip("no real SSH targets here: " + why)
    faces = {node: Face({**(BUSY if node in ("s1", "s2") else IDLE), BOOT: "%s\n" % uuid.uuid4()}) for node in NODES}
    faces["s2"] = Face(BUSY)  # which shares its boot with the machine that the run works on
    with Fleet({node: Target(face) for node, face in faces.items()}) as fleet:
        cluster = Recycling(api, fleet, tmp_path_factory.mktemp("recycle"))
        try:
            yield cluster
        finally:
            cluster.close()


@pytest.fixture
def cluster(made):
    made.clean()
    yield made
    made.clean()


def as_it_was(cluster):
    return (cluster.cordoned(), cluster.marked(), cluster.locked()) == ([], [], False)


def refused(cluster, why, *words, **variables):
    said = cluster.play("--limit", "s1,s3,s4", *words, well=False, **variables)
    assert why in said and "No further node is touched" in said, said
    assert not re.search(r"TASK \[.*Reboot it", said), said
    return said


def test_a_node_that_is_well_is_left_alone(cluster):
    said = cluster.play("--limit", "s3,s4")
    assert "changed=0" in said and not re.search(r"(changed|fatal): \[", said) and as_it_was(cluster), said


def test_nobody_has_agreed(cluster):
    said = refused(cluster, "With -e nodecare_reboot_ok=true this is done")
    assert "load 94.0" in said and as_it_was(cluster), said


def test_a_pod_that_needs_consent(cluster):
    cluster.pod("s1", volumes=[{"name": "data", "emptyDir": {}}])
    said = refused(cluster, "nothing was evicted: default/web", nodecare_reboot_ok=True)
    assert "even_bare: true and even_emptydir: true" in said and as_it_was(cluster), said


def test_a_pod_that_does_not_end(cluster):
    """It was told to, so the node stays cordoned, with the way out. The second run waits for it again."""
    cluster.pod("s1", terminationGracePeriodSeconds=600)
    wanted = {"nodecare_reboot_ok": True, "nodecare_drain_even_bare": True, "nodecare_drain_wait": 3}
    for _run in (1, 2):
        said = refused(cluster, "default/web is still terminating", **wanted)
        assert cluster.cordoned() == cluster.marked() == ["s1"] and not cluster.locked()
        assert "is left cordoned on purpose" in said and "kubectl uncordon s1" in said, said


def test_the_machine_that_the_run_works_on(cluster):
    said = cluster.play("--limit", "s2,s3,s4", well=False, nodecare_reboot_ok=True)
    assert "this run works on the machine that is to be rebooted" in said and as_it_was(cluster), said


def test_a_cause_that_is_common(cluster):
    said = cluster.play("--limit", "s1,s2", well=False, nodecare_reboot_ok=True)
    assert "2 of 2 nodes are as loaded: the cause is common to them" in said and "no node is rebooted for that" in said and as_it_was(cluster), said


def test_check_mode_foresees_the_reboot_and_changes_nothing(cluster):
    pod = cluster.pod("s1")
    said = cluster.play("--limit", "s1,s3,s4", "--check", "--diff", nodecare_drain_even_bare=True)
    assert "-default/web" in said and re.search(r"Reboot it\] \*+\n+changed: \[s1\]", said), said
    assert as_it_was(cluster)
    assert cluster.client.read_namespaced_pod("web", "default").metadata.resource_version == pod.metadata.resource_version
    assert json.dumps(said).count("changed: [s3]") == 0
