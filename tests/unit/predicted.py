"""Our prediction in the form of the answers that Calico's own programs give."""

from __future__ import annotations

import re

from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._host import host
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._methods import Asked, detect
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._startup import Situation, start_up
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._calico._versions import version


def differences(got):
    """(version, question, Calico's answer, ours) of each that differs; ours is None where it says that it cannot tell."""
    here = host(got["facts"])
    left_out = got["facts"]["present"]["left_out"]
    same = _same_but_for_unnamed if left_out["count"] > len(left_out["examples"]) else lambda ours, theirs: ours == theirs
    for name, answers in got["answers"].items():
        for question, answer in zip(got["questions"], answers):
            ours = (_start if question.get("env") is not None else _detection)(question, here, version(name))
            theirs = _calicos(question, answer)
            if ours is None or not same(ours, theirs):
                yield name, question, theirs, ours


def _detection(question, here, known):
    found = detect(question["method"], Asked(here, question["family"], known, question["internal"]))
    if found.unknown:
        return None
    return {"cidr": found.address or "", "exit": int(found.ends), "log": found.log + [("warning", "Terminating")] * found.ends}


def _start(question, here, known):
    stored = question["stored"]
    others = {one["name"]: {4: one["v4"], 6: one["v6"]} for one in question["others"]}
    kept = None if stored is None else {4: stored["v4"], 6: stored["v6"]}
    said = start_up(Situation(here, known, question["env"], kept, others, question["internal"], name="this"))
    if said.unknown:
        return None
    cleared = {"v4": said.addresses[4], "v6": said.addresses[6]} if said.cleared else None
    return {
        "node": {"v4": said.addresses[4], "v6": said.addresses[6]},
        "exit": int(said.ends),
        "changed": said.changed and not said.ends,
        "cleared": cleared,
        "log": said.log,
    }


def _calicos(question, answer):
    # Which of the kernel's two refusals an IPv6 destination without a way gets hangs on more than the facts have.
    log = [
        (line["level"], re.sub("(udp6 .*): cannot assign requested address", r"\1: network is unreachable", line["message"]))
        for line in answer["log"]
        if line["level"] != "info"
    ]
    if question.get("env") is None:
        return {"cidr": answer["cidr"], "exit": answer["exit"], "log": log}
    return {"node": answer["node"], "exit": answer["exit"], "changed": answer["changed"], "cleared": answer.get("cleared"), "log": log}


def _same_but_for_unnamed(ours, theirs):
    """The facts only count some links without an address; whether any of them passes a filter is a matter of words, and of being stored since 3.31."""
    return _without_words(ours) == _without_words(theirs)


def _without_words(said):
    log = [(level, re.sub("no valid (host interfaces found|IPv. addresses found on the host interfaces)", "nothing", text)) for level, text in said["log"]]
    return {key: value for key, value in {**said, "log": log}.items() if key != "changed"}
