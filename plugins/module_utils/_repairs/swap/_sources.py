# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. How each source of swap is stopped for good: by the least that does it, and by nothing that touches the swap area.

Every function takes the node as it is foreseen, one source as the probe found it and what the probe said of the boot, and plans what
stops it. Where nothing can be planned the source stays, the next look finds it again, and the repair is refused.
"""

from __future__ import annotations

import re

from ..._changes import ABSENT, NOTHING, directory, file
from ..._probes.swap import at_boot
from ..._probes.swap._boot import GENERATED
from ..._probes.swap._sources import zram_sections
from ..._swap import MASK_WORKS_SINCE

MARK = b"# off by nodecare: "
UNITS, GENERATORS = "/etc/systemd/system", "/etc/systemd/system-generators"
CLOUD_DIRECTORY = "/etc/cloud/cloud.cfg.d"
CLOUD_FILE = CLOUD_DIRECTORY + "/zz-nodecare-no-swap.cfg"
CLOUD_TEXT = b"# Written by nodecare: a node of Kubernetes gets no swap from cloud-init.\nswap: {size: 0}\n"


def fstab(view, source, boot):
    """The line becomes a comment, and nothing else in the file changes."""
    path = view.paths.settled("/etc/fstab")
    lines = view.state(path).content.split(b"\n")
    lines[source["line"] - 1] = MARK + lines[source["line"] - 1]
    view.plan(path, file(b"\n".join(lines), like=view.state(path)), "line %(line)d names %(what)s" % source)


def gpt_auto(view, source, boot):
    """A mask of swap.target, which is all that pulls in what the generator makes of a swap partition.

    The attribute "no-auto" of the partition would be a write to the table of the root disk, and a mask of the generator takes the mounts
    away that it may make of other partitions. Before systemd 244 the device pulls in its swap too: there the generator is masked, or the
    partition's unit where the generator makes more than swap.
    """
    if (boot["systemd"] or 0) >= MASK_WORKS_SINCE:
        _mask_target(view, "systemd-gpt-auto-generator hangs %(what)s on it; the partition and the generator stay as they are" % source)
    else:
        generator(view, source, boot)


def unit(view, source, boot):
    """A mask in /etc, or where the administrator's own unit lies there, the end of all that wants it."""
    _stop(view, source["unit"], "it turns %(what)s on" % source)


def service(view, source, boot):
    """As for a unit: such a service calls swapon itself, so a mask of swap.target does not stop it."""
    if boot["running"]:
        _stop(view, source["unit"], "it makes %(what)s (%(mechanism)s)" % source)


def generator(view, source, boot):
    """A generator that makes nothing but swap is masked; of one that makes more, only the unit."""
    name = source["generator"].rsplit("/", 1)[-1]
    path = "%s/%s" % (GENERATORS, name)
    if _makes_only_swap(view, name) and view.state(path).kind != "file":
        _plan_link(view, path, "it makes %(what)s and nothing but swap" % source)
    elif source["unit"]:
        _stop(view, source["unit"], "%s makes it of %s, and more than swap" % (name, source["what"]))


def kernel_command_line(view, source, boot):
    """The boot loader's configuration is left alone: what systemd makes of that option hangs on swap.target."""
    _mask_target(view, "systemd.swap_extra= on the kernel command line hangs %(what)s on it" % source)


def waagent(view, source, boot):
    """The agent reads this when it starts, so it needs no restart now."""
    path = view.paths.settled("/etc/waagent.conf")
    content = re.sub(rb"(?m)^([ \t]*ResourceDisk\.EnableSwap[ \t]*=[ \t]*)[yY](?=\s|$)", rb"\1n", view.state(path).content)
    view.plan(path, file(content, like=view.state(path)), "the Azure agent makes %(what)s" % source)


STOPS = {
    "fstab": fstab,
    "gpt_auto": gpt_auto,
    "unit": unit,
    "generator": generator,
    "zram_generator": generator,
    "rpi_swap": generator,
    "kernel_command_line": kernel_command_line,
    "waagent": waagent,
}


def stop(view, source, boot):
    STOPS.get(source["mechanism"], service)(view, source, boot)


def cloud_init(view):
    """A file that comes last among the administrator's: what the instance's own data say still wins, and is only named."""
    if view.state(CLOUD_FILE).kind == "absent":
        _directories(view, CLOUD_DIRECTORY)
        view.plan(CLOUD_FILE, file(CLOUD_TEXT), "cloud-init makes swap on a new instance")


def last_resort(view, boot):
    """swap.target, for what is left and hangs on it."""
    if boot["running"] and not boot["target_masked"]:
        _mask_target(view, "what else brings swap back hangs on it")


# -- systemd's ways ------------------------------------------------------------------------------------------------------


def _stop(view, name, why):
    if view.state("%s/%s" % (UNITS, name)).kind != "file":
        return _plan_link(view, "%s/%s" % (UNITS, name), why)
    for wants in at_boot(view).wants.get(name, ()):
        if wants.startswith("/etc/"):
            view.plan("%s/%s" % (wants, name), ABSENT, why)
        else:  # a link of the vendor's, hidden by one of the same name
            _plan_link(view, "%s/%s/%s" % (UNITS, wants.rsplit("/", 1)[-1], name), why)
    return None


def _mask_target(view, why):
    _plan_link(view, UNITS + "/swap.target", why)


def _plan_link(view, path, why):
    _directories(view, path.rsplit("/", 1)[0])
    view.plan(path, NOTHING, why)


def _directories(view, path):
    if view.state(path).kind == "absent":
        _directories(view, path.rsplit("/", 1)[0])
        view.plan(path, directory(), "what is to lie there needs it")


def _makes_only_swap(view, name):
    """Whether a generator made nothing of this boot that is not about swap, and is not told to."""
    if name == "zram-generator" and any(
        values.get("mount-point") or values.get("fs-type", "swap") not in ("", "swap") for values in zram_sections(view).values()
    ):
        return False
    mounts = [path for where in GENERATED for path in view.glob(where + "/*.mount") + view.glob(where + "/*.automount")]
    return not any(("by " + name) in (view.read(path, 1 << 12) or "") for path in mounts)
