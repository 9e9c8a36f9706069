"""What a site would declare about these nodes before it lets preflight judge them: goes into the lab's inventory."""

from __future__ import annotations

from .control_plane import PODS, SERVICES
from .kubernetes import VERSION

POLICY = {
    "nodecare_kubernetes_version": VERSION,
    # The nodes have a second network, over which they must not talk to each other.
    "nodecare_networks": {"pods": [PODS], "services": [SERVICES], "nodes": ["10.0.0.0/24"]},
    "nodecare_disable": [
        # User-Mode-Linux has one CPU and so no cpusets. The kubelet starts all the same: it gives no pod a CPU of its own here.
        "host.cgroup",
        # It is right: with upstream's own manifest, only the order of the two NICs keeps Calico on the first network. Stories begin with that.
        "calico.unstable_address",
    ],
    # To start a process takes a guest twenty times as long as a machine: `kubelet --version` two seconds, and more while others use this machine.
    "nodecare_timeout": 20,
    # A guest's only CPU is what the machine leaves to it, and a guest cannot see what is taken by others: they make its own tasks wait.
    # For the same reason some probes of pods outlast their limit, of one second at the least, while everything starts.
    "nodecare_thresholds": {"load_per_cpu": 6, "runtime_slow_s": 10, "runtime_journal_deadlines": 200, "calico_probes_late": 50},
}
