# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What the runtimes' configuration files say, file by file: how they add up is for a rule to judge."""

from __future__ import annotations

import re

from ._daemons import DAEMONS, unit

CRI_PLUGINS = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "cri")
FILES = 20


def config(node):
    found = {}
    for name, units, _socket, path, kind in DAEMONS:
        look = {"containerd": containerd, "docker": docker}.get(kind, crio)
        said = look(node, units, path) if path else None
        if said:
            found[name] = said
    return found


def containerd(node, units, usual):
    """Its file and those that it imports, in the order in which later ones win."""
    path = next(filter(None, (named(unit(node, name).get("ExecStart", "")) for name in units)), usual)
    files, waiting = [], [path]
    while waiting and len(files) < FILES:
        path = waiting.pop(0)
        document = toml(node, path)
        if document is None:
            continue
        files.append({"path": path, **settings(document)})
        seen = {*waiting, *(file["path"] for file in files)}
        for pattern in strings(document.get("imports")):
            found = node.glob(pattern if pattern.startswith("/") else path.rpartition("/")[0] + "/" + pattern)
            waiting += [one for one in found if one not in seen]
    return {"files": files} if files else None


def named(command):
    """The file that a unit's command line names."""
    match = re.search(r"argv\[\]=\S+[^;]*?\s(?:--config|-c)[= ](/\S+)", command)
    return match.group(1) if match else None


def toml(node, path):
    text = node.read(path)
    if text is None:
        return None
    from . import _toml  # noqa: PLC0415 - each reading compiles anew what it loads

    try:
        return _toml.loads(text)
    except ValueError as error:
        node.problem(path, error, "error")
        return None


def settings(document):
    """The few settings that rules judge. ``version`` is 1 where a file does not say."""
    plugins = table(document, "plugins")
    found = {
        "version": document.get("version", 1),
        "disabled": strings(document.get("disabled_plugins")),
        "required": strings(document.get("required_plugins")),
        "plugins": [name for name in CRI_PLUGINS if isinstance(plugins.get(name), dict)],
        "systemd_cgroup": [],
        "sandbox_image": [],
    }
    address = table(document, "grpc").get("address")
    if address:
        found["address"] = str(address)[:200]
    for name in found["plugins"]:
        plugin = plugins[name]
        runtimes = table(plugin, "containerd", "runtimes")
        handler = table(plugin, "containerd").get("default_runtime_name")
        if handler is not None:
            found["default_runtime"] = str(handler)[:60]
        for runtime, one in runtimes.items():
            value = table(one, "options").get("SystemdCgroup")
            if value is not None:
                found["systemd_cgroup"].append({"plugin": name, "runtime": str(runtime)[:60], "value": value is True})
        image = plugin.get("sandbox_image") or table(plugin, "pinned_images").get("sandbox")
        if image:
            found["sandbox_image"].append({"plugin": name, "value": str(image)[:200]})
    return found


def table(value, *keys):
    """A table inside tables; an empty one where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value):
    return [one[:200] for one in value if isinstance(one, str)] if isinstance(value, list) else []


def docker(node, _units, path):
    document = node.json(path)
    if not isinstance(document, dict):
        return None
    driver = next((one.partition("=")[2] for one in strings(document.get("exec-opts")) if one.startswith("native.cgroupdriver=")), None)
    return {"path": path, "live_restore": document.get("live-restore"), "cgroup_driver": driver}


def crio(node, _units, path):
    """The drop-ins win over the file, the later over the earlier."""
    found = {"files": []}
    for one in [path] + node.glob(path + ".d/*"):
        document = toml(node, one)
        if document is not None:
            found["files"].append(one)
            runtime, image = table(document, "crio", "runtime"), table(document, "crio", "image")
            found.update({key: str(runtime[key])[:60] for key in ("cgroup_manager", "conmon_cgroup") if key in runtime})
            found.update({key: str(image[key])[:200] for key in ("pause_image",) if key in image})
    return found if found["files"] else None
