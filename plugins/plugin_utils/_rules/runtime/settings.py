# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Is each runtime set up as the kubelet expects, and what would its restart cost?"""

from __future__ import annotations

from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, skip, unknown, warn
from ._words import CONTAINERDS, NO_RUNTIME, NO_UNIT, at_least, pointed_at, span

RESTARTS = threshold("runtime_restarts", 5, "Automatic restarts of a container runtime since it was last started by hand, from which on it is reported.")
FRESH = threshold("runtime_restarted_s", 1200, "Seconds after an automatic restart within which a runtime counts as still unstable.")
CRI_1, CRI_2 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"


@rule(
    "runtime.cri_disabled",
    "containerd offers no service to the kubelet",
    needs=("runtime.answers", "runtime.config"),
    uses=("runtime.daemons", "kubelet.version"),
    remedy=by_hand("${EDITOR:-vi} %(file)s && systemctl restart containerd  # take cri out of disabled_plugins", disruptive=True),
)
def cri_disabled(answers, config, daemons, kubelet, policy):
    """docker's packages of containerd switch the CRI plugin off. kubeadm and the kubelet then say
    'unknown service runtime.v1.RuntimeService', although containerd runs and answers ctr.
    """
    said = answers.get("containerd")
    disabled = [file["path"] for file in (config.get("containerd") or {}).get("files", []) if off(file)]
    if not said and "containerd" not in (daemons or {}) and not disabled:
        return skip("containerd is not installed")
    others = [name for name, one in answers.items() if name != "containerd" and one["state"] == "answered" and one.get("api")]
    if others:
        return skip("the kubelet is served by %s" % " and ".join(others))
    if "docker" in (daemons or {}) and at_least(kubelet or policy.kubernetes_version, 0, 1) and not at_least(kubelet or policy.kubernetes_version, 1, 24):
        return skip("a kubelet before 1.24 uses docker itself")
    evidence = {"file": disabled[-1] if disabled else "/etc/containerd/config.toml"}
    if not said or said["state"] != "answered" or "api" not in said:
        return fail("disabled_plugins names cri in %(file)s" % evidence, **evidence) if disabled else None
    return offered(said, disabled, evidence)


def offered(said, disabled, evidence):
    """What containerd answers to a kubelet now, and after its next start."""
    if said["api"] == "v1alpha2":
        message = "containerd %s only offers the old v1alpha2 service; a kubelet since 1.26 needs v1 (containerd 1.6 or newer)" % said.get("version")
        return fail(message, by_hand("upgrade containerd", disruptive=True), **evidence)
    if said["api"] is None:
        why = "disabled_plugins names cri in %(file)s" % evidence if disabled else "its CRI plugin did not load: see ctr plugins ls"
        return fail("containerd answers, but has no CRI service: %s" % why, **evidence)
    if disabled:
        return warn("CRI answers now, but will be gone after containerd's next start: disabled_plugins names cri in %(file)s" % evidence, **evidence)
    return None


def off(file):
    return bool({"cri", CRI_1, CRI_2} & set(file["disabled"]))


@rule(
    "runtime.restarts",
    "A container runtime keeps restarting",
    needs="runtime.daemons",
    remedy=by_hand("journalctl --unit=%(unit)s --since=-1h"),
)
def restarts(daemons, policy):
    """systemd starts a crashed runtime again, so that nobody notices until the crashes come faster than pods can start."""
    if not daemons:
        return skip(NO_UNIT)
    found = []
    for unit in daemons.values():
        count, age = unit["restarts"] or 0, unit["active_s"]
        if count >= policy[RESTARTS]:
            fresh = age is not None and age < policy[FRESH]
            message = "%s was restarted %d times by systemd%s" % (unit["unit"], count, "" if age is None else ", the last time %s ago" % span(age))
            found.append((fail if fresh else warn)(message, unit=unit["unit"], restarts=count, active_s=age))
    return found


@rule(
    "runtime.restart_kills_pods",
    "Restarting the runtime would end its containers",
    severity="warning",
    needs=("runtime.daemons", "runtime.answers"),
    uses=("runtime.config", "kubelet.version"),
)
def restart_kills_pods(daemons, answers, config, kubelet, policy):
    """With KillMode=process containers outlive containerd; docker needs live-restore for that.
    Where it is otherwise, an upgrade of the package stops every pod of the node, so that it has to be drained before.
    """
    if not daemons:
        return skip(NO_UNIT)
    found = []
    for name in CONTAINERDS:
        unit = daemons.get(name)
        if unit and name != "microk8s" and unit["kill_mode"] not in (None, "process"):
            remedy = by_hand("systemctl edit %(unit)s  # under [Service] write KillMode=process and Delegate=yes")
            message = "%s has KillMode=%s: a restart kills the shims and all containers with them" % (unit["unit"], unit["kill_mode"])
            found.append(warn(message, remedy, unit=unit["unit"], kill_mode=unit["kill_mode"]))
    if "docker" in daemons and ("cri-dockerd" in daemons or (at_least(kubelet, 1) and not at_least(kubelet, 1, 24))):
        live = (answers.get("docker") or {}).get("live_restore", ((config or {}).get("docker") or {}).get("live_restore"))
        if not live:
            remedy = by_hand('${EDITOR:-vi} /etc/docker/daemon.json && systemctl reload docker  # write "live-restore": true')
            found.append(
                warn("docker runs the pods without live-restore: its restart stops all of them", remedy, unit=daemons["docker"]["unit"], live_restore=live)
            )
    return found


@rule(
    "runtime.cgroup_driver",
    "Kubelet and runtime use different cgroup drivers",
    needs=("runtime.answers", "runtime.config", "kubelet.config", "kubelet.installed"),
    uses=("kubelet.version", "runtime.endpoints", "runtime.crictl"),
    remedy=by_hand(
        "drain %(node)s, set both to systemd (%(file)s and cgroupDriver in /var/lib/kubelet/config.yaml), then reboot it", disruptive=True, reboot=True
    ),
)
def cgroup_driver(answers, config, settings, kubelet, version, endpoints, crictl, policy):
    """Two masters of one tree: under load the kubelet kills static pods every few minutes, or no pod starts at all.
    Since Kubernetes 1.31 the kubelet takes the driver from a runtime that tells it (containerd 2.0, CRI-O 1.28).
    """
    if kubelet["variant"] is None:
        return skip("the kubelet is not installed")
    if kubelet["variant"] != "kubelet":
        return skip("%s sets up its own runtime" % kubelet["variant"])
    name = serving(answers, config, pointed_at(endpoints, kubelet, settings) or crictl or [])
    if name is None:
        return skip(NO_RUNTIME)
    said = answers.get(name) or {}
    if name != "docker" and said.get("cgroup_driver") and at_least(version, 1, 31):
        return skip("the kubelet takes %s from %s" % (said["cgroup_driver"], name))
    return compare(name, driver_of(name, said, config), settings, kubelet["joined"])


def compare(name, runtime, settings, joined):
    wanted, (driver, file) = settings.get("cgroup_driver"), runtime
    if wanted is None or driver is None:
        return unknown("%s does not tell its cgroup driver" % ("the kubelet's configuration" if wanted is None else name))
    if not joined and settings.get("from", {}).get("cgroup_driver", "default") == "default":
        wanted = "systemd"  # kubeadm writes that when the node joins
    evidence = {"runtime": name, "file": file, "kubelet": wanted, "driver": driver}
    if wanted != driver:
        return fail("The kubelet uses %(kubelet)s, but %(runtime)s uses %(driver)s (%(file)s)" % evidence, **evidence)
    return passed("both use %s" % driver, **evidence)


def serving(answers, config, wanted):
    """The runtime that the kubelet uses: the one that it is pointed at, else the only one there is."""
    pointed = [name for name, one in answers.items() if one["socket"] in wanted]
    offering = [name for name, one in answers.items() if one.get("api")]
    there = [name for name in ("containerd", "crio", "docker") if name in config or name in answers]
    name = (pointed or offering or there or [None])[0]
    return "docker" if name == "cri-dockerd" else name


def driver_of(name, said, config):
    """(driver, where that is written). Nothing is assumed where containerd 2 may choose by itself."""
    if said.get("cgroup_driver"):
        return said["cgroup_driver"], "as it says itself"
    settings = config.get(name) or {}
    if name == "docker":
        return settings.get("cgroup_driver"), settings.get("path")
    if name == "crio":
        return settings.get("cgroup_manager", "systemd") if settings else None, (settings.get("files") or ["/etc/crio/crio.conf"])[-1]
    files = settings.get("files", [])
    old = bool(said.get("version")) and not at_least(said["version"], 2)
    plugin = CRI_1 if old or not any(file["version"] in (3, 4) for file in files) else CRI_2
    values = [
        (one["value"], file["path"])
        for file in files
        for one in file["systemd_cgroup"]
        if one["plugin"] == ("cri" if file["version"] == 1 else plugin) and one["runtime"] == (file.get("default_runtime") or "runc")
    ]
    if values:
        return ("systemd" if values[-1][0] else "cgroupfs"), values[-1][1]
    return ("cgroupfs" if old else None), (files[-1]["path"] if files else "/etc/containerd/config.toml")


@rule(
    "runtime.config_version",
    "containerd does not read what its configuration says",
    needs=("runtime.config", "runtime.answers"),
    remedy=by_hand("containerd config dump  # compare with %(file)s, and move the settings to the tables that this version reads"),
)
def config_version(config, answers, policy):
    """containerd 2 moved its CRI settings to other tables, and ignores the old ones without a word in a file that says version 3.
    A file that is newer than containerd keeps it from starting.
    """
    looked, found = [name for name in CONTAINERDS if name in config], []
    for name in looked:
        version = (answers.get(name) or {}).get("version")
        for file in config[name]["files"]:
            found += [one for one in (too_new(file, version), misplaced(file, version)) if one]
    return found if looked else skip("containerd has no configuration file")


def too_new(file, version):
    most = next((most for since, most in (((2, 3), 4), ((2, 0), 3), ((1, 3), 2)) if at_least(version, *since)), None)
    if most and isinstance(file["version"], int) and file["version"] > most:
        message = "%s says version %d, but containerd %s reads at most %d: it will not start again" % (file["path"], file["version"], version, most)
        return fail(message, file=file["path"], version=file["version"], containerd=version)
    return None


def misplaced(file, version):
    """Only settings that matter: the cgroup driver and the sandbox image."""
    old = bool(version) and not at_least(version, 2)
    wrong = {1: (CRI_1, CRI_2), 2: (CRI_2,) if old else (), 3: (CRI_1, "cri"), 4: (CRI_1, "cri")}.get(file["version"], ())
    lost = ["SystemdCgroup" for one in file["systemd_cgroup"] if one["plugin"] in wrong] + [
        "the sandbox image" for one in file["sandbox_image"] if one["plugin"] in wrong
    ]
    if not lost:
        return None
    evidence = {"file": file["path"], "version": file["version"], "settings": sorted(set(lost))}
    message = "%s says version %s, but sets %s under %s, which that version does not read"
    plugins = [name for name in file["plugins"] if name in wrong]
    return warn(message % (file["path"], file["version"], " and ".join(evidence["settings"]), " and ".join(plugins)), **evidence)


@rule(
    "runtime.known_fault",
    "This version of containerd has a known fault",
    severity="warning",
    needs="runtime.answers",
    remedy=by_hand("kubectl drain %(node)s --ignore-daemonsets  # then upgrade containerd to 1.6.15 or newer, and uncordon the node", disruptive=True),
)
def known_fault(answers, policy):
    """containerd 1.6.9 to 1.6.14 forget the addresses of sandboxes when they restart, so that the kubelet makes every pod anew
    that does not use the host's network.
    """
    found, versions = [], {name: str(one["version"]) for name, one in answers.items() if name in CONTAINERDS and one.get("version")}
    for name, version in versions.items():
        if at_least(version, 1, 6, 9) and not at_least(version, 1, 6, 15):
            found.append(
                warn("%s %s forgets pods' addresses at a restart: the kubelet would make every pod anew" % (name, version), runtime=name, version=version)
            )
    if found or versions:
        return found
    return unknown("containerd's version could not be asked") if set(answers) & set(CONTAINERDS) else skip("containerd is not installed")
