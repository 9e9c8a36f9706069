# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. swapoff, one device after the other, beside this process: it may take hours, and must not end with a connection.

Killing it would only put the device back, so nobody does. What it is at is noted below /run, where the next look finds it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess

from ..._node import SEARCH_PATH
from ..._probes import swap
from .. import Failed

PLACE = "/run/nodecare/swapoff"
PATIENCE = 3.0  # seconds that one look waits for what is at work; whoever waits longer looks again
# The program ends after whoever started it, so it leaves its last words and its exit code in files.
SCRIPT = '"$1" "$2" >"$3.said" 2>&1; echo $? >"$3.ends" && mv "$3.ends" "$3.code"'
DELETED = " (deleted)"


def turn_off(node, allows):
    """Turn off what is on, as far as that goes within the patience; answers the areas that are still on.

    ``allows`` is asked before each device whether what is in it still fits into memory, and raises where it does not.
    """
    until = node.stopwatch() + PATIENCE
    while True:
        busy = at_work(node)  # asked first: what is on after that has not been turned off by a swapoff that has ended
        areas = swap.active(node)
        if not areas:
            shutil.rmtree(node.at(PLACE), ignore_errors=True)
            return []
        if not busy:
            area = min(areas, key=lambda one: one["used_kib"])
            _blame(node, area["device"])
            allows(node, area)
            _start(node, area["device"])
        if node.stopwatch() >= until:
            return areas
        node.sleep(0.1)


def at_work(node):
    """The devices that a swapoff of ours is at."""
    return [area["device"] for area in swap.active(node) if _at_work(node, area["device"])]


def _start(node, device):
    program = node.program("swapoff")
    if program is None:
        raise Failed("the node has no program swapoff (package util-linux)")
    if device.endswith(DELETED):
        raise Failed("%s was deleted while it is in use, so only a reboot turns it off; it does not come back" % device[: -len(DELETED)])
    os.makedirs(node.at(PLACE), mode=0o700, exist_ok=True)
    note = node.at(_note(device))
    with _lock(note, os.O_RDWR | os.O_CREAT) as lock:
        _flock(lock, wait=True)  # for whoever asks at the same moment
        subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
            ["/bin/sh", "-c", SCRIPT, "sh", node.at(program), device, note],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={"PATH": SEARCH_PATH, "LC_ALL": "C"},
            pass_fds=(lock,),
        )


def _at_work(node, device):
    """Whether our swapoff of a device runs: the shell and what it starts have inherited a lock, from before they begin until they are gone.

    Their command lines would not do: a program that is just being started has none.
    """
    try:
        with _lock(node.at(_note(device)), os.O_RDWR) as lock:
            return not _flock(lock)
    except OSError:  # none was ever begun
        return False


@contextlib.contextmanager
def _lock(note, flags):
    handle = os.open(note + ".lock", flags | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _flock(handle, wait=False):
    """Whether it could be had."""
    import fcntl  # noqa: PLC0415 - not every Python has it

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _blame(node, device):
    """A swapoff that has ended while its device is still on has failed, and says why, once."""
    note = _note(device)
    code, said = node.number(note + ".code"), (node.read(note + ".said", 4096) or "").strip()
    was_there = node.exists(note + ".lock")
    for suffix in (".lock", ".code", ".ends", ".said"):
        with contextlib.suppress(OSError):
            os.unlink(node.at(note + suffix))
    if was_there and code != 0:
        how = "was killed" if code is None else "ended with %d%s" % (code, ": " + said if said else "")
        raise Failed("swapoff %s %s. Nothing is lost; the device is on as before" % (device, how))


def _note(device):
    return "%s/%s" % (PLACE, "".join(one if one.isalnum() and one.isascii() else "_%x_" % ord(one) for one in device)[:200])
