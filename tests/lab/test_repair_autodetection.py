"""A second NIC that Calico's default detection takes: healed on real nodes by another method, for all of them, and no packet between the others is lost."""

from __future__ import annotations

import json
import time

from labs import BOOT, changed, eventually
from mesh import ILL, SECOND_NIC, WELL, healed, registered  # noqa: F401 - a fixture among them
from test_cluster import NODES, talkers  # noqa: F401 - a fixture
from test_repair_bridges import HEALTHY, flows, lost, routes, sessions, since, traffic

ALL = dict.fromkeys(NODES, len(NODES) - 1)
LATER = 5  # seconds after the repair for which the traffic is still watched


def template(cluster):
    return json.loads(cluster.kubectl("-n", "kube-system", "get", "daemonset", "calico-node", "-o", "json"))["spec"]["template"]


def test_a_second_nic_no_longer_leads_calico_astray(healed, talkers, figure):  # noqa: F811 - fixtures
    cluster = healed
    eventually("the whole mesh", lambda: sessions(cluster) == ALL, BOOT)
    before = template(cluster)
    with traffic(cluster, talkers) as told, routes(cluster, HEALTHY) as withdrawn:
        eventually("every pod to be answered", lambda: flows(told()), 120)
        cluster.do("fault", ILL, "wrong-nic")
        try:
            eventually("Calico to register the second network's address", lambda: registered(cluster) == {**WELL, ILL: SECOND_NIC}, BOOT)
            ill = told()
            predicted = cluster.play("repair_autodetection", "--check", "--diff", nodecare_allow_disruption=True)
            assert "kubernetes-internal-ip" in predicted and template(cluster) == before
            began = time.monotonic()
            said = cluster.play("repair_autodetection", "--diff", nodecare_allow_disruption=True)
            took = time.monotonic() - began
            assert SECOND_NIC in said, "the table says what was registered"
            assert sum(changed(said).values()) > 0 and registered(cluster) == WELL
            eventually("the whole mesh", lambda: sessions(cluster) == ALL, 300)
            time.sleep(LATER)
            during = since(told(), ill)
            told_of = {"%s to %s" % pair: "%d of %d" % (lost({pair: sent}, NODES), len(sent)) for pair, sent in sorted(during.items())}
            figure("%.0f s; packets that were lost from the repair on: %s" % (took, told_of))
            assert withdrawn() == {node: [] for node in HEALTHY} and lost(during, HEALTHY) == 0
            assert sum(changed(cluster.play("repair_autodetection")).values()) == 0
            assert registered(cluster) == WELL, "though the second NIC is still listed last"
        finally:
            cluster.do("heal", ILL, "wrong-nic")
            cluster.play("repair_autodetection", nodecare_state="as_before")
    assert template(cluster) == before


def test_a_run_that_does_not_see_all_nodes_changes_nothing(healed):  # noqa: F811
    """--limit is not widened, and what a node that was not read would get is not guessed."""
    before = template(healed)
    said = healed.play("repair_autodetection", "--limit", "n1,n2", expect=(2,), nodecare_calico_method="cidr=10.0.0.0/24")
    assert "n3 were not read in this play" in " ".join(said.split()) and template(healed) == before


def test_a_first_host_that_is_lost_neither_skips_nor_doubles_it(healed):  # noqa: F811
    """What acts once runs all the same, and has read the others: it refuses a method by which they find nothing."""
    before = template(healed)
    hosts = ("-i", "lost,", "-e", json.dumps({"nodecare_hosts": "lost,n1,n2,n3"}))
    said = healed.play("repair_autodetection", *hosts, expect=(2, 4, 6), nodecare_calico_method="cidr=10.99.0.0/16")
    assert "n1 would get nothing: it finds no address there" in " ".join(said.split())
    assert template(healed) == before and sum(changed(said).values()) == 0
