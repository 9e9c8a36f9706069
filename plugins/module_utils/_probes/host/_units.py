# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Whether what makes a node starts by itself at the next boot."""

from __future__ import annotations

KUBELETS = ("kubelet.service", "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service")
RUNTIMES = ("containerd.service", "crio.service", "docker.service", "cri-docker.service")


def units(node):
    """The kubelet and the runtimes that systemd knows: whether they run, start at boot, and what else starts them."""
    found = node.units(*KUBELETS, *RUNTIMES, "docker.socket", "cri-docker.socket")
    return {
        name: {
            "active": unit.get("ActiveState") == "active",
            "enabled": unit.get("UnitFileState", ""),
            "wanted_by": (unit.get("WantedBy", "") + " " + unit.get("RequiredBy", "")).split(),
        }
        for name, unit in found.items()
    }
