# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The kubelet's effective settings: which program it is, what its flags, its file and its drop-ins say, and who has the last word."""

from __future__ import annotations

import re

from ..._yaml import UNREAD, at, read

CONFIG_LIMIT = 1 << 17
UNIT_DIRS = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd")

# variant, its units, its program, the directory of its embedded kubelet
VARIANTS = (
    ("kubelet", ("kubelet.service",), "kubelet", None),
    ("rke2", ("rke2-server.service", "rke2-agent.service"), "/var/lib/rancher/rke2/bin/kubelet", "/var/lib/rancher/rke2"),
    ("k3s", ("k3s.service", "k3s-agent.service"), "k3s", "/var/lib/rancher/k3s"),
    ("microk8s", ("snap.microk8s.daemon-kubelite.service", "snap.microk8s.daemon-kubelet.service"), None, "/var/snap/microk8s/current"),
)
KUBECONFIGS = (
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
    "/var/lib/rancher/rke2/agent/kubelet.kubeconfig",
    "/var/snap/microk8s/current/credentials/kubelet.config",
    "/var/lib/k0s/kubelet.conf",
)
HOMES = {variant: home for variant, _units, _program, home in VARIANTS}

# setting, flag, keys in the file, what the kubelet takes without either
SETTINGS = (
    ("fail_swap_on", "fail-swap-on", ("failSwapOn",), True),
    ("swap_behavior", None, ("memorySwap", "swapBehavior"), "NoSwap"),
    ("cgroup_driver", "cgroup-driver", ("cgroupDriver",), "cgroupfs"),
    ("fail_cgroup_v1", "fail-cgroupv1", ("failCgroupV1",), None),  # true since 1.35
    ("healthz_port", "healthz-port", ("healthzPort",), 10248),
    ("healthz_address", "healthz-bind-address", ("healthzBindAddress",), "127.0.0.1"),
    ("runtime_endpoint", "container-runtime-endpoint", ("containerRuntimeEndpoint",), "unix:///run/containerd/containerd.sock"),
    ("static_pod_path", "pod-manifest-path", ("staticPodPath",), ""),
    ("eviction_memory", "eviction-hard", ("evictionHard", "memory.available"), "100Mi"),
    ("rotate_certificates", "rotate-certificates", ("rotateCertificates",), False),
    ("resolv_conf", "resolv-conf", ("resolvConf",), "/etc/resolv.conf"),
)
TRUTH = {"true": True, "True": True, "TRUE": True, "t": True, "T": True, "1": True}
TRUTH.update({"false": False, "False": False, "FALSE": False, "f": False, "F": False, "0": False})


def installed(node):
    """Which kubelet this node has, or would have: its variant, its unit, its program, and what it is told about its name and address."""
    for variant, units, program, _home in VARIANTS:
        unit = next((name for name in units if fragment(node, name)), None)
        if unit:
            path = program if program and node.exists(program) else node.program(program.rsplit("/", 1)[-1]) if program else None
            return {"variant": variant, "unit": unit, "program": path, **told(node, variant, unit)}
    path = node.program("kubelet")  # without a unit: not systemd, or half installed
    if not path:
        return {"variant": None, "unit": None, "program": None, "joined": False, "node_name": None, "node_ip": None}
    return {"variant": "kubelet", "unit": None, "program": path, **told(node, "kubelet", None)}


def told(node, variant, unit):
    """Whether it has been told about a cluster (until then kubeadm's restarts every few seconds by design), and what its flags say about the node."""
    flags = found_flags(node, variant, unit)[0]
    usual = (("kubeconfig", "kubelet.conf"), ("bootstrap-kubeconfig", "bootstrap-kubelet.conf"))
    paths = [flags.get(name) or "/etc/kubernetes/" + file for name, file in usual]
    joined = variant != "kubelet" or any(node.exists(path) for path in paths)
    return {"joined": joined, "node_name": flags.get("hostname-override"), "node_ip": flags.get("node-ip")}


def kubeconfigs(node):
    """The kubeconfigs with which a kubelet of this node belongs to a cluster: each at its usual place, or where the kubelet's flags say."""
    this = installed(node)
    flags = found_flags(node, this["variant"], this["unit"])[0] if this["variant"] == "kubelet" else {}
    return [path for path in dict.fromkeys([*KUBECONFIGS, flags.get("kubeconfig")]) if path and node.stat(path)]


def config(node):
    """Each setting that rules judge, and where it comes from: flags win over drop-ins, drop-ins over the file."""
    this = installed(node)
    flags, source = found_flags(node, this["variant"], this["unit"])
    sources = [(path, document(node, path)) for path in files(node, this["variant"], flags)]
    values, origins = {}, {}
    for name, flag, keys, usual in SETTINGS:
        value, origin = usual, "default"
        if this["variant"] in ("k3s", "rke2") and name == "fail_swap_on":
            value, origin = False, "default of " + this["variant"]
        for path, found in sources:
            said = UNREAD if found is None else at(found, *keys)
            if said is not None and said != "":  # the kubelet, too, takes an empty text for none
                value, origin = (None, None) if said is UNREAD else (said, path)
        if flag in flags:
            value, origin = flag_value(name, flags[flag], usual), "--%s in %s" % (flag, source)
        values[name], origins[name] = plain(value), origin
    return {**values, "from": origins, "files": [path for path, found in sources if found], "flags": source}


def plain(value):
    """Settings are scalars; whatever else a file holds there is kept as short text."""
    return value if value is None or isinstance(value, (bool, int)) else str(value)[:200]


def flag_value(name, text, usual):
    if name == "eviction_memory":
        match = re.search(r"(?:^|,)memory\.available<([^,]+)", text)
        return match.group(1) if match else "0"
    if isinstance(usual, bool) or name == "fail_cgroup_v1":
        return TRUTH.get(text)
    if isinstance(usual, int):
        return int(text) if re.match(r"\d{1,5}$", text) else None
    return text


# -- files ---------------------------------------------------------------------------------------------------------------


def document(node, path):
    """A configuration file's content; empty where there is none, None where it cannot be read or understood."""
    text = node.read(path, CONFIG_LIMIT)
    if text is None:
        return None if any(one["what"] == path for one in list(node.problems)) else {}
    found = read(text) if len(text) < CONFIG_LIMIT else None
    if found is None:
        node.problem(path, "is written in more YAML than is read here", "error")
    return found


def files(node, variant, flags):
    """The configuration files, the weakest first."""
    home = HOMES.get(variant)
    first = flags.get("config") or ("/var/lib/kubelet/config.yaml" if variant in ("kubelet", None) and not flags else None)
    drop_ins = flags.get("config-dir") or (home + "/agent/etc/kubelet.conf.d" if variant in ("k3s", "rke2") else None)
    found = [first] if first and (node.exists(first) or not drop_ins) else []
    return found + (node.glob(drop_ins + "/*.conf") if drop_ins and drop_ins.startswith("/") else [])


def troubled(node):
    """Whether something could not be seen for the fact that is being gathered: then its absence says nothing."""
    return any(one["fact"] == ".".join(node.path) for one in list(node.problems))


# -- flags ---------------------------------------------------------------------------------------------------------------


def found_flags(node, variant, unit):
    """The kubelet's flags and where they were found: those of the running process, else those that its unit would give it."""
    if variant == "microk8s":
        home = VARIANTS[-1][-1]
        return flags_of(word.replace("${SNAP_DATA}", home) for line in node.lines(home + "/args/kubelet") for word in words(line)), home + "/args/kubelet"
    if unit is None:
        return {}, None
    if variant != "k3s":
        for pid in [pid for root in CGROUPS for pid in node.lines("%s/system.slice/%s/cgroup.procs" % (root, unit))][:200]:
            if (node.read("/proc/%s/comm" % pid) or "").strip() == "kubelet":
                return flags_of((node.read("/proc/%s/cmdline" % pid) or "").split("\0")), "process " + pid
    if variant in ("k3s", "rke2"):
        return rancher_flags(node, variant, unit)
    return flags_of(command_line(node, unit)), fragment(node, unit)


def rancher_flags(node, variant, unit):
    """k3s and rke2 take the kubelet's flags as ``kubelet-arg``, from their own configuration, which also holds the token, and from their command line."""
    path = "/etc/rancher/%s/config.yaml" % variant
    arguments = []
    for one in [path] + node.glob(path + ".d/*.yaml") if node.exists("/etc/rancher/" + variant) else []:
        found = document(node, one) or {}
        for key in ("kubelet-arg", "kubelet-arg+"):
            said = found.get(key) or []
            arguments.extend("--" + word for word in (said if isinstance(said, list) else [said]) if isinstance(word, str))
    line = command_line(node, unit)
    for word, following in zip(line, line[1:] + [""]):
        name, sign, value = word.partition("=")
        if name == "--kubelet-arg":
            arguments.append("--" + (value if sign else following))
    return flags_of(arguments), "%s or %s" % (path, fragment(node, unit))


def flags_of(arguments):
    """Flags by name; the last of a name wins. ``--flag value`` and ``--flag=value`` are the same, ``--flag`` alone means true."""
    flags, waiting = {}, None
    for word in arguments:
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            flags[name] = value if sign else "true"
            waiting = None if sign else name
        elif waiting:
            flags[waiting], waiting = word, None
    return flags


def fragment(node, unit):
    """The file that defines a unit."""
    return next((directory + "/" + unit for directory in UNIT_DIRS if node.exists(directory + "/" + unit)), None)


def command_line(node, unit):
    """The words of ExecStart, with the variables that Environment= and EnvironmentFile= give it, as kubeadm's drop-in uses them."""
    drop_ins = {}
    for directory in reversed(UNIT_DIRS):
        drop_ins.update({path.rsplit("/", 1)[-1]: path for path in node.glob("%s/%s.d/*.conf" % (directory, unit))})
    variables, files_, start = {}, [], []
    for path in [fragment(node, unit)] + [drop_ins[name] for name in sorted(drop_ins)]:
        for key, value in directives(node.read(path) or ""):
            if key == "Environment":
                variables.update(word.split("=", 1) for word in words(value) if "=" in word)
            elif key == "EnvironmentFile":
                files_ = files_ + [value.lstrip("-")] if value else []
            elif key == "ExecStart":
                start = words(value)
    for path in files_:
        variables.update(environment(node.read(path) or ""))
    return expand(start, variables)


def directives(text):
    """(key, value) of the [Service] section of a unit file; a backslash at the end of a line joins it to the next."""
    section = ""
    for line in map(str.strip, re.sub(r"\\\n", " ", text).split("\n")):
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and line[0] not in "#;":
            key, value = line.split("=", 1)
            yield key.strip(), value.strip()


def environment(text):
    """The variables of an environment file."""
    for line in re.sub(r"\\\n", "", text).split("\n"):
        key, sign, value = line.strip().partition("=")
        if sign and not key.startswith(("#", ";")):
            yield key.strip(), " ".join(words(value))


def words(text):
    """A command line's words; quotes hold blanks together and are dropped."""
    return [
        re.sub(r"\\(.)", r"\1", "".join(part[1:-1] if part[0] in "\"'" else part for part in re.findall(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|.", word, re.S)))
        for word in re.findall(r"(?:\"(?:\\.|[^\"\\])*\"|'[^']*'|\\.|[^\s])+", text, re.S)
    ]


def expand(arguments, variables):
    """``$NAME`` alone becomes as many words as its value has, ``${NAME}`` stays within its word."""
    made = []
    for word in arguments:
        if re.match(r"\$[A-Za-z_]\w*$", word):
            made.extend(words(variables.get(word[1:], "")))
        else:
            made.append(re.sub(r"\$\{([A-Za-z_]\w*)\}", lambda match: variables.get(match.group(1), ""), word))
    return made
