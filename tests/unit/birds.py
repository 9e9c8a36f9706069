"""Real BIRDs for tests: each in a network namespace of its own, with nothing of this machine's network to touch."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

PLACE = Path(__file__).parents[2] / ".cache" / "birds"
PACKAGES = {"bird": "1.6", "bird2": "2", "bird3": "3"}  # Debian's names, and the release that each holds
PATIENCE = 30


def program(package, name="bird"):
    """Where requirements/birds.sh has put it; None where it could not."""
    path = PLACE / package / "usr/sbin" / name
    return str(path) if path.exists() else None


def told(package, own, peers, more=""):
    """A configuration as confd writes it for Calico: no kernel routes, and a session with each of {name: "address port N"}."""
    old = package == "bird"
    parts = ["router id %s;" % own, more, "protocol device {}", "graceful restart wait 600;"]
    routes = "import all; export none;"
    for name, neighbor in peers.items():
        lines = ["local as 64512;" if old else "local %s as 64512;" % own, "neighbor %s as 64512;" % neighbor, "multihop;", "graceful restart;"]
        lines += ["source address %s;" % own if old else "", "connect delay time 1;", "connect retry time 1;", "error wait time 1,2;"]
        parts.append("protocol bgp %s { %s %s }" % (name, " ".join(lines), routes if old else "ipv4 { %s };" % routes))
    return "\n".join(parts) + "\n"


@contextmanager
def bird(package, space, place, text, socket="bird.ctl", name="bird"):
    """A BIRD in the foreground of a namespace; its socket lies where Calico's does below ``place``."""
    folder = Path(place) / "var/run/calico"
    folder.mkdir(parents=True, exist_ok=True)
    config, control = Path(place) / (socket + ".conf"), folder / socket
    config.write_text(text)
    libraries = ":".join(glob.glob(str(PLACE / package / "usr/lib/*-linux-*")))
    argv = ["ip", "netns", "exec", space, program(package, name), "-R", "-d", "-c", str(config), "-s", str(control)]
    with open(Path(place) / (socket + ".log"), "wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, "LD_LIBRARY_PATH": libraries})
    try:
        until(lambda: control.exists() or process.poll() is not None)
        assert process.poll() is None, Path(log.name).read_text()
        yield process
    finally:
        process.kill()
        process.wait()


def until(happened, why=lambda: None):
    """Wait until something has happened; tell what was there where it has not."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, why()
        time.sleep(0.1)


def missing(package):
    return (
        ""
        if program(package)
        else "there is no %s: requirements/birds.sh unpacks it" % package
        if shutil.which("apt-get")
        else "%s is only had on Debian" % package
    )
