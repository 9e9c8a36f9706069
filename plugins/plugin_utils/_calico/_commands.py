# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How a detection method is set, for each way in which Calico is installed."""

from __future__ import annotations

import json
import shlex

from ._startup import NAMES

FIELDS = {4: "nodeAddressAutodetectionV4", 6: "nodeAddressAutodetectionV6"}
ANNOTATIONS = {4: "IPv4Address", 6: "IPv6Address"}  # below projectcalico.org/, of a Node
KUBESPRAY = {4: "calico_ip_auto_method", 6: "calico_ip6_auto_method"}
CANAL = {4: "ipAutoDetectionMethod", 6: "ip6AutoDetectionMethod"}
ROLLS = "calico-node then restarts node by node"
TWO_METHODS_UNTIL = "3.26.3"  # RKE2's charts before this one added firstFound to whatever is said


def set_method(method, family, calico=None):
    """The command, or the file and what to write into it, that has calico-node use this method."""
    kind = ((calico or {}).get("install") or {}).get("kind")
    if kind == "rke2":
        return _rke2(method, family, calico)
    if kind == "operator" or (kind == "k3s" and calico.get("installation")):
        return "%s  # %s" % (_patch(method, family), ROLLS)
    if kind == "kubespray":
        return "%s  # and %s: %s in kubespray's inventory, or its next run takes it back; %s" % (
            _set_env(method, family, calico),
            KUBESPRAY[family],
            json.dumps(method),
            ROLLS,
        )
    if kind in ("manifest", "k3s"):
        return "%s  # and in the manifest, or applying it again takes it back; %s" % (_set_env(method, family, calico), ROLLS)
    return "install Calico with %s=%s and %s=%s (with the operator: spec.calicoNetwork.%s: %s)" % (
        NAMES[family],
        "autodetect",
        NAMES[family] + "_AUTODETECTION_METHOD",
        shlex.quote(method),
        FIELDS[family],
        json.dumps(chosen(method)),
    )


def _set_env(method, family, calico):
    name = NAMES[family]
    words = ["%s=autodetect" % name, "%s_AUTODETECTION_METHOD=%s" % (name, method)]
    return "kubectl -n %s set env daemonset/%s -c calico-node %s" % (*daemonset(calico), " ".join(map(shlex.quote, words)))


def daemonset(calico):
    """(namespace, name) of the DaemonSet that runs calico-node."""
    calico = calico or {}
    known = calico.get("daemonset") or {}
    namespace = known.get("namespace") or (calico.get("install") or {}).get("namespace") or "kube-system"
    return shlex.quote(str(namespace)), shlex.quote(str(known.get("name") or "calico-node"))


def chosen(method):
    """The Installation's words for a method."""
    kind, _equals, said = method.partition("=")
    return {
        "kubernetes-internal-ip": {"kubernetes": "NodeInternalIP"},
        "interface": {"interface": said},
        "skip-interface": {"skipInterface": said},
        "can-reach": {"canReach": said},
        "cidr": {"cidrs": said.split(",")},
    }.get(kind, {"firstFound": True})


def _patch(method, family):
    """The operator writes its default into the Installation, and a merge patch keeps what it does not name: two methods are one too many."""
    field = {**dict.fromkeys(("firstFound", "interface", "skipInterface", "canReach", "cidrs", "kubernetes")), **chosen(method)}
    patch = json.dumps({"spec": {"calicoNetwork": {FIELDS[family]: field}}})
    return "kubectl patch installations.operator.tigera.io default --type merge -p %s" % shlex.quote(patch)


def _rke2(method, family, calico):
    """RKE2 installs charts, whose values a HelmChartConfig changes for good."""
    canal = "canal" in daemonset(calico)[1]
    chart = "rke2-canal" if canal else "rke2-calico"
    field = rke2_field(method, calico.get("version"))
    values = {"calico": {CANAL[family]: method}} if canal else {"installation": {"calicoNetwork": {FIELDS[family]: field}}}
    where = "/var/lib/rancher/rke2/server/manifests/%s-config.yaml" % chart
    return "in the HelmChartConfig kube-system/%s (%s on a server) write into spec.valuesContent: %s  # %s" % (chart, where, json.dumps(values), ROLLS)


def rke2_field(method, version):
    """The Installation's words for a method, as the values of RKE2's chart need them."""
    return {**({"firstFound": False} if _older(version, TWO_METHODS_UNTIL) else {}), **chosen(method)}


def _older(version, than):
    numbers = [int(part) for part in str(version or "").split(".")[:3] if part.isdigit()]
    return bool(numbers) and numbers < [int(part) for part in than.split(".")]
