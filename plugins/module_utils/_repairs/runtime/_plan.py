# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What is ill, what the least is that heals it, what that would cost, and why it is better left: of facts alone."""

from __future__ import annotations

import re
from collections import namedtuple

from ._look import NEEDED_BYTES, NEEDED_INODES, ROOMS, ROWS

CONTINUE, RESTART, START = "continue", "restart", "start"
STANDS_ON = {"docker": ("containerd",), "cri-dockerd": ("containerd", "docker")}
USUAL = ("containerd", "crio")  # those that always have their usual socket, unless they are told otherwise
LOST = "docker_lost_containerd"
HOPELESS = {"config": "its configuration is refused", "database": "its database is corrupt"}  # of the journal's complaints
FRESH_S = 900  # for so long what a journal says is about now

Ill = namedtuple("Ill", "runtime unit socket why")
Step = namedtuple("Step", "act unit runtime why unless_well pids")
Plan = namedtuple("Plan", "ill steps kills_pods refusals")


def plan(facts):
    """The steps in their order, why containers would end with them, and the reasons not to begin at all."""
    found = ill(facts)
    steps = _steps(facts, found)
    return Plan(found, steps, kills_pods(facts, steps), refusals(facts, found, steps))


# -- what is ill ---------------------------------------------------------------------------------------------------------


def ill(facts):
    """Each runtime that does not answer as it should, those first that others stand on."""
    daemons, by_socket = facts["runtime"].get("daemons") or {}, {one["socket"]: one for one in (facts["runtime"].get("answers") or {}).values()}
    found = []
    for name, row in ROWS.items():
        unit, said = daemons.get(name), by_socket.pop(row["socket"], None) if _is_of(name, daemons) else None
        why = _trouble(facts, name, unit, said)
        if why:
            found.append(Ill(name, unit["unit"] if unit else None, row["socket"], why))
    return found + [_elsewhere(facts, said) for said in by_socket.values() if said["state"] == "hung"]


def _is_of(name, daemons):
    """k3s and rke2 share a socket."""
    return not (name == "k3s" and "k3s" not in daemons and "rke2" in daemons)


def _elsewhere(facts, said):
    """One that was asked at a socket of its own: containerd's, where its configuration says so."""
    files = ((facts["runtime"].get("config") or {}).get("containerd") or {}).get("files", [])
    named = [re.sub(r"^(unix://)?(/var)?(?=/run/)", "", file["address"]) for file in files if file.get("address")]
    unit = (facts["runtime"].get("daemons") or {}).get("containerd")
    ours = unit is not None and named[-1:] == [said["socket"]]
    return Ill("containerd" if ours else "other", unit["unit"] if ours else None, said["socket"], _silence(said))


def _trouble(facts, name, unit, said):
    """What is wrong with one; None where nothing is, or nothing that a restart could heal."""
    if unit and (unit["active"] == "failed" or (unit["active"] == "activating" and unit["sub"] == "auto-restart")):
        return "%(unit)s is %(active)s (%(result)s), after %(restarts)s automatic restarts" % unit
    if said and (said["state"] == "hung" or "containerd" in said.get("refusal", "")):
        return _silence(said)
    return _absence(facts, name, unit, said) if unit else None


def _absence(facts, name, unit, said):
    """One that systemd knows, and that nobody can talk to."""
    if said and said["state"] == "refused" and unit["active"] in ("active", "activating"):
        return "nobody listens on %s, although systemd calls %s %s" % (said["socket"], unit["unit"], unit["active"])
    if unit["active"] == "inactive":
        return _missed(facts, name, unit)
    if said is None and unit["active"] == "active" and name in USUAL and not _told_otherwise(facts, name):
        return "%s is active, but has no socket %s" % (unit["unit"], ROWS[name]["socket"])
    return None


def _silence(said):
    if said["state"] != "hung":
        return "it answers with an error about containerd: %(refusal)s" % said
    if said["asked"] and said["asked"].startswith("/") and said["asked"] != "/_ping":
        return "it answers a ping, but not %s within %.1f s: it waits for containerd" % (said["asked"], said["seconds"])
    how = "greets but does not answer" if said.get("greeted") else "accepted the connection but gave no answer"
    return "it %s on %s within %.1f s (asked for %s)" % (how, said["socket"], said["seconds"], said["asked"])


def _missed(facts, name, unit):
    """A runtime that is stopped is ill only where the kubelet needs it."""
    wanted, daemons = _of_kubelet(facts), facts["runtime"].get("daemons") or {}
    lost = any(one["signature"] == LOST and _is_recent(one) for one in facts["runtime"].get("journal") or [])
    needed_by_cri = "cri-dockerd" in daemons and wanted == ROWS["cri-dockerd"]["socket"]
    if wanted == ROWS[name]["socket"]:
        return "%s is not running, but the kubelet is told to use %s" % (unit["unit"], wanted)
    if name == "docker" and (needed_by_cri or lost):
        return "%s is not running, but %s" % (unit["unit"], "cri-dockerd needs it" if needed_by_cri else "was until it lost containerd")
    return None


def _of_kubelet(facts):
    """The socket that a kubelet of a cluster uses."""
    installed, config = facts["kubelet"].get("installed") or {}, facts["kubelet"].get("config") or {}
    endpoint = config.get("runtime_endpoint")
    if installed.get("variant") != "kubelet" or not installed.get("joined") or not isinstance(endpoint, str):
        return None
    return re.sub(r"^(unix://)?(/var(?=/run/))?", "", endpoint)


def _told_otherwise(facts, name):
    files = ((facts["runtime"].get("config") or {}).get(name) or {}).get("files", [])
    return any(isinstance(file, dict) and file.get("address", ROWS[name]["socket"]) != ROWS[name]["socket"] for file in files)


def _is_recent(complaint):
    return complaint.get("age_s") is not None and complaint["age_s"] <= FRESH_S


# -- what heals it -------------------------------------------------------------------------------------------------------


def _steps(facts, found):
    """Processes that are only stopped go on, and then everything is looked at anew; else each unit by itself, then what stands on it."""
    units, daemons = facts["here"]["units"], facts["runtime"].get("daemons") or {}
    known = [one for one in found if one.unit]
    stopped = {one: [pid for pid, daemon in units[one.unit]["daemons"].items() if daemon["state"] == "T"] for one in known if one.unit in units}
    going_on = [Step(CONTINUE, one.unit, one.runtime, "%s (it is stopped by a signal)" % one.why, False, pids) for one, pids in stopped.items() if pids]
    if going_on:
        return going_on
    steps = []
    for one in known:
        act = START if daemons[one.runtime]["active"] in ("failed", "inactive") else RESTART
        behind = any(step.runtime in STANDS_ON.get(one.runtime, ()) for step in steps)
        steps.append(Step(act, one.unit, one.runtime, one.why, behind, []))
        steps += _stopped_along(daemons, steps, found)
    return steps + _kubelet(facts, steps)


def _stopped_along(daemons, steps, found):
    """docker's units of some years are stopped together with containerd, and not all of them are started again."""
    docker = daemons.get("docker")
    if steps[-1].runtime != "containerd" or not docker or docker["active"] != "active" or not docker["bound_to_containerd"]:
        return []
    if any(one.runtime == "docker" for one in found):
        return []
    why = "systemd stops it together with %s (%s=)" % (steps[-1].unit, docker["bound_to_containerd"][-1])
    return [Step(START, docker["unit"], "docker", why, True, [])]


def _kubelet(facts, steps):
    """The kubelet comes back by itself when its runtime does; only one that does not is restarted, or one that systemd has given up."""
    installed, unit, healthz = facts["kubelet"].get("installed") or {}, facts["kubelet"].get("unit") or {}, facts["kubelet"].get("healthz") or {}
    if installed.get("variant") != "kubelet" or not installed.get("joined") or not unit:
        return []
    lost = any(one["signature"] == "runtime_down" for one in facts["kubelet"].get("journal") or [])
    given_up = unit["active"] in ("failed", "inactive")
    ailing = healthz.get("state") in ("refused", "hung") or (healthz.get("state") == "answered" and healthz["code"] != 200)
    if not (steps and (given_up or ailing)) and not (given_up and unit["active"] == "failed" and lost):
        return []
    why = "it is %s (%s)" % (unit["active"], unit["sub"]) if given_up else "its health check does not say that it is well"
    return [Step(START if given_up else RESTART, unit["name"], "kubelet", why, not given_up, [])]


# -- what it costs -------------------------------------------------------------------------------------------------------


def kills_pods(facts, steps):
    """Why containers would end with these steps; nothing where they outlive them, or where none runs."""
    if not facts["here"]["containers"] and not facts["here"]["shims"]:
        return []
    found = [_with_docker(facts, step) for step in steps if step.runtime == "docker" or _takes_docker_along(facts, step)]
    found += [why for step in steps if step.act == RESTART and step.runtime not in ("docker", "cri-dockerd", "kubelet") for why in _with_its_unit(facts, step)]
    found += [_with_addresses(facts, step) for step in steps if step.act in (RESTART, START) and ROWS.get(step.runtime, {}).get("kind") == "containerd"]
    return list(dict.fromkeys(why for why in found if why))


def _takes_docker_along(facts, step):
    docker = (facts["runtime"].get("daemons") or {}).get("docker")
    return step.act == RESTART and step.runtime == "containerd" and docker and docker["active"] == "active" and docker["bound_to_containerd"]


def _with_docker(facts, step):
    """dockerd ends its containers when it stops, and those that it finds when it starts, unless it was told to let them live."""
    if step.act == CONTINUE:
        return None
    said = next((one for one in (facts["runtime"].get("answers") or {}).values() if one["socket"] == ROWS["docker"]["socket"]), {})
    if said.get("live_restore", facts["here"]["live_restore"]):
        return None
    count = sum(one["namespace"] == "moby" for one in facts["here"]["shims"])
    return "docker runs %d container%s without live-restore: its restart stops all of them" % (count, "s"[: count != 1]) if count else None


def _with_its_unit(facts, step):
    mode = facts["runtime"]["daemons"][step.runtime]["kill_mode"]
    keepers = facts["here"]["units"].get(step.unit, {}).get("keepers")
    if mode == "process" or keepers == 0:
        return []
    if not mode or keepers is None:
        return ["systemd does not say what ends together with %s" % step.unit]
    what = "%d process%s" % (keepers, "es"[: 2 * (keepers != 1)])
    return ["%s has KillMode=%s: its restart kills what holds containers (%s), and the containers with it" % (step.unit, mode, what)]


def _with_addresses(facts, step):
    said = next((one for one in (facts["runtime"].get("answers") or {}).values() if one["socket"] == ROWS[step.runtime]["socket"]), {})
    version = facts["here"]["versions"].get(step.runtime) or said.get("version")
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", str(version or ""))
    if not match:
        return "the version of %s is not known, and 1.6.9 to 1.6.14 forget their pods' addresses at a restart" % step.runtime
    if (1, 6, 9) <= tuple(map(int, match.groups())) < (1, 6, 15):
        return "%s %s forgets its pods' addresses at a restart: the kubelet makes every pod anew" % (step.runtime, version)
    return None


# -- why it is better left -----------------------------------------------------------------------------------------------


def refusals(facts, found, steps):
    """Each reason, the most telling first."""
    if not facts["boot"]["systemd"] and found:
        return ["this node has no systemd, and nothing else is restarted here"]
    silent = next((one for one in facts["problems"] if one["what"] == "systemctl show"), None)
    if silent and found:
        return ["systemd itself does not tell about its units (%(why)s): where that stays so, drain the node and reboot it" % silent]
    reasons = [look(facts, one) for one in found for look in REASONS] + [_survives(facts, step) for step in steps]
    return [why for why in reasons if why]


def _nobody_knows(facts, one):
    if one.unit is None:
        return "%s: %s. No unit is known that it belongs to, so restart it by hand" % (one.socket, one.why)
    return None


def _unit(facts, one):
    return facts["here"]["units"].get(one.unit) or {"load": None, "daemons": {}, "blocked": []}


def _masked(facts, one):
    return "%s is masked: somebody wants it off" % one.unit if _unit(facts, one)["load"] == "masked" else None


def _waits_for_the_kernel(facts, one):
    task = next(iter(_unit(facts, one)["blocked"]), None)
    if not task:
        return None
    where = " in " + task["waits_in"] if task["waits_in"] else ""
    return "%s (pid %d) waits for the kernel%s and cannot be ended: find its disk or mount (dmesg | tail), or drain the node and reboot it" % (
        task["name"],
        task["pid"],
        where,
    )


def _is_traced(facts, one):
    found = next(((pid, daemon) for pid, daemon in _unit(facts, one)["daemons"].items() if daemon["tracer"]), None)
    return "somebody traces %s (pid %d) with process %d: end that first" % (found[1]["name"], found[0], found[1]["tracer"]) if found else None


def _full(facts, one):
    for path in ROOMS.get(one.runtime, ()):
        room = facts["here"]["rooms"].get(path)
        if room == "hung":
            return "the file system of %s does not answer, so %s cannot either: drain the node and reboot it" % (path, one.unit)
        if room and (room["bytes"] < NEEDED_BYTES or (room["inodes"] is not None and room["inodes"] < NEEDED_INODES)):
            return "the file system of %s is full, and %s may not come up again: free space first (df -h %s; df -i %s)" % (path, one.unit, path, path)
    return None


def _hopeless(facts, one):
    """A unit that does not come up by itself for a reason that a restart does not take away."""
    unit = (facts["runtime"].get("daemons") or {}).get(one.runtime)
    if not unit or unit["active"] == "active":
        return None
    line = next((said for said in facts["runtime"].get("journal") or [] if said["signature"] in HOPELESS and _is_recent(said)), None)
    return "%s: %s (%s). A restart does not heal that" % (one.unit, HOPELESS[line["signature"]], line["line"]) if line else None


def _survives(facts, step):
    unit = (facts["runtime"].get("daemons") or {}).get(step.runtime)
    if step.act == RESTART and unit and unit["kill_mode"] == "none":
        return "%s has KillMode=none: systemd would not end the process that does not answer" % step.unit
    return None


REASONS = (_nobody_knows, _masked, _waits_for_the_kernel, _is_traced, _full, _hopeless)
