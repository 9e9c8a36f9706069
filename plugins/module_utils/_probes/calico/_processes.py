# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Calico's processes on this node, and what calico-node is told by its environment."""

from __future__ import annotations

import os
import re

NAMES = (b"calico-node", b"calico-felix", b"calico", b"calico-ipam", b"bird", b"bird6", b"calico-typha")
MOST = 30
ENVIRONMENT = 1 << 17
LONGEST = 4096  # of a value: a method may name dozens of networks
ENDED = (b"Z", b"X")
TICKS = os.sysconf("SC_CLK_TCK")
# What of the environment may be told: settings, and of these none that could hold a secret.
TOLD = re.compile(
    r"(IP6?(_AUTODETECTION_METHOD)?|NODENAME|NO_DEFAULT_POOLS|DATASTORE_TYPE|WAIT_FOR_DATASTORE|CLUSTER_TYPE|DISABLE_NODE_IP_CHECK|AUTODETECT_POLL_INTERVAL"
    r"|USE_POD_CIDR|IP_?V?6?_?POOL.*|AS|CALICO_\w+|KUBERNETES_SERVICE_(HOST|PORT)|FELIX_(HEALTH\w+|IPTABLESBACKEND|NFTABLESMODE|BPFENABLED|MTUIFACEPATTERN"
    r"|\w*MTU\w*|IPINIPENABLED|VXLAN\w*|WIREGUARDENABLED\w*|TYPHAK8SSERVICENAME|TYPHAADDR|IPV6SUPPORT|IGNORELOOSERPF|DATASTORETYPE|CHAININSERTMODE))\Z"
)
SECRET = re.compile("PASS|TOKEN|SECRET|KEY|CERT|CRED|AUTH(?!ODETECT)|USERNAME")


def processes(node):
    """{programs: [{pid, name, does, age_s}], env: {name: value}}

    ``name`` is the program (calico-node, bird, calico-ipam …), ``does`` what it is told to do (felix, confd, startup,
    monitor-addresses, felix-live bird-live …), ``calico`` of a BIRD whether it is Calico's own or the host's. ``env`` is that
    of calico-node, without anything that may be a secret; None where it may not be read.
    """
    found = programs(node)
    return {"programs": found[:MOST], "env": environment(node, found)}


def programs(node, again=False):
    uptime = (node.read("/proc/uptime") or "").split()
    now = float(uptime[0]) if uptime and re.match(r"[0-9]+(\.[0-9]+)?\Z", uptime[0]) else None
    found = []
    for pid, said in node.statuses(again)[1].items():
        name, start = status(said)
        if name in NAMES:
            words = (node.glance("/proc/%s/cmdline" % pid, 4096) or b"").decode("utf-8", "replace").split("\0")
            one = told(name.decode(), words[1:])
            if one:
                found.append({"pid": int(pid), **one, "age_s": None if now is None else round(max(0.0, now - start / TICKS), 1)})
    return found


def status(said):
    """(name, start in ticks) of /proc/PID/stat: the name may hold anything, also brackets and blanks; nothing of what has ended and is not buried."""
    head, _bracket, tail = (said or b"").rpartition(b")")
    words = tail.split(None, 20)
    if len(words) < 20 or not words[19].isdigit() or words[0] in ENDED:
        return None, None
    return head.partition(b"(")[2], int(words[19])


def told(name, words):
    """What a program does, by its arguments; None for what only shares the name."""
    does = " ".join(word.lstrip("-") for word in words[:4] if word)[:80]
    if name.startswith("bird"):
        return {"name": "bird", "family": 6 if name == "bird6" else 4, "calico": "calico" in " ".join(words)}
    if name == "calico":  # one program for all since 3.33: calico component node health …
        if not re.match(r"component (node|felix|confd|ipam|typha)\b", does):
            return None
        does = does.partition(" ")[2]
    if name == "calico-ipam" and "upgrade" not in does:  # each pod's start runs it for a moment
        return None
    return {"name": name, "does": "felix" if name == "calico-felix" else does}


def environment(node, found):
    """All programs of calico-node's container have the same; the first that lets it be read tells it.

    One that is too long is not told at all, for a value that is cut says something else. On a node where little gets its turn,
    all that were listed may have ended since.
    """
    ours = _of_calico_node(found)
    said = _environ(node, ours)
    if ours and said is None:
        ours = _of_calico_node(programs(node, again=True))
        said = _environ(node, ours)
    if not ours:
        return {}
    if said is None:
        node.problem("the environment of calico-node", "not readable", "denied")
        return None
    told = allowed(said.decode("utf-8", "replace"))
    if len(said) < ENVIRONMENT and all(len(value) <= LONGEST for value in told.values()):
        return told
    node.problem("the environment of calico-node", "longer than %d bytes, or one of its settings than %d" % (ENVIRONMENT, LONGEST), "error")
    return None


def _of_calico_node(found):
    """Felix first: it stays."""
    return sorted((one for one in found if one["name"] in ("calico-node", "calico", "calico-felix")), key=lambda one: one["does"] != "felix")


def _environ(node, ours):
    return next(filter(None, (node.glance("/proc/%d/environ" % one["pid"], ENVIRONMENT) for one in ours)), None)


def allowed(text):
    """Only the settings that may be told, and of an address no user and password."""
    pairs = (part.partition("=") for part in text.split("\0"))
    return {
        name.upper(): re.sub(r"://[^/@\s]+@", "://…@", value) for name, _sign, value in pairs if TOLD.match(name.upper()) and not SECRET.search(name.upper())
    }
