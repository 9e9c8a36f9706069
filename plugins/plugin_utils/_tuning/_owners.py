# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The object that a setting of calico-node belongs to; set anywhere else, somebody takes it back.

An owner knows a setting in its own words: ``{part: {name: value}}``, with None for what is not said. It tells what it holds
of such words (``kept``), and how they are written (``patch``).
"""

from __future__ import annotations

import copy
import json
import shlex
from urllib.parse import quote

import yaml

from .._calico._commands import CANAL, FIELDS, chosen, rke2_field
from .._calico._startup import NAMES
from .._sweep._values import at, entries, mapping, text
from .._sweep._workloads import CONTAINER, node_container

KINDS = ("firstFound", "interface", "skipInterface", "canReach", "cidrs", "kubernetes")
OVERRIDES = "calicoNodeDaemonSet"
CONTAINERS = ("spec", "template", "spec", "containers")
ABOUT = [
    *(("installation", "calicoNetwork", field) for field in FIELDS.values()),
    ("installation", OVERRIDES),
    *(("calico", name) for name in CANAL.values()),
]


class OwnerError(Exception):
    """Why a setting cannot be made there, and where it can."""


class DaemonSet:
    """Of a manifest: what is said there counts, until the manifest is applied again."""

    kind, how = "strategic-merge-patch", "strategic"
    again = "Write it into the manifest too, or applying that again takes it back"

    def __init__(self, namespace, name):
        self.namespace, self.name, self.resource = namespace, name, "daemonset"
        self.path = "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (quote(namespace, safe=""), quote(name, safe=""))
        self.words = "DaemonSet %s/%s" % (namespace, name)

    def read(self, door, seconds):
        return door.get(self.path, {}, seconds)

    def methods(self, _thing, methods):
        """The words for {family: method}; a method only counts where an address is looked for at every start."""
        said = {NAMES[family]: "autodetect" for family in methods}
        said.update({NAMES[family] + "_AUTODETECTION_METHOD": method for family, method in methods.items()})
        return {"env": {name: {"name": name, "value": value} for name, value in said.items()}}

    def probes(self, thing, probes):
        """The words for {probe: {field: number}}."""
        missing = [probe for probe in probes if not mapping(node_container(thing), probe)]
        if missing:
            raise OwnerError("calico-node has no %s, so there is nothing to set" % " and no ".join(missing))
        return {"probes": _flat(probes)}

    def kept(self, thing, like):
        container = node_container(thing)
        env = {text(one, "name"): one for one in entries(container, "env")}
        found = {part: {} for part in like}
        found.update({"env": {name: env.get(name) for name in like["env"]}} if "env" in like else {})
        found.update({"probes": {name: at(container, *name.split(".")) for name in like["probes"]}} if "probes" in like else {})
        return found

    def patch(self, thing, words):
        container = {"name": CONTAINER, **_nested(words.get("probes", {}))}
        if "env" in words:
            have = [text(one, "name") for one in entries(node_container(thing), "env")]
            gone = [name for name, entry in words["env"].items() if entry is None]
            order = [*have, *(name for name in words["env"] if name not in have)]
            container["$setElementOrder/env"] = [{"name": name} for name in order if name not in gone]
            container["env"] = [_entry(name, entry) for name, entry in words["env"].items()]
        return {"spec": {"template": {"spec": {"containers": [container]}}}}

    def shown(self, words):
        """Of the words, what anybody may see."""
        return words

    def command(self, body):
        where = ["-n", self.namespace] if self.namespace else []
        return shlex.join(["kubectl", *where, "patch", self.resource, self.name, "--type", self.how, "-p", json.dumps(body)])

    def notes(self, thing, words):
        """What a user should know about the place before the change."""
        notes = [self.again]
        env = {text(one, "name"): one for one in entries(node_container(thing), "env")}
        for name in words.get("env", {}):
            source = mapping(env.get(name), "valueFrom", "configMapKeyRef")
            if source:
                notes.append("%s came from the ConfigMap %s, and is now said in the DaemonSet itself" % (name, text(source, "name")))
        maps = [text(one, "configMapRef", "name") for one in entries(node_container(thing), "envFrom")]
        if "env" in words and maps:
            notes.append("It wins over what the ConfigMap %s says under the same names" % " or ".join(filter(None, maps)))
        return notes


class Installation(DaemonSet):
    """Of the operator, which makes the DaemonSet by it and takes back what anybody else sets there."""

    kind, how = "merge-patch", "merge"
    again = "Where the Installation comes from a chart or a repository, write it there too, or its next run takes it back"

    def __init__(self):
        self.namespace, self.name, self.resource = "", "default", "installations.operator.tigera.io"
        self.path = "/apis/operator.tigera.io/v1/installations/default"
        self.words = "Installation default"

    def methods(self, _thing, methods):
        return {"calicoNetwork": {FIELDS[family]: chosen(method) for family, method in methods.items()}}

    def probes(self, thing, probes):
        return {"spec": {OVERRIDES: _overridden(mapping(thing, "spec", OVERRIDES), probes)}}

    def kept(self, thing, like):
        found = {}
        if "calicoNetwork" in like:
            found["calicoNetwork"] = {name: _without_nulls(at(thing, "spec", "calicoNetwork", name)) for name in like["calicoNetwork"]}
        if "spec" in like:
            found["spec"] = {name: at(thing, "spec", name) for name in like["spec"]}
        return found

    def patch(self, thing, words):
        """A merge patch keeps what it does not name, and two methods are one too many."""
        spec = {}
        for name, field in words.get("calicoNetwork", {}).items():
            nulls = dict.fromkeys((*KINDS, *mapping(thing, "spec", "calicoNetwork", name)))
            spec.setdefault("calicoNetwork", {})[name] = None if field is None else {**nulls, **field}
        for name, whole in words.get("spec", {}).items():
            spec[name] = _difference(at(thing, "spec", name), whole)
        return {"spec": spec}

    def notes(self, _thing, _words):
        return [self.again]


class HelmChartConfig(DaemonSet):
    """Of RKE2, which installs charts whose values it changes for good."""

    kind, how = "merge-patch", "merge"
    again = "Where %s.yaml among the servers' manifests says something else, it takes this back"

    def __init__(self, chart, version=""):
        self.namespace, self.name, self.resource, self.version = "kube-system", chart, "helmchartconfig", version
        self.all = "/apis/helm.cattle.io/v1/namespaces/kube-system/helmchartconfigs"
        self.path = "%s/%s" % (self.all, chart)
        self.words = "HelmChartConfig kube-system/%s" % chart

    @property
    def canal(self):
        return self.name == "rke2-canal"

    def methods(self, thing, methods):
        if self.canal:
            return self._with(thing, {("calico", CANAL[family]): method for family, method in methods.items()})
        fields = {FIELDS[family]: rke2_field(method, self.version) for family, method in methods.items()}
        return self._with(thing, {("installation", "calicoNetwork", name): field for name, field in fields.items()})

    def probes(self, thing, probes):
        if self.canal:
            raise OwnerError("RKE2's chart of canal lets nobody change a probe of calico-node")
        path = ("installation", OVERRIDES)
        return self._with(thing, {path: _overridden(mapping(self._values(thing), *path), probes)})

    def _with(self, thing, values):
        """The text of the values with these at their paths."""
        before, known = text(thing, "spec", "valuesContent"), self._values(thing)
        wanted = copy.deepcopy(known)
        for (*way, last), value in values.items():
            place = wanted
            for step in way:
                if not isinstance(place.get(step), dict):
                    place[step] = {}
                place = place[step]
            place[last] = value
        return {"spec": {"valuesContent": before if wanted == known else yaml.safe_dump(wanted, sort_keys=False)}}

    def _values(self, thing):
        try:
            known = yaml.safe_load(text(thing, "spec", "valuesContent")) or {}
        except yaml.YAMLError as error:
            raise OwnerError("spec.valuesContent of %s is no YAML: %s" % (self.words, str(error).splitlines()[0])) from None
        if not isinstance(known, dict):
            raise OwnerError("spec.valuesContent of %s is no mapping" % self.words)
        return known

    def kept(self, thing, like):
        return {"spec": {name: None if thing is None else text(thing, "spec", name) for name in like["spec"]}}

    def patch(self, _thing, words):
        return {"spec": dict(words["spec"])}

    def shown(self, words):
        """Values may hold passwords, so only those are shown that this is about."""
        values = self._values({"spec": words["spec"]})
        return {".".join(path): at(values, *path) for path in ABOUT if at(values, *path) is not None}

    def command(self, _body):
        """Nor are they printed in a command."""
        return ""

    def new(self, body):
        """The object where there is none yet."""
        metadata = {"namespace": self.namespace, "name": self.name, **body.get("metadata", {})}
        return {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChartConfig", **body, "metadata": metadata}

    def notes(self, thing, _words):
        notes = [self.again % (self.name + "-config")]
        if "#" in text(thing, "spec", "valuesContent"):
            notes.append("Comments in its valuesContent are lost; the text as it was is kept in the annotation")
        return notes


def owner(calico, even_on_kubespray=False):
    """Where this cluster's calico-node is set."""
    kind = ((calico or {}).get("install") or {}).get("kind")
    known = (calico or {}).get("daemonset") or {}
    if kind in (None, "none") or not known.get("name"):
        raise OwnerError("no DaemonSet with a container calico-node was found in the cluster")
    if kind == "operator" or (kind == "k3s" and calico.get("installation")):
        return Installation()
    if kind == "rke2":
        return HelmChartConfig("rke2-canal" if "canal" in known["name"] else "rke2-calico", calico.get("version"))
    if kind == "kubespray" and not even_on_kubespray:
        return None
    return DaemonSet(known["namespace"], known["name"])


def _entry(name, entry):
    """A strategic merge keeps what is not named: a value beside a source is refused."""
    return {"name": name, "$patch": "delete"} if entry is None else {"value": None, "valueFrom": None, **entry}


def _flat(probes):
    return {"%s.%s" % (probe, field): value for probe, fields in probes.items() for field, value in fields.items()}


def _nested(flat):
    found = {}
    for name, value in flat.items():
        probe, field = name.split(".")
        found.setdefault(probe, {})[field] = value
    return found


def _overridden(whole, probes):
    """What overrides the operator's DaemonSet, with these values of calico-node's probes."""
    whole = copy.deepcopy(whole)
    place = whole
    for step in CONTAINERS[:-1]:
        place = place.setdefault(step, {})
    containers = place.setdefault(CONTAINERS[-1], [])
    own = next((one for one in containers if text(one, "name") == CONTAINER), None)
    if own is None:
        own = {"name": CONTAINER}
        containers.append(own)
    for probe, fields in probes.items():
        own[probe] = {**mapping(own, probe), **fields}
    return whole


def _difference(old, new):
    """The merge patch that makes the one the other."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {key: _difference(old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)}


def _without_nulls(thing):
    return {key: value for key, value in thing.items() if value is not None} if isinstance(thing, dict) else thing
