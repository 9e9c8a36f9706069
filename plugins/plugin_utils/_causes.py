# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which finding explains which, and what would prove that it does not: the knowledge behind a diagnosis, as tables."""

from __future__ import annotations

STALLS = "load.outlier load.saturated load.memory load.disk load.limits"
RUNTIME = "runtime.docker_cannot_reach_containerd runtime.unresponsive runtime.blocked_tasks runtime.cri_disabled runtime.config_version runtime.cgroup_driver"
KUBELET = "kubelet.refuses_swap kubelet.certificate kubelet.cgroup_v1"
START_UP = "calico.no_address calico.address_conflict calico.name calico.datastore_not_ready"
KILLED = "calico.overloaded_node calico.liveness_budget calico.probe_timeout"
TO_THE_API = "cluster.service_path cluster.too_many_not_ready calico.ports host.firewall links.overlap calico.overlap host.time"

# (effect, what its evidence says of its cause where that matters, what may explain it). The causes on the same node count, and
# those of the cluster as a whole. Where the evidence names a rule itself, only that one explains it.
EXPLAINED_BY = (
    ("cluster.node_not_ready", "", "%s kubelet.down kubelet.restarts %s %s host.time node.unreachable" % (KUBELET, RUNTIME, STALLS)),
    ("cluster.node_not_ready", "calico", "calico.init_stuck calico.crashing calico.overloaded_node calico.felix calico.no_address calico.address_conflict"),
    ("cluster.node_not_ready", "api_path", "cluster.too_many_not_ready host.firewall links.overlap host.time"),
    ("cluster.node_not_ready", "machine", "cluster.too_many_not_ready node.unreachable"),
    ("cluster.node_not_ready", "gone", "calico.node_leftovers node.unreachable"),
    ("kubelet.down", "", "%s swap.active kubelet.journal %s %s" % (KUBELET, RUNTIME, STALLS)),
    ("kubelet.restarts", "", "%s kubelet.down swap.active %s %s" % (KUBELET, RUNTIME, STALLS)),
    ("kubelet.journal", "", "%s %s" % (RUNTIME, STALLS)),
    ("swap.active", "", "kubelet.refuses_swap"),
    ("swap.unsafe_to_disable", "", "kubelet.refuses_swap swap.active"),
    ("runtime.unresponsive", "", "runtime.docker_cannot_reach_containerd runtime.config_version runtime.blocked_tasks load.disk load.limits load.memory"),
    ("runtime.slow", "", "runtime.blocked_tasks %s" % STALLS),
    ("runtime.journal", "", "%s %s" % (RUNTIME, STALLS)),
    ("runtime.restarts", "", "%s %s" % (RUNTIME, STALLS)),
    ("load.saturated", "", "load.outlier"),
    ("calico.init_stuck", "runtime", "%s runtime.slow %s" % (RUNTIME, STALLS)),
    ("calico.init_stuck", "api_path", TO_THE_API),
    ("calico.init_stuck", "ipam_migration", "calico.ipam_migration"),
    ("calico.init_stuck", "not_ready", "cluster.node_not_ready"),
    ("calico.init_stuck", "crash", "calico.name calico.datastore_not_ready"),
    ("calico.init_stuck", "unknown", "%s %s cluster.service_path" % (RUNTIME, STALLS)),
    ("calico.ipam_migration", "", "links.ipam_leftovers"),
    ("calico.datastore_not_ready", "", "calico.ipam_migration calico.init_stuck"),
    ("calico.overloaded_node", "", STALLS),
    ("calico.probe_timeout", "", STALLS),
    ("calico.liveness_budget", "", "cluster.datastore_slow"),
    ("calico.crashing", "", "%s %s calico.typha %s cluster.service_path load.memory" % (KILLED, START_UP, RUNTIME)),
    (
        "calico.felix",
        "",
        "calico.init_stuck calico.crashing %s %s calico.typha calico.iptables_mix host.kernel_modules cluster.service_path" % (KILLED, START_UP),
    ),
    ("calico.bird_hung", "", "calico.overloaded_node calico.second_bird calico.crashing %s" % STALLS),
    ("calico.cni_token", "", "calico.crashing calico.felix host.time"),
    ("calico.bgp", "wrong_address", "calico.registered_wrong_address calico.wrong_address"),
    ("calico.bgp", "not_on_node", "calico.registered_wrong_address calico.unstable_address"),
    ("calico.bgp", "address_twice", "calico.address_conflict calico.registered_wrong_address calico.wrong_address host.unique"),
    ("calico.bgp", "not_ready", "cluster.node_not_ready"),
    ("calico.bgp", "stale_node", "calico.node_leftovers cluster.node_not_ready"),
    ("calico.bgp", "no_calico_node", "calico.init_stuck calico.overloaded_node calico.crashing calico.felix cluster.node_not_ready"),
    ("calico.bgp", "bird_silent", "calico.bird_hung calico.second_bird calico.overloaded_node calico.crashing"),
    ("calico.bgp", "port_taken", "calico.second_bird host.ports"),
    ("calico.bgp", "lacked_by_most", "calico.ports host.firewall calico.bird_hung links.overlap"),
    ("calico.bgp", "no_session", "calico.ports host.firewall calico.bird_hung links.overlap"),
    ("calico.bgp", "way", "calico.ports host.firewall links.overlap"),
    ("calico.bgp", "nobody", "calico.node_leftovers"),
    ("calico.registered_wrong_address", "", "links.stray_bridge calico.wrong_address calico.method_not_effective calico.version"),
    ("calico.wrong_address", "", "links.stray_bridge calico.method_not_effective calico.version"),
    ("calico.no_address", "", "calico.method_not_effective calico.version"),
    ("calico.address_conflict", "", "calico.node_leftovers links.stray_bridge host.unique calico.wrong_address"),
    ("links.ambiguous_address", "", "calico.registered_wrong_address calico.wrong_address"),
    ("calico.unstable_address", "", "links.stray_bridge calico.registered_wrong_address calico.wrong_address"),
    ("calico.foreign_tunnels", "", "calico.registered_wrong_address calico.bgp"),
    ("calico.iptables_mix", "", "host.iptables_mix"),
    ("calico.ports", "", "host.firewall calico.second_bird host.ports"),
    ("calico.typha", "", "cluster.node_not_ready calico.ports"),
    ("cluster.service_path", "node_not_ready", "cluster.node_not_ready"),
    ("cluster.service_path", "kube_proxy", "%s %s" % (RUNTIME, STALLS)),
    ("cluster.unread", "", "cluster.unreachable"),
    ("cluster.datastore_slow", "", "load.disk load.saturated load.outlier"),
    ("calico.complains", "no_address", "calico.no_address"),
    ("calico.complains", "not_local", "calico.no_address"),
    ("calico.complains", "bad_method", "calico.no_address"),
    ("calico.complains", "unaddressed", "calico.no_address"),
    ("calico.complains", "address_conflict", "calico.address_conflict"),
    ("calico.complains", "name_twice", "host.unique calico.registered_wrong_address"),
    ("calico.complains", "unconfirmed", "calico.registered_wrong_address"),
    ("calico.complains", "datastore_retry", TO_THE_API),
    ("calico.complains", "cni_token", TO_THE_API),
    ("calico.complains", "api_slow", "cluster.datastore_slow calico.liveness_budget"),
    ("calico.complains", "ipam_upgrade", "cluster.datastore_slow"),
    ("calico.complains", "datastore_locked", "calico.datastore_not_ready"),
    ("calico.complains", "cni_not_ready", "calico.datastore_not_ready"),
    ("calico.complains", "iptables", "host.kernel_modules calico.iptables_mix"),
    ("calico.complains", "typha", "calico.typha"),
    ("calico.complains", "bind", "calico.registered_wrong_address calico.second_bird"),
    ("calico.complains", "ipam_migration", "calico.ipam_migration"),
    ("calico.complains", "cni_unauthorized", "calico.cni_token"),
    ("calico.complains", "cni_nodename", "calico.name calico.felix calico.crashing calico.init_stuck"),
    ("calico.complains", "failed_to_start", START_UP),
)

# Rules that tell what is seen, not what is wrong: where nothing explains them, the search has to go on.
SEEN = ("cluster.node_not_ready", "kubelet.down", "kubelet.restarts", "kubelet.journal", "calico.init_stuck", "calico.crashing", "calico.complains")
# What people call about. A cause of none of these can wait.
FELT = (*SEEN, "calico.bgp", "calico.felix", "calico.datastore_not_ready", "calico.typha", "cluster.service_path", "cluster.too_many_not_ready")

# Effects whose cause is on another node.
ELSEWHERE = ("calico.foreign_tunnels", "calico.ports", "calico.typha", "calico.datastore_not_ready", "cluster.datastore_slow", "calico.address_conflict")

# (effect, cause): the two name the same thing, the effect under the first key of its evidence, the cause under the second.
SAME = {
    ("calico.registered_wrong_address", "links.stray_bridge"): ("link", "bridge"),
    ("calico.wrong_address", "links.stray_bridge"): ("link", "bridge"),
}

# What brings the cause back later: put right together with it.
COMES_BACK_BY = {
    "swap.active": ("swap.returns", "swap.suspects"),
    "kubelet.refuses_swap": ("swap.returns", "swap.suspects"),
    "calico.registered_wrong_address": ("calico.method_not_effective", "calico.unstable_address"),
}

# Effects that do not heal by themselves once their cause is gone: their own repair comes after it.
STAYS = (
    "kubelet.refuses_swap",
    "calico.registered_wrong_address",
    "calico.overloaded_node",
    "calico.bird_hung",
    "calico.cni_token",
    "calico.datastore_not_ready",
)

# What would prove the cause wrong. ``%(…)s`` stands for the evidence of that name, quoted for the shell.
DISPROVED_BY = {
    "swap.active": "swapon --show on %(node)s prints nothing, and the symptom stays after systemctl restart kubelet",
    "kubelet.refuses_swap": "journalctl -u kubelet -n 100 on %(node)s has no 'running with swap on' since its last start",
    "kubelet.certificate": "openssl x509 -checkend 0 -noout -in %(path)s on %(node)s says that it will not expire",
    "kubelet.down": "curl -s http://127.0.0.1:10248/healthz on %(node)s says ok, twice within a minute",
    "runtime.unresponsive": "crictl version on %(node)s answers at once while the symptom stays",
    "runtime.docker_cannot_reach_containerd": "docker ps and ctr version on %(node)s both answer at once while the symptom stays",
    "runtime.blocked_tasks": "ps -eo pid,stat,comm on %(node)s shows no task in state D for longer than a second",
    "load.outlier": "the load of %(node)s falls to that of the others while the symptom stays",
    "load.saturated": "the load of %(node)s falls below its number of CPUs while the symptom stays",
    "load.memory": "free -m on %(node)s shows memory available while the symptom stays",
    "load.disk": "df -h and iostat -dx 2 2 on %(node)s show room and short waits while the symptom stays",
    "links.stray_bridge": "calico-node of %(node)s registers the same address again after %(bridge)s is gone",
    "calico.registered_wrong_address": "the sessions stay down after calico-node of %(node)s has registered its own address",
    "calico.wrong_address": "calico-node of %(node)s registers its own address at its next start",
    "calico.address_conflict": "no other Node holds that address: kubectl get nodes -o yaml | grep projectcalico.org/IPv4Address",
    "calico.node_leftovers": "the machine of that Node answers, and holds the address",
    "calico.no_address": 'the log of calico-node on %(node)s has no "autodetect an IPv4 address" since its last start',
    "calico.ipam_migration": "the log of upgrade-ipam on %(node)s has no 'failed to migrate ipam', or the directory is empty",
    "links.ipam_leftovers": "the log of upgrade-ipam on %(node)s has no 'failed to migrate ipam', or the directory is empty",
    "calico.datastore_not_ready": "kubectl get clusterinformations.crd.projectcalico.org default -o yaml says datastoreReady: true",
    "calico.bird_hung": "birdcl -s %(socket)s show status on %(node)s answers at once, twice within a minute",
    "calico.second_bird": "pgrep -a bird on %(node)s shows Calico's own only",
    "calico.overloaded_node": "calico-node on %(node)s is killed again although its load is that of the others: then see calico.liveness_budget",
    "calico.liveness_budget": "calico-node on %(node)s becomes ready within the time that its liveness probe allows",
    "calico.typha": "nc -zv to port 5473 of each Typha succeeds from the nodes that complain",
    "calico.ports": "nc -zv -w 3 to the peer's port succeeds in both directions",
    "calico.bgp": "birdcl show protocols on %(node)s says Established for all of its peers",
    "calico.crashing": "the pod's restart count does not grow within ten minutes",
    "calico.init_stuck": "the pod leaves Init within a minute",
    "cluster.service_path": "from %(node)s, curl -k -m 5 to the service address of the API server answers",
    "cluster.node_not_ready": "kubectl get node shows it Ready for five minutes while the symptom stays",
    "cluster.too_many_not_ready": "the nodes become Ready one by one, each after a repair of its own",
    "cluster.unreachable": "kubectl get --raw /readyz with the same credentials says ok from this machine",
    "host.time": "timedatectl on %(node)s and on the control plane differ by less than a second",
    "host.firewall": "the symptom stays with the firewall's rules for the cluster's ports in place",
    "node.unreachable": "ssh to %(node)s works from here",
}
