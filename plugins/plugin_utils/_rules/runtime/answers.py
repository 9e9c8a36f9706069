# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Does each runtime answer, how fast, and can docker reach containerd?"""

from __future__ import annotations

from ..._policy import threshold
from .._rule import by_hand, fail, passed, repaired_by, rule, skip, unknown, warn
from ._words import NO_RUNTIME, ONE_NODE, USUAL, plain, pointed_at, recent, span

SLOW = threshold("runtime_slow_s", 1.0, "Seconds within which a container runtime should answer a simple question.")


@rule(
    "runtime.unresponsive",
    "A container runtime does not answer",
    needs=("runtime.daemons", "runtime.answers"),
    uses=("runtime.endpoints", "runtime.config", "kubelet.installed", "kubelet.config"),
    remedy=repaired_by("repair_runtime", "systemctl restart %(unit)s" + ONE_NODE),
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
    if not found and daemons and not _awake(answers):
        remedy = by_hand("systemctl start %(unit)s")  # nobody needs it yet, so no repair starts it
        return [
            warn("%(unit)s is %(active)s, and no other runtime answers" % unit, remedy, unit=unit["unit"], active=unit["active"]) for unit in daemons.values()
        ]
    return found or passed("; ".join("%s answers within %.3f s" % (name, one["seconds"]) for name, one in answers.items() if one["state"] == "answered"))


def _awake(answers):
    """Those whose daemon runs, or might: for the others systemd listens, and nobody has asked yet."""
    return {name: said for name, said in answers.items() if said["state"] != "asleep"}


def silent(name, said, unit, wanted):
    """One that has a socket but gives no answer."""
    evidence = {"runtime": name, "socket": said["socket"], "waited_s": said["seconds"], "question": said["asked"]}
    evidence["unit"] = unit["unit"] if unit else None
    remedy = None if unit else by_hand("restart the runtime that listens on %(socket)s" + ONE_NODE, disruptive=True)
    if said["state"] == "hung":
        what = "greets but does not answer" if said.get("greeted") else "accepted the connection but gave no answer"
        return fail(
            "%s %s on %s within %.1f s (asked for %s)%s" % (name, what, said["socket"], said["seconds"], said["asked"], alive(unit)),
            remedy,
            **evidence,
        )
    if said["state"] == "refused" and (said["socket"] in wanted or (unit and unit["active"] in ("active", "activating"))):
        return fail("Nobody listens on %s%s" % (said["socket"], alive(unit)), remedy, **evidence)
    if said["state"] == "unclear":
        return unknown("what answers on %s does not speak as %s does" % (said["socket"], name), **evidence)
    return None


def absent(name, unit, answers, config, wanted):
    """One that systemd knows, but that has no socket."""
    evidence = {"runtime": name, "unit": unit["unit"], "active": unit["active"], "result": unit["result"], "restarts": unit["restarts"]}
    if unit["active"] == "failed" or (unit["active"] == "activating" and unit["sub"] == "auto-restart"):
        return fail("%(unit)s is %(active)s (%(result)s), after %(restarts)s automatic restarts" % evidence, **evidence)
    usual = USUAL.get(name)
    files = (config.get(name) or {}).get("files", []) if name == "containerd" else []
    elsewhere = [plain(file["address"]) for file in files if file.get("address", usual) != usual]
    if name in answers or not usual or (elsewhere and elsewhere[-1] in [one["socket"] for one in answers.values()]):
        return None
    if unit["active"] == "inactive" and usual in wanted:
        return fail("%s is not running, but the kubelet is told to use %s" % (unit["unit"], usual), **evidence)
    if elsewhere:
        return unknown("%s listens on %s, which was not asked" % (name, elsewhere[-1]), **evidence)
    if unit["active"] == "active":
        return fail("%s is active, but has no socket %s" % (unit["unit"], usual), socket=usual, **evidence)
    return None


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


def unit_of(name, daemons):
    """k3s and rke2 share a socket."""
    return "rke2" if name == "k3s" and "k3s" not in daemons else name


@rule(
    "runtime.slow",
    "A container runtime answers slowly",
    severity="warning",
    needs="runtime.answers",
    remedy=by_hand("look at load.disk and load.saturated first"),
)
def slow(answers, policy):
    """Every step of a pod's start asks the runtime several times, so a second here is a minute there, and probes run out of time."""
    if not _awake(answers):
        return skip("no container runtime runs" if answers else NO_RUNTIME)
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
    remedy=repaired_by("repair_runtime", "systemctl restart containerd && systemctl restart docker" + ONE_NODE),
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
    if docker and docker["state"] == "asleep" and not complaint:
        return skip("docker is not running")
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
        remedy = by_hand("journalctl --unit=containerd --unit=docker --since=-1h  # why containerd was away")
        return warn("docker lost containerd %(count)d times, the last time %(age_s)s s ago (%(journal)s), but answers now" % evidence, remedy, **evidence)
    return None
