"""What tigera's operator leaves in a cluster, without the operator: its custom resource definitions and an Installation."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from .calico import calico
from .control_plane import ControlPlane
from .shell import say, succeeds, wait_until
from .space import Space

GROUP = ".operator.tigera.io"
# The operator writes its defaults back into the Installation, under its program's name; what patches it later meets them there.
WRITTEN_BACK = """\
apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec:
  variant: Calico
  cni: {type: Calico}
  calicoNetwork:
    bgp: Enabled
    linuxDataplane: Iptables
    nodeAddressAutodetectionV4: {firstFound: true}
"""


def install(plane: ControlPlane) -> None:
    """Server-side, because the Installation's definition is longer than an annotation may be."""
    manifests = calico().place / "manifests"
    definitions = {_name(one): one for one in _documents(manifests / "operator-crds.yaml") if _name(one).endswith(GROUP)}
    plane.ask("apply", "--server-side", "-f", "-", stdin="\n---\n".join(definitions.values()))
    names = ["crd/" + name for name in sorted(definitions)]
    plane.ask("wait", "--for=condition=Established", "--timeout=120s", *names)
    (installation,) = (one for one in _documents(manifests / "custom-resources.yaml") if re.search(r"^kind: Installation$", one, re.M))
    # The API server learns of a new kind a moment after its definition is established.
    wait_until("the API server to serve Installations", lambda: "installations" in plane.ask("api-resources", "--api-group=" + GROUP[1:], "-o", "name"), 60)
    if not succeeds(*plane.kubectl("get", "installation", "default")):
        plane.ask("apply", "--server-side", "-f", "-", stdin=installation)
        plane.ask("apply", "--server-side", "--field-manager=operator", "-f", "-", stdin=WRITTEN_BACK)
    say("%d definitions of the operator's and the Installation are there" % len(names))


def commands(command) -> None:
    command("operator-crds", _install, "give the cluster the operator's definitions and an Installation, without the operator")


def _install(_arguments: argparse.Namespace, space: Space) -> None:
    install(ControlPlane(space))


def _documents(file: Path) -> list[str]:
    return re.split(r"^---$", file.read_text(), flags=re.M)


def _name(document: str) -> str:
    found = re.search(r"^  name: (\S+)$", document, re.M)
    return found.group(1) if found else ""
