"""The operator's Installation, as a patch meets it in a cluster."""

from __future__ import annotations

import json

import pytest

METHOD = "{.spec.calicoNetwork.nodeAddressAutodetectionV4}"


@pytest.fixture
def installed(cluster):
    cluster.do("operator-crds")
    yield cluster
    cluster.kubectl("delete", "installation", "default")


def patched(cluster, method):
    patch = {"spec": {"calicoNetwork": {"nodeAddressAutodetectionV4": method}}}
    cluster.kubectl("patch", "installation", "default", "--type=merge", "-p", json.dumps(patch))
    return chosen(cluster)


def chosen(cluster):
    return json.loads(cluster.kubectl("get", "installation", "default", "-o", "jsonpath=" + METHOD))


def test_a_merge_patch_must_take_the_written_default_away(installed):
    """The operator has written firstFound into it; with two methods it would end Degraded."""
    assert chosen(installed) == {"firstFound": True}
    assert patched(installed, {"kubernetes": "NodeInternalIP"}) == {"firstFound": True, "kubernetes": "NodeInternalIP"}
    assert patched(installed, {"firstFound": None}) == {"kubernetes": "NodeInternalIP"}
    installed.do("operator-crds")
    assert chosen(installed) == {"kubernetes": "NodeInternalIP"}
