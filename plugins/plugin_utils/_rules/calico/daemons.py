# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's own programs on a node: do BIRD and Felix answer?"""

from __future__ import annotations

from ... import _cluster
from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, skip, unknown, warn
from ._programs import WITHOUT_BGP, absent, backend, felix_age, last_words, of_node, pod, startup_age
from ._sessions import SETTLING

BIRD_SLOW = threshold("calico_bird_slow_s", 2.0, "Seconds for one answer of BIRD from which on it is reported; calico-node's own checks wait 2 s for a line.")
FELIX_SLOW = threshold(
    "calico_felix_slow_s", 1.0, "Seconds for one answer of Felix's health endpoint from which on it is reported; probes wait 1 s by default."
)
RESTART = "kubectl -n %(namespace)s delete pod %(pod)s"
LOOK = "kubectl -n %(namespace)s logs %(pod)s -c calico-node --tail=50"


@rule(
    "calico.bird_hung",
    "BIRD does not answer",
    needs=("calico.signs", "calico.bird", "calico.processes"),
    uses=("links.cni", "calico.logs"),
    remedy=by_hand("%s  # its routes stay meanwhile; first look at the load: calico.overloaded_node, load.saturated" % RESTART),
)
def bird_hung(signs, bird, processes, cni, logs, policy):
    """BIRD brings the routes to the other nodes' pods. One that hangs keeps its sessions for up to 240 s and then loses all routes.

    calico-node's readiness probe asks it through its control socket, the liveness probe only since 3.28: before, a BIRD that hangs
    is never restarted.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    if backend(processes) in WITHOUT_BGP:
        return skip("Calico's backend is %s, which uses no BGP" % backend(processes))
    found = [verdict for one in bird["sockets"] for verdict in _answer(one, processes, pod(logs), policy)]
    return found or (_all_answer(bird["sockets"]) if bird["sockets"] else _no_socket(processes, pod(logs), policy))


def _answer(socket, processes, names, policy):
    evidence = {"socket": socket["path"], "state": socket["state"], "asked": socket["asked"], "seconds": socket["seconds"], **names}
    if socket["state"] == "hung":
        how = "greets but does not answer" if socket.get("greeted") else "accepted the connection but gave no answer"
        yield fail("BIRD %s on %s within %.1f s (asked for: %s)" % (how, socket["path"], socket["seconds"], socket["asked"]), **evidence)
    elif socket["state"] == "denied":
        yield unknown("BIRD on %s may only be asked by root (run with become)" % socket["path"], **evidence)
    elif socket["state"] == "refused":
        yield _refused(socket, processes, evidence, policy)
    elif socket.get("version") is None or socket.get("protocols") is None:
        yield unknown("what answers on %s is not what BIRD says" % socket["path"], **evidence)
    elif "Shutdown" in (socket.get("said") or ""):
        yield warn("BIRD on %s is shutting down" % socket["path"], **evidence)
    elif socket["seconds"] >= policy[BIRD_SLOW]:
        yield warn("BIRD on %s took %.1f s to answer: %s" % (socket["path"], socket["seconds"], socket["asked"]), **evidence)


def _refused(socket, processes, evidence, policy):
    age = felix_age(processes)
    if not of_node(processes):
        return skip("calico-node does not run: see calico.felix", **evidence)
    if age is None or age < policy[SETTLING]:
        return skip("calico-node is starting, and BIRD does not listen yet", **evidence)
    message = "nobody listens on %s: BIRD has ended, while calico-node has been running for %s" % (socket["path"], _cluster.span(age))
    # Calico's own checks look at the second one only where it uses IPv6.
    return (warn if socket["path"].endswith("bird6.ctl") else fail)(message, **evidence)


def _all_answer(sockets):
    slowest = max(one["seconds"] for one in sockets)
    waits = [one["recovering"] for one in sockets if one.get("recovering")]
    more = {"recovering": waits[0]} if waits else {}
    versions = sorted({one["version"] for one in sockets})
    return passed("BIRD %s answers within %.3f s" % (" and ".join(versions), slowest), seconds=slowest, versions=versions, **more)


def _no_socket(processes, names, policy):
    age = felix_age(processes)
    if not of_node(processes):
        return skip("calico-node does not run: see calico.felix")
    if any(one["name"] == "bird" and one["calico"] for one in processes["programs"]):
        return unknown("BIRD runs, but its socket is not to be seen on the node: calico-node does not share /var/run/calico with it")
    if backend(processes) is None:
        return unknown("there is no socket of BIRD, and whether calico-node is to run one may only be read by root (run with become)")
    if age is None or age < policy[SETTLING]:
        return skip("calico-node is starting, and BIRD does not run yet")
    return fail("calico-node has been running for %s, and there is no BIRD" % _cluster.span(age), **names)


@rule(
    "calico.second_bird",
    "Another BIRD runs beside Calico's",
    needs=("calico.signs", "calico.processes", "calico.bird"),
    remedy=by_hand("systemctl disable --now bird bird6  # after a look at what it is for: birdc show protocols", disruptive=True),
)
def second_bird(signs, processes, bird, policy):
    """Two BIRDs want the same port 179, and each removes routes that it did not make: the one that starts first wins, at every boot anew."""
    birds = [one for one in processes["programs"] if one["name"] == "bird"]
    ours, others = ([one for one in birds if one["calico"] is wanted] for wanted in (True, False))
    if not signs or not birds:
        return skip("no BIRD runs here")
    if others and (ours or of_node(processes)):
        verdict = fail if ours else warn
        sockets = ", ".join(bird["others"])
        return verdict(
            "process %d is a BIRD of the host's own%s" % (others[0]["pid"], " (%s)" % sockets if sockets else ""), pid=others[0]["pid"], sockets=bird["others"]
        )
    return passed("only Calico's BIRD runs" if ours else "only the host's BIRD runs")


@rule(
    "calico.felix",
    "Felix does not answer as it must",
    needs=("calico.signs", "calico.felix", "calico.processes"),
    uses=("links.cni", "kubelet.installed", "calico.logs", "calico.shutdown"),
    remedy=by_hand(LOOK),
)
def felix(signs, said, processes, cni, kubelet, logs, shutdown, policy):
    """Felix programs routes and policies, and answers the kubelet's probes on port 9099, but only after all of start-up has ended.

    So a refused connection is a start-up that has not come through, and an answer of 503 names the part that is stuck.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    names, words = pod(logs), last_words(logs)
    if not of_node(processes):
        return _no_program(cni, kubelet, shutdown, names, words)
    age = felix_age(processes)
    evidence = {"host": said.get("host"), "port": said.get("port"), "state": said.get("state"), "felix_s": age, **names}
    if said.get("state") == "off":
        return skip("calico-node is told to answer no health checks", **evidence)
    if said.get("state") == "answered":
        return _answered(said, age, evidence, policy)
    return _silent(said, processes, words, evidence, policy)


def _silent(said, processes, words, evidence, policy):
    age, starting = felix_age(processes), startup_age(processes)
    if said.get("state") == "hung":
        return fail("Felix accepted the connection to port %s but gave no answer%s" % (said["port"], words), **evidence)
    if age is None and starting is not None:
        took = "start-up has been running for %s" % _cluster.span(starting)
        return (
            skip(took, **evidence) if starting < policy[SETTLING] else fail("%s, so Felix does not run yet%s" % (took, words), startup_s=starting, **evidence)
        )
    if age is not None and age < policy[SETTLING]:
        return skip("Felix was started %s ago" % _cluster.span(age), **evidence)
    if processes["env"] is None:
        return unknown("nobody answers on port %s, and which port Felix is to use may only be read by root (run with become)" % said.get("port"), **evidence)
    running = "Felix does not run" if age is None else "Felix has been running for %s" % _cluster.span(age)
    return fail("nobody answers on %s:%s; %s%s" % (said.get("host"), said.get("port"), running, words), **evidence)


def _no_program(cni, kubelet, shutdown, names, words):
    if cni is None or cni.get("unread"):
        return unknown("calico-node does not run; whether it should is in CNI files that may only be read by root (run with become)")
    if not (kubelet or {}).get("joined"):
        return skip("calico-node does not run, and this node has not joined a cluster")
    stopped = " since it was told to end %s ago" % _cluster.span(max(0, shutdown["age_s"])) if (shutdown or {}).get("age_s") is not None else ""
    return fail("the runtime takes Calico's CNI configuration, but no calico-node runs here%s%s" % (stopped, words), **names)


def _answered(said, age, evidence, policy):
    found = []
    for question, word in (("liveness", "live"), ("readiness", "ready")):
        one = said[question]
        if one["code"] is None or one["code"] >= 400:
            young = question == "readiness" and age is not None and age < policy[SETTLING]
            why = ": %s" % "; ".join(one["ill"]) if one["ill"] else ""
            verdict = skip if young else fail
            found.append(
                verdict("Felix says that it is not %s (%s)%s" % (word, one["code"], why), question=question, code=one["code"], ill=one["ill"], **evidence)
            )
    slowest = max(said[question]["seconds"] for question in ("liveness", "readiness"))
    if not found and slowest >= policy[FELIX_SLOW]:
        return warn("Felix took %.1f s to answer its health check; a probe with 1 s would have given up" % slowest, seconds=slowest, **evidence)
    return found or passed("Felix is live and ready", seconds=slowest, **evidence)
