# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. BIRD, as it answers through its control socket: Calico's own fork, and releases 1.6 to 3."""

from __future__ import annotations

import re

# Where calico-node puts them, and where it looks when they are not there.
FOLDERS = (("/var/run/calico", True), ("/var/run/bird", False))
NAMES = ("bird.ctl", "bird6.ctl")
HEADINGS = ["name", "proto", "table", "state", "since", "info"]  # BIRD 2 writes them with capitals
MOST_PEERS = 1000
MOST_DETAILS = 60  # of so many protocols all is asked; of more, the table only
LAST = re.compile(r"(?:\A|\n)(?!0001)\d{4} [^\n]*\n\Z")
CALICO = re.compile(r"(Mesh|Node|Global)_(.+?)(?:_port_(\d+))?\Z")
DETAILS = {"Neighbor address": "neighbor", "Neighbor AS": "as", "Source address": "source", "Last error": "last_error"}


class NotBird(ValueError):
    """An answer that is not in the form that BIRD gives."""


def bird(node):
    """{sockets: [socket], others: [paths of the host's own BIRD]}

    A socket is {path, calico, state, asked, seconds} and, where it answered, {version, router_id, said, since, now, recovering,
    protocols}: ``calico`` is whether it lies in Calico's directory, ``state`` answered, hung, refused or denied, ``said`` BIRD's
    word on itself, ``recovering`` what it waits for in a graceful restart. Of ``protocols`` only those that speak BGP with
    others than pods are listed: {name, kind, peer, port, up, state, since, info} where ``kind`` is mesh, node, global or
    other, ``peer`` the address, ``up`` the protocol's own state, ``state`` that of BGP (Established, Active, …) and
    ``info`` its last error; with few of them also {neighbor, source, as, last_error}. Without a sensible answer there are none.
    """
    there = {folder: [folder + "/" + name for name in NAMES if node.exists(folder + "/" + name)] for folder, _calico in FOLDERS}
    chosen = next((folder for folder, _calico in FOLDERS if there[folder]), None)
    said = node.together({path: ask(path, dict(FOLDERS)[chosen]) for path in there.get(chosen, ())})
    others = [path for folder, paths in there.items() if folder != chosen for path in paths]
    return {"sockets": [said[path] for path in there.get(chosen, ()) if said.get(path)], "others": others}


def ask(path, calico):
    def talk(node):
        found = Talk(node, path, calico)
        found.read("show status", status)
        found.read("show protocols", protocols)
        if 0 < len(found.said.get("protocols") or ()) <= MOST_DETAILS:
            known = found.hear("show protocols all", details) or {}
            for one in found.said["protocols"]:
                one.update(known.get(one["name"], {}))
        return found.said if found.said["state"] != "absent" else None

    return talk


class Talk:
    """Questions to one BIRD, which together have one deadline. After the first that gets no answer nothing more is asked."""

    def __init__(self, node, path, calico):
        self.node = node
        self.left = node.deadline
        self.said = {"path": path, "calico": calico, "state": None, "asked": None, "seconds": 0.0}

    def read(self, question, reader):
        self.said.update(self.hear(question, reader) or {})

    def hear(self, question, reader):
        """What the reader makes of an answer. One that it cannot read is a problem of its own: the daemon still lives."""
        if self.said["state"] not in (None, "answered"):
            return None
        answer = self.node.ask(self.said["path"], question, LAST.search, deadline=max(0.1, self.left))
        self.left -= answer.seconds
        self.said.update(state=answer.state, asked=question, seconds=max(self.said["seconds"], answer.seconds))
        if answer.state == "hung":
            self.said.update(seconds=round(self.node.deadline - self.left, 3), greeted=bool(answer.out))
        return self.node.look(question, lambda node: reader(answer.out)) if answer.state == "answered" else None


def replies(text):
    """(code, text) of each line of an answer; a line that begins with a blank has the code of the line above."""
    if not LAST.search(text):
        raise NotBird("the answer has no end")
    code = None
    for line in text.split("\n"):
        match = re.match(r"(\d{4})[ -](.*)", line)
        if match:
            code = match.group(1)
            yield code, match.group(2)
        elif line.startswith(" ") and code:
            yield code, line[1:]
        elif line and not line.startswith("+"):  # + begins what BIRD says of its own accord
            raise NotBird("unexpected line %r" % line[:80])


def status(text):
    """What ``show status`` tells."""
    found, recovery = {"version": None, "router_id": None, "said": None, "recovering": None}, []
    for code, said in replies(text):
        if code == "1000":
            found["version"] = said.replace("BIRD ", "", 1).strip()[:60]
        elif code == "0024":
            recovery.append(said.strip())
        elif code == "0013":
            found["said"] = said.strip()[:100]
        elif code >= "8000":
            raise NotBird("%s %s" % (code, said[:80]))
        for words, name in (("Router ID is ", "router_id"), ("Current server time is ", "now"), ("Last reboot on ", "since")):
            if code in ("1000", "1011") and said.strip().startswith(words):
                found[name] = said.strip()[len(words) :][:60]
    if found["version"] is None:
        raise NotBird("it does not say that it is BIRD")
    found["recovering"] = "; ".join(recovery)[:200] or None
    return found


def protocols(text):
    """The rows of ``show protocols`` that are BGP, as {"protocols": […], "count": all of them}."""
    rows, headed = [], False
    for code, said in replies(text):
        if code == "2002":
            headed = said.lower().split() == HEADINGS
            if not headed:
                raise NotBird("unknown table: %s" % said.strip()[:80])
        elif code == "1002":
            rows.append(said)
        elif code == "8004":  # No protocols
            headed = True
        elif code not in ("0000", "0001"):
            raise NotBird("%s %s" % (code, said[:80]))
    if not headed:
        raise NotBird("the table has no heading")
    peers = [one for one in map(peer, rows) if one]
    established = [one for one in peers if one["state"] == "Established"]
    return {"protocols": ([one for one in peers if one["state"] != "Established"] + established)[:MOST_PEERS], "count": len(rows)}


def peer(row):
    """One row; None where it is not BGP, or a pod's. The time may be two words, and a protocol that is down has no more than that."""
    words = row.split(None, 4)
    if len(words) < 4 or words[1] != "BGP" or words[0].startswith("Local_Workload_"):
        return None
    since, info = timed(words[4] if len(words) > 4 else "")
    state, _blank, error = info.partition(" ")
    known = CALICO.match(words[0])
    found = {"name": words[0][:100], "kind": known.group(1).lower() if known else "other", "peer": address(known.group(2)) if known else None}
    if known and known.group(3):
        found["port"] = int(known.group(3)[:6])
    return {**found, "up": words[3][:20], "state": state[:40], "since": since, "info": error.strip()[:200]}


def timed(text):
    """(since, what follows)"""
    match = re.match(r"(\d+-\d+-\d+ \d+:\d+:\d+(?:\.\d+)?|\S+)\s*(.*)", text)
    return (match.group(1)[:40], match.group(2).strip()) if match else ("", "")


def address(text):
    """Calico writes an underscore for what a name may not hold: dots or colons."""
    return text.replace("_", "." if re.match(r"\d+(_\d+){3}\Z", text) else ":")[:60]


def details(text):
    """{name of a protocol: what ``show protocols all`` says of its neighbor}"""
    found, name = {}, None
    for code, said in replies(text):
        if code == "1002":
            name = said.split(" ", 1)[0]
        elif code == "1006" and ":" in said:
            key, _colon, value = said.partition(":")
            if key.strip() in DETAILS and value.strip():
                found.setdefault(name, {}).setdefault(DETAILS[key.strip()], value.strip()[:200])
    return found
