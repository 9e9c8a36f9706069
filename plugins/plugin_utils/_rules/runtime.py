# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Container runtimes: do they answer, how fast, are they set up as the kubelet expects, and what would a restart cost?"""

from __future__ import annotations

from .._policy import threshold
from ._rule import by_hand, fail, passed, rule, skip, unknown, warn

SLOW = threshold("runtime_slow_s", 1.0, "Seconds within which a container runtime should answer a simple question.")
RESTARTS = threshold("runtime_restarts", 5, "Automatic restarts of a container runtime since it was last started by hand, from which on it is reported.")
FRESH = threshold("runtime_restarted_s", 1200, "Seconds after an automatic restart within which a runtime counts as still unstable.")
BLOCKED = threshold("runtime_blocked_tasks", 3, "Blocked tasks from which on a node counts as stuck, whatever they are.")
SHIM_AGE = threshold("runtime_shim_age_s", 300, "Seconds for which a shim may have no container: while a pod starts or ends it has none.")
JOURNAL_AGE = threshold("runtime_journal_age_s", 3600, "Seconds for which a complaint in a runtime's journal counts.")
DEADLINES = threshold("runtime_journal_deadlines", 5, "Lines with 'context deadline exceeded' in a runtime's journal, from which on they are reported.")

CONTAINERDS = ("containerd", "k3s", "rke2", "microk8s", "k0s")
NO_RUNTIME = "no container runtime is installed"
CRI_1, CRI_2 = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
ONE_NODE = "one node at a time, and cordon it first: "


@rule(
    "runtime.unresponsive",
    "A container runtime does not answer",
    needs=("runtime.daemons", "runtime.answers"),
    uses=("runtime.endpoints", "runtime.config", "kubelet.installed", "kubelet.config"),
    remedy=by_hand(ONE_NODE + "systemctl restart %(unit)s", disruptive=True),
)
def unresponsive(daemons, answers, endpoints, config, kubelet, settings, policy):
    """The kernel accepts connections for a daemon that is stuck, and systemd calls it active, so only an answer proves that it lives.
    Without one the kubelet can start, stop and watch nothing, and reports the node NotReady after a few minutes.
    """
    wanted = pointed_at(endpoints, kubelet, settings)
    if not daemons and not answers and not wanted:
        return skip(NO_RUNTIME)
    said = [silent(name, one, daemons.get(unit_of(name, daemons)), wanted) for name, one in answers.items()]
    said += [absent(name, unit, answers, config or {}, wanted) for name, unit in daemons.items()]
    seen = [one["socket"] for one in answers.values()] + [USUAL.get(name) for name in daemons]
    said += [missing(place, endpoints or []) for place in wanted if place not in seen]
    found = [one for one in said if one]
    return found or passed("; ".join("%s answers within %.3f s" % (name, one["seconds"]) for name, one in answers.items() if one["state"] == "answered"))


def silent(name, said, unit, wanted):
    """One that has a socket but gives no answer."""
    evidence = {
        "runtime": name,
        "socket": said["socket"],
        "unit": unit["unit"] if unit else "the runtime behind " + said["socket"],
        "waited_s": said["seconds"],
        "question": said["asked"],
    }
    if said["state"] == "hung":
        what = "greets but does not answer" if said.get("greeted") else "accepted the connection but gave no answer"
        return fail(
            "%s %s on %s within %.1f s (asked for %s)%s" % (name, what, said["socket"], said["seconds"], said["asked"], alive(unit)),
            **evidence,
        )
    if said["state"] == "refused" and (said["socket"] in wanted or (unit and unit["active"] in ("active", "activating"))):
        return fail("Nobody listens on %s%s" % (said["socket"], alive(unit)), **evidence)
    if said["state"] == "unclear":
        return unknown("what answers on %s does not speak as %s does" % (said["socket"], name), **evidence)
    return None


def absent(name, unit, answers, config, wanted):
    """One that systemd knows, but that has no socket."""
    evidence = {"runtime": name, "unit": unit["unit"], "active": unit["active"], "result": unit["result"], "restarts": unit["restarts"]}
    if unit["active"] == "failed" or (unit["active"] == "activating" and unit["sub"] == "auto-restart"):
        return fail("%(unit)s is %(active)s (%(result)s), after %(restarts)s automatic restarts" % evidence, **evidence)
    usual = USUAL.get(name)
    if name in answers or not usual:
        return None
    if unit["active"] == "inactive" and usual in wanted:
        return fail("%s is not running, but the kubelet is told to use %s" % (unit["unit"], usual), **evidence)
    elsewhere = [file["address"] for file in (config.get(name) or {}).get("files", []) if file.get("address", usual) != usual]
    if elsewhere:
        return unknown("%s listens on %s, which was not asked" % (name, plain(elsewhere[-1])), **evidence)
    if unit["active"] == "active":
        return fail("%s is active, but has no socket %s" % (unit["unit"], usual), socket=usual, **evidence)
    return None


USUAL = {"containerd": "/run/containerd/containerd.sock", "crio": "/run/crio/crio.sock"}


def missing(place, asked):
    """A socket that the kubelet is told to use, and that nobody has."""
    if place in asked or place in USUAL.values():
        remedy = by_hand("start the runtime that %(socket)s belongs to, or correct containerRuntimeEndpoint in the kubelet's configuration")
        return fail("The kubelet is told to use %s, but there is no such socket" % place, remedy, socket=place)
    return unknown("the kubelet is told to use %s, which was not asked" % place)


def alive(unit):
    """What systemd believes, where that is another story."""
    if not unit or unit["active"] != "active":
        return ""
    return ", although systemd calls %s active%s" % (unit["unit"], "" if unit["active_s"] is None else " since %s" % span(unit["active_s"]))


def span(seconds):
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return "%d %s" % (seconds // size, name)
    return "%d s" % seconds


def unit_of(name, daemons):
    """k3s and rke2 share a socket."""
    return "rke2" if name == "k3s" and "k3s" not in daemons else name


def pointed_at(endpoints, kubelet, settings):
    """The sockets that the kubelet, or an administrator's crictl, is told to use. The kubelet's default counts once it has joined."""
    found = list(endpoints or [])
    endpoint = (settings or {}).get("runtime_endpoint")
    told = (settings or {}).get("from", {}).get("runtime_endpoint", "default") != "default"
    if isinstance(endpoint, str) and (kubelet or {}).get("variant") == "kubelet" and (told or kubelet.get("joined")):
        found.append(endpoint)
    return list(dict.fromkeys(map(plain, found)))


def plain(endpoint):
    path = endpoint.partition("://")[2] if "://" in endpoint else endpoint
    return path[4:] if path.startswith("/var/run/") else path


@rule(
    "runtime.slow",
    "A container runtime answers slowly",
    severity="warning",
    needs="runtime.answers",
    remedy=by_hand("look at load.disk and load.saturated first"),
)
def slow(answers, policy):
    """Every step of a pod's start asks the runtime several times, so a second here is a minute there, and probes run out of time."""
    if not answers:
        return skip(NO_RUNTIME)
    found = []
    for name, said in answers.items():
        asked, seconds = max(said["took"].items(), key=lambda one: one[1], default=("", 0))
        if said["state"] == "answered" and seconds >= policy[SLOW]:
            message = "%s took %.2f s to answer %s; %g s would be slow already" % (name, seconds, asked, policy[SLOW])
            found.append(warn(message, runtime=name, socket=said["socket"], question=asked, seconds=seconds))
    return found


@rule(
    "runtime.docker_cannot_reach_containerd",
    "docker cannot reach containerd",
    needs=("runtime.answers", "runtime.daemons"),
    uses="runtime.journal",
    remedy=by_hand(ONE_NODE + "systemctl restart containerd && systemctl restart docker", disruptive=True),
)
def docker_cannot_reach_containerd(answers, daemons, journal, policy):
    """docker still answers a ping when it has lost containerd, but every listing or start of a container hangs.
    Pods then stay in Init or ContainerCreating without an error, and the node goes NotReady again and again.
    """
    docker = answers.get("docker")
    if not docker and "docker" not in daemons:
        return skip("docker is not installed")
    complaint = next((one for one in journal or [] if one["signature"] == "docker_lost_containerd" and recent(one, policy)), None)
    evidence = {"containerd": (answers.get("containerd") or {}).get("state", "absent")}
    if complaint:
        evidence.update(journal=complaint["line"], count=complaint["count"], age_s=complaint["age_s"])
    other = {"answered": "containerd itself answers", "hung": "containerd itself gives no answer either"}.get(
        evidence["containerd"], "containerd has no open socket"
    )
    return stuck(docker or {}, complaint, other, evidence) or regained(docker, complaint, other, evidence)


def stuck(docker, complaint, other, evidence):
    """docker as it is now."""
    if docker.get("state") == "hung":
        evidence.update(question=docker["asked"], waited_s=docker["seconds"])
        if docker["asked"] != "/_ping":
            message = "docker answers its ping, but not %s within %.1f s: it waits for containerd; %s"
            return fail(message % (docker["asked"], docker["seconds"], other), **evidence)
        if complaint or evidence["containerd"] != "answered":
            return fail("docker gives no answer within %.1f s; %s" % (docker["seconds"], other), **evidence)
    if "containerd" in docker.get("refusal", ""):
        return fail("docker answers with an error about containerd: %s; %s" % (docker["refusal"], other), refusal=docker["refusal"], **evidence)
    return None


def regained(docker, complaint, other, evidence):
    """docker as its journal tells it."""
    if complaint and (not docker or docker["state"] != "answered"):
        return fail("docker is down after it lost containerd (%s); %s" % (complaint["line"], other), **evidence)
    if complaint:
        return warn("docker lost containerd %(count)d times, the last time %(age_s)s s ago (%(journal)s), but answers now" % evidence, **evidence)
    return None


def recent(complaint, policy):
    return complaint.get("age_s") is None or complaint["age_s"] <= policy[JOURNAL_AGE]


@rule(
    "runtime.cri_disabled",
    "containerd offers no service to the kubelet",
    needs=("runtime.answers", "runtime.config"),
    uses=("runtime.daemons", "kubelet.version"),
    remedy=by_hand("take cri out of disabled_plugins in %(file)s, then systemctl restart containerd", disruptive=True),
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


def at_least(version, *parts):
    """Whether a version such as v1.36.3 is that or newer; false where there is none."""
    numbers = [int(word) for word in str(version or "").lstrip("v").split(".")[: len(parts)] if word.isdigit()]
    return bool(numbers) and numbers >= list(parts)


@rule(
    "runtime.restarts",
    "A container runtime keeps restarting",
    needs="runtime.daemons",
    remedy=by_hand("journalctl --unit=%(unit)s --since=-1h"),
)
def restarts(daemons, policy):
    """systemd starts a crashed runtime again, so that nobody notices until the crashes come faster than pods can start."""
    if not daemons:
        return skip(NO_RUNTIME)
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
        return skip(NO_RUNTIME)
    found = []
    for name in CONTAINERDS:
        unit = daemons.get(name)
        if unit and name != "microk8s" and unit["kill_mode"] not in (None, "process"):
            remedy = by_hand("systemctl edit %(unit)s: under [Service] write KillMode=process, and Delegate=yes")
            message = "%s has KillMode=%s: a restart kills the shims and all containers with them" % (unit["unit"], unit["kill_mode"])
            found.append(warn(message, remedy, unit=unit["unit"], kill_mode=unit["kill_mode"]))
    if "docker" in daemons and ("cri-dockerd" in daemons or (at_least(kubelet, 1) and not at_least(kubelet, 1, 24))):
        live = (answers.get("docker") or {}).get("live_restore", ((config or {}).get("docker") or {}).get("live_restore"))
        if not live:
            remedy = by_hand('write "live-restore": true into /etc/docker/daemon.json, then systemctl reload docker')
            found.append(
                warn("docker runs the pods without live-restore: its restart stops all of them", remedy, unit=daemons["docker"]["unit"], live_restore=live)
            )
    return found


@rule(
    "runtime.cgroup_driver",
    "Kubelet and runtime use different cgroup drivers",
    needs=("runtime.answers", "runtime.config", "kubelet.config", "kubelet.installed"),
    uses=("kubelet.version", "runtime.endpoints"),
    remedy=by_hand(
        "drain %(node)s, set both to systemd (%(file)s and cgroupDriver in /var/lib/kubelet/config.yaml), then reboot it", disruptive=True, reboot=True
    ),
)
def cgroup_driver(answers, config, settings, kubelet, version, endpoints, policy):
    """Two masters of one tree: under load the kubelet kills static pods every few minutes, or no pod starts at all.
    Since Kubernetes 1.31 the kubelet takes the driver from a runtime that tells it (containerd 2.0, CRI-O 1.28).
    """
    if kubelet["variant"] is None:
        return skip("the kubelet is not installed")
    if kubelet["variant"] != "kubelet":
        return skip("%s sets up its own runtime" % kubelet["variant"])
    name = serving(answers, config, pointed_at(endpoints, kubelet, settings))
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
        if one["plugin"] == plugin and one["runtime"] == (file.get("default_runtime") or "runc")
    ]
    if values:
        return ("systemd" if values[-1][0] else "cgroupfs"), values[-1][1]
    return ("cgroupfs" if old else None), (files[-1]["path"] if files else "/etc/containerd/config.toml")


@rule(
    "runtime.config_version",
    "containerd does not read what its configuration says",
    needs=("runtime.config", "runtime.answers"),
    remedy=by_hand("containerd config dump, compare with %(file)s, and move the settings to the tables that this version reads"),
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
    remedy=by_hand("drain %(node)s, upgrade containerd to 1.6.15 or newer, then kubectl uncordon %(node)s", disruptive=True),
)
def known_fault(answers, policy):
    """containerd 1.6.9 to 1.6.14 forget the addresses of sandboxes when they restart, so that the kubelet makes every pod anew
    that does not use the host's network.
    """
    found, versions = [], {name: str(one["version"]) for name, one in answers.items() if name in CONTAINERDS and one.get("version")}
    for name, version in versions.items():
        if at_least(version, 1, 6, 9) and not at_least(version.split("~")[0].split("-")[0], 1, 6, 15):
            found.append(
                warn("%s %s forgets pods' addresses at a restart: the kubelet would make every pod anew" % (name, version), runtime=name, version=version)
            )
    if found or versions:
        return found
    return unknown("containerd's version could not be asked") if set(answers) & set(CONTAINERDS) else skip("containerd is not installed")


@rule(
    "runtime.blocked_tasks",
    "Tasks wait for the kernel and do not get on",
    needs="runtime.processes",
    remedy=by_hand(
        "a restart of the runtime cannot end such a wait: find the disk or mount (cat /proc/%(pid)s/stack; dmesg), else drain %(node)s and reboot it",
        disruptive=True,
        reboot=True,
    ),
)
def blocked_tasks(processes, policy):
    """A task in state D cannot be killed. When it belongs to the runtime, containers neither start nor stop, and every tool that asks about them hangs."""
    blocked = processes["blocked"]
    if not blocked["count"]:
        return None
    ours = [
        task for task in blocked["tasks"] if task["name"].startswith(("containerd", "dockerd", "docker", "crio", "conmon", "runc", "kubelet", "k3s", "rke2"))
    ]
    first = (ours or blocked["tasks"])[0]
    names = ", ".join(
        "%s (%d%s)" % (task["name"], task["pid"], ", in " + task["waits_in"] if task["waits_in"] else "") for task in (ours or blocked["tasks"])[:4]
    )
    message = "%d task%s did not run once in %.1f s, waiting for the kernel: %s" % (blocked["count"], "s"[: blocked["count"] != 1], first["for_s"], names)
    verdict = fail if ours or blocked["count"] >= policy[BLOCKED] else warn
    return verdict(message, count=blocked["count"], pid=first["pid"], name=first["name"], waits_in=first["waits_in"])


@rule(
    "runtime.leaked_shims",
    "Shims run for containers that are gone",
    severity="warning",
    needs="runtime.processes",
    remedy=by_hand("drain %(node)s and reboot it; ending shims by hand may leave mounts behind", disruptive=True, reboot=True),
)
def leaked_shims(processes, policy):
    """Each holds memory, inotify instances and perhaps a container that nobody manages any more: a port or a volume stays taken."""
    shims = processes["shims"]
    old = [one for one in shims["without_container"] if one["age_s"] >= policy[SHIM_AGE]]
    if old:
        count = max(len(old), shims["without"] - (len(shims["without_container"]) - len(old)))
        shown = ", ".join("%.13s (%s, pid %d, %s old)" % (one["id"], one["namespace"], one["pid"], span(one["age_s"])) for one in old[:3])
        return warn(
            "%d of %d shims belong to no container: %s" % (count, shims["count"], shown), count=count, shims=shims["count"], id=old[0]["id"], pid=old[0]["pid"]
        )
    if not shims["count"]:
        return skip("no shim runs")
    return unknown("their runtime could not be asked what it runs") if shims["unasked"] else None


# what it means, what to do
COMPLAINTS = {
    "inotify": ("inotify instances or watches have run out", "sysctl -w fs.inotify.max_user_instances=8192, and write it to /etc/sysctl.d"),
    "disk_full": ("a file system or its inodes are full", "free space before any restart, or the runtime may not come up again: df -h; df -i"),
    "database": ("containerd's database is corrupt, as after a power failure", "stop containerd, move meta.db away, start it, pull the images again"),
    "config": ("the configuration is refused", "correct the file that the line names; journalctl --unit=containerd"),
    "name_reserved": ("an earlier create of the same pod still hangs", "find what it waits for (runtime.blocked_tasks), then restart the runtime"),
    "sandbox_image": ("the pause image cannot be had", "set the sandbox image to one that this node can pull, or load it"),
    "systemd_silent": ("systemd does not answer on D-Bus", "start fewer pods at once; where PID 1 is stuck, drain and reboot"),
    "address_pool": ("leftover docker networks have used up all address pools", "docker network prune"),
    "files": ("the runtime may open too few files", "systemctl show -p LimitNOFILE containerd, and raise it in a drop-in"),
    "pids": ("processes or threads have run out", "find the process with the most threads; sysctl kernel.pid_max"),
    "oom": ("the kernel killed a part of the runtime for want of memory", "see load.memory; restart docker after containerd was killed"),
    "deadline": ("calls take longer than their callers wait", "look at load.disk and load.saturated first"),
}


@rule("runtime.journal", "A runtime's journal complains", severity="warning", needs="runtime.journal", uses="runtime.daemons")
def journal(complaints, daemons, policy):
    """Known complaints with what they mean. The same picture at the pods has several causes; the runtime's own words often tell which."""
    if not daemons and not complaints:
        return skip(NO_RUNTIME)
    found = []
    for one in complaints:
        known = COMPLAINTS.get(one["signature"])
        if known and recent(one, policy) and (one["signature"] != "deadline" or one["count"] >= policy[DEADLINES]):
            when = "" if one["age_s"] is None else ", the last time %s ago" % span(max(0, one["age_s"]))
            message = "%s (%d times%s): %s" % (known[0], one["count"], when, one["line"])
            found.append(warn(message, by_hand(known[1].replace("%", "%%")), **one))
    return found
