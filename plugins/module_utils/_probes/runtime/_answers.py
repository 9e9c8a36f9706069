# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What each runtime answers when it is asked, and how long that takes."""

from __future__ import annotations

from ..._grpc import UNIMPLEMENTED, fields, text
from ._daemons import DAEMONS, crictl, endpoints, sleeps

CRI, OLD_CRI = "runtime.v1.RuntimeService/", "runtime.v1alpha2.RuntimeService/"
CONTAINERD = "containerd.services.version.v1.Version/Version"


def answers(node):
    """Every runtime is asked at the same time; one that has no socket is left out."""
    asked = {}
    for name, socket, kind in [(row[0], row[2], row[4]) for row in DAEMONS] + [("other", socket, "cri") for socket in endpoints(node) + crictl(node)]:
        asked.setdefault(socket, (name, kind))
    said = node.together({name: ask(socket, kind) for socket, (name, kind) in asked.items()})
    return {name: found for name, found in said.items() if found}


def ask(socket, kind):
    def talk(node):
        found = Talk(node, socket)
        if sleeps(node, socket):
            return {**found.said, "state": "asleep"}
        {"containerd": containerd, "cri": cri, "docker": docker}[kind](found)
        return found.said if found.said["state"] != "absent" else None

    return talk


class Talk:
    """Questions to one daemon, which together have one deadline. After the first that gets no answer nothing more is asked."""

    def __init__(self, node, socket):
        self.node = node
        self.left = node.deadline
        self.said = {"socket": socket, "state": None, "asked": None, "seconds": 0.0, "took": {}}

    def call(self, method, message=b""):
        return self._note(method.rpartition(".")[2], lambda: self.node.call(self.said["socket"], method, message, deadline=self.left))

    def get(self, path):
        return self._note(path, lambda: self.node.http(self.said["socket"], path, deadline=self.left))

    def _note(self, question, ask_it):
        if self.said["state"] not in (None, "answered") or self.left <= 0.05:
            return None
        answer = ask_it()
        self.left -= answer.seconds
        self.said["took"][question] = answer.seconds
        self.said.update(state=answer.state, asked=question, seconds=max(self.said["seconds"], answer.seconds))
        if answer.state == "hung":
            self.said.update(seconds=round(self.node.deadline - self.left, 3), greeted=bool(answer.err))
        if answer.state == "answered" and answer.code is None:
            self.said["state"] = "unclear"
        return answer if self.said["state"] == "answered" else None

    def read(self, answer, **readers):
        """Parts of the said from a good answer's fields. What one of them cannot read is a problem of its own: the daemon still lives."""
        if answer and answer.code == 0:
            for name, reader in readers.items():
                self.said[name] = self.node.look(name, lambda node, reader=reader: reader(fields(answer.out)))


def containerd(talk):
    talk.read(talk.call(CONTAINERD), version=lambda said: text(said, 1))
    cri(talk)


def cri(talk):
    """The questions that a kubelet asks. ``api`` is None where the daemon has no such service."""
    answer = talk.call(CRI + "Version")
    if answer is None:
        return
    api = "v1"
    if answer.code == UNIMPLEMENTED:
        old = talk.call(OLD_CRI + "Version")
        api = "v1alpha2" if old and old.code == 0 else None
    talk.said.update(api=api, code=answer.code)
    if api != "v1" or answer.code:
        return
    talk.read(answer, runtime=lambda said: text(said, 2), runtime_version=lambda said: text(said, 3))
    talk.read(talk.call(CRI + "Status"), conditions=conditions)
    talk.read(talk.call(CRI + "RuntimeConfig"), cgroup_driver=cgroup_driver)
    talk.read(talk.call(CRI + "ListPodSandbox"), pods=pods)


def conditions(said):
    """{"NetworkReady": {"ready": …, "reason": …, "message": …}}. False is what protobuf leaves out."""
    found = {}
    for status in said.get(1, []):
        for one in map(fields, fields(status).get(1, [])):
            found[text(one, 1)] = {"ready": bool(one.get(2, [0])[-1]), "reason": text(one, 3), "message": text(one, 4)}
    return found


def cgroup_driver(said):
    """The driver in use, where the runtime tells it. systemd is number 0, which protobuf leaves out."""
    if 1 not in said:
        return None
    return {0: "systemd", 1: "cgroupfs"}.get(fields(said[1][-1]).get(1, [0])[-1])


def pods(said):
    """How many sandboxes there are, and how many of them are ready (number 0)."""
    rows = [fields(one) for one in said.get(1, [])]
    return {"all": len(rows), "ready": sum(row.get(3, [0])[-1] == 0 for row in rows)}


def docker(talk):
    """Its ping comes from dockerd alone; the others need containerd, and hang when dockerd has lost it."""
    if not talk.get("/_ping"):
        return
    listing = talk.get("/containers/json?limit=1")
    talk.said["listed"] = bool(listing and listing.ok)
    told = talk.get("/info")
    info = told.json() if told else None
    if isinstance(info, dict):
        talk.said.update(version=str(info.get("ServerVersion"))[:40], cgroup_driver=info.get("CgroupDriver"), live_restore=info.get("LiveRestoreEnabled"))
        talk.said["pods"] = {"all": info.get("Containers"), "ready": info.get("ContainersRunning")}
    refused = next((one for one in (listing, told) if one and not one.ok), None)
    if refused:
        talk.said["refusal"] = "HTTP %s: %s" % (refused.code, refused.out[:200])
