"""The operator's Installation, as a patch meets it in a api."""

from __future__ import annotations

import json

import pytest

METHOD = "{.spec.calicoNetwork.nodeAddressAutodetectionV4}"


@pytest.fixture
def installed(api):
    api.do("operator-crds")
    yield api
    api.kubectl("delete", "installation", "default")


def patched(api, method):
    patch = {"spec": {"calicoNetwork": {"nodeAddressAutodetectionV4": method}}}
    api.kubectl("patch", "installation", "default", "--type=merge", "-p", json.dumps(patch))
    return chosen(api)


def chosen(api):
    return json.loads(api.kubectl("get", "installation", "default", "-o", "jsonpath=" + METHOD))


def test_a_merge_patch_must_take_the_written_default_away(installed):
    """The operator has written firstFound into it; with two methods it would end Degraded."""
    assert chosen(installed) == {"firstFound": True}
    assert patched(installed, {"kubernetes": "NodeInternalIP"}) == {"firstFound": True, "kubernetes": "NodeInternalIP"}
    assert patched(installed, {"firstFound": None}) == {"kubernetes": "NodeInternalIP"}
    installed.do("operator-crds")
    assert chosen(installed) == {"kubernetes": "NodeInternalIP"}
