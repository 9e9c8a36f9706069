# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's programs on one node: is it meant to run here, does it, and for how long?"""

from __future__ import annotations

from ....module_utils._bridges import behind
from ... import _cluster

NODE = ("calico-node", "calico", "calico-felix")
WITHOUT_BGP = ("vxlan", "none")


def absent(signs, processes, cni):
    """Why nothing is to be said about Calico here, or None."""
    if not signs:
        return "Calico is not on this node"
    if not of_node(processes) and not chosen(cni):
        return "Calico left files here, but neither do its programs run nor does the runtime take its CNI configuration"
    return None


def of_node(processes):
    """The programs of calico-node's container."""
    return [one for one in processes["programs"] if one["name"] in NODE]


def chosen(cni):
    """Whether the runtime takes Calico's CNI configuration; not denied where the files may not be read."""
    if cni is None or cni.get("unread"):
        return True
    return any("calico" in conf["types"] for one in cni["directories"] for conf in behind(one))


def felix_age(processes):
    """For how long Felix has been running, in seconds; None where it does not run."""
    ages = [one["age_s"] for one in of_node(processes) if one["does"] == "felix"]
    return max((age or 0.0 for age in ages), default=None)


def startup_age(processes):
    """For how long start-up has been running; it is over before Felix begins."""
    ages = [one["age_s"] for one in of_node(processes) if one["does"].startswith("startup") or "allocate-tunnel-addrs-run-once" in one["does"]]
    return max((age or 0.0 for age in ages), default=None)


def backend(processes):
    """bird, vxlan or none; None where calico-node's environment could not be read."""
    env = processes["env"]
    return None if env is None else env.get("CALICO_NETWORKING_BACKEND") or "bird"


def pod(logs):
    """The names of the node's calico-node pod, as far as its logs tell them."""
    named = next((one["pod"] for one in logs or () if one.get("pod")), None)
    return dict(zip(("namespace", "pod"), named.split("/", 1))) if named else {}


def last_words(logs):
    """What the newest calico-node said last."""
    said = [one for one in logs or () if one["container"] == "calico-node" and one["line"]]
    if not said:
        return ""
    newest = max(said, key=lambda one: one["attempt"])
    ago = "" if newest["ended_s"] is None else " (%s ago)" % _cluster.span(max(0, newest["ended_s"]))
    return "; its log ends%s with: %s" % (ago, newest["line"])
