# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Host: the system under Kubernetes, as it is now and as it will be after the next boot."""

from __future__ import annotations

from ._cgroup import cgroup
from ._clock import time
from ._firewall import firewalls, iptables
from ._identity import boot, identity, kernel, name, os_release, resolv, role, security, virtualisation
from ._ipvs import ipvs
from ._modules import modules
from ._ports import ports
from ._sysctl import sysctls
from ._units import units

FACTS = {
    "os": os_release,
    "kernel": kernel,
    "virtualisation": virtualisation,
    "boot": boot,
    "role": role,
    "cgroup": cgroup,
    "modules": modules,
    "sysctls": sysctls,
    "security": security,
    "name": name,
    "identity": identity,
    "resolv": resolv,
    "ports": ports,
    "ipvs": ipvs,
}
WAITING = {"time": time, "units": units, "firewalls": firewalls, "iptables": iptables}
UNITS = (
    *("chrony.service", "chronyd.service", "ntp.service", "ntpd.service", "ntpsec.service", "openntpd.service", "systemd-timesyncd.service"),
    *("phc2sys.service", "phc2sys@*.service", "vmtoolsd.service", "open-vm-tools.service"),
    *("firewalld.service", "ufw.service", "nftables.service"),
    *("kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service"),
    *("containerd.service", "crio.service", "docker.service", "cri-docker.service", "docker.socket", "cri-docker.socket"),
)
