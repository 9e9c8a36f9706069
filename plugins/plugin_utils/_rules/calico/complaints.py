# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. What calico-node and the CNI plugin complain about in their logs."""

from __future__ import annotations

from ... import _cluster
from ..._policy import threshold
from .._rule import by_hand, fail, passed, rule, skip, unknown, warn
from ._programs import absent, pod
from ._sessions import SETTLING

LOG_AGE = threshold("calico_log_age_s", 900.0, "Seconds for which a complaint in the logs of calico-node or the CNI plugin counts.")

# signature: (verdict, what it means, what to do, how often it must come)
ENDS, HURTS = fail, warn
COMPLAINTS = {
    "no_address": (ENDS, "the detection method finds no address", "see calico.no_address", 1),
    "not_local": (ENDS, "the address that can-reach leads to is on no link", "see calico.no_address", 1),
    "bad_method": (ENDS, "the detection method is none of Calico's", "correct IP_AUTODETECTION_METHOD; see calico.no_address", 1),
    "address_conflict": (ENDS, "another Calico node has the same address", "see calico.address_conflict", 1),
    "name_twice": (HURTS, "the address has changed, or two machines have one node name", "see host.unique and calico.registered_wrong_address", 1),
    "unconfirmed": (HURTS, "the registered address is on no link of this node", "see calico.registered_wrong_address", 1),
    "unaddressed": (ENDS, "IP=none leaves it without an address", "set IP=autodetect; see calico.no_address", 1),
    "unauthorized": (ENDS, "the datastore refuses its token or certificate", "compare the ClusterRole calico-node with the version's manifest", 1),
    "datastore_retry": (ENDS, "it reaches neither the API server nor etcd", "see cluster.service_path; curl -k https://<the API server>/livez", 3),
    "api_slow": (ENDS, "the API server did not answer within the fixed 2 s, or not at all", "see cluster.datastore_slow", 1),
    "node_resource": (
        ENDS,
        "it may not write its Node, or its name is not valid",
        "kubectl auth can-i patch nodes/status --as=system:serviceaccount:%(namespace)s:calico-node",
        2,
    ),
    "ipam_upgrade": (ENDS, "bringing its IPAM up to date took longer than 90 s", "see cluster.datastore_slow", 1),
    "tunnel_address": (HURTS, "no address is left for its tunnel", "calicoctl ipam check; enable or enlarge an IP pool", 1),
    "failed_to_start": (ENDS, "start-up ended with an error", "read the lines above it", 1),
    "datastore_locked": (ENDS, "datastoreReady is false for the whole cluster", "see calico.datastore_not_ready", 2),
    "rpf_loose": (ENDS, "net.ipv4.conf.all.rp_filter is 2, which Calico before 3.12 refuses", "sysctl -w net.ipv4.conf.all.rp_filter=1", 1),
    "iptables": (HURTS, "the packet filter refuses Felix's rules", "see host.kernel_modules and calico.iptables_mix", 3),
    "ipset": (HURTS, "the kernel holds sets that Calico's ipset does not understand", "a newer Calico, or a reboot of the drained node", 1),
    "mtu": (HURTS, "no NIC has a name of mtuIfacePattern, so 1460 is taken for its MTU", "set mtuIfacePattern of FelixConfiguration to the NICs' names", 1),
    "typha": (HURTS, "no Typha is reached", "see calico.typha", 2),
    "bind": (HURTS, "BIRD cannot use its own address or port", "see calico.registered_wrong_address and calico.second_bird", 2),
    "ipam_migration": (ENDS, "the migration of addresses of an earlier network fails again and again", "see calico.ipam_migration", 3),
    "node_name_missing": (ENDS, "upgrade-ipam is not told the node's name", "set KUBERNETES_NODE_NAME from spec.nodeName, as Calico's manifest does", 1),
    "cni_token": (ENDS, "install-cni gets no token: it does not reach the API server, or may not ask for one", "see cluster.service_path", 1),
    "cni_folder": (ENDS, "/opt/cni/bin cannot be written", "mount | grep -E ' /opt| /usr'", 1),
    "shared_mount": (ENDS, "a mount is not shared with the host", "mount --make-rshared /", 1),
    "cni_unauthorized": (ENDS, "the CNI plugin's token is refused: no pod starts or ends", "see calico.cni_token", 1),
    "cni_not_ready": (ENDS, "datastoreReady is false: no pod starts", "see calico.datastore_not_ready", 1),
    "cni_no_addresses": (ENDS, "the IP pool has no address left for this node", "calicoctl ipam show --show-blocks; calicoctl ipam check", 1),
    "cni_route": (HURTS, "two pods have one address", "calicoctl ipam check --show-problem-ips", 1),
    "cni_nodename": (ENDS, "the CNI plugin does not find /var/lib/calico/nodename", "see calico.felix and calico.name", 1),
}
ONCE = ("mtu", "ipset", "tunnel_address")  # said once and true for as long as it runs
LOGS = "kubectl -n %(namespace)s logs %(pod)s -c %(container)s --tail=100"


@rule(
    "calico.complains",
    "calico-node or the CNI plugin complains in its log",
    needs=("calico.signs", "calico.logs", "calico.processes"),
    uses=("links.cni", "calico.nodename"),
)
def complains(signs, logs, processes, cni, nodename, policy):
    """Known complaints with what they mean. A container that is restarted again and again says why only in its log's last lines.

    What was said before the container came up does not count, nor what is long ago or did not come again.
    """
    why_not = absent(signs, processes, cni)
    if why_not:
        return skip(why_not)
    if not logs:
        return unknown("there are no logs of calico-node in /var/log/pods")
    current = _current(logs)
    over = {"cni_nodename"} if nodename else set()  # it is there by now
    found = [verdict for one in current for verdict in _of_log(one, policy) if verdict.evidence["signature"] not in over]
    return _surest(found) or passed("the logs of %s hold no known complaint" % ", ".join(sorted({one["container"] for one in current})))


def _current(logs):
    """The newest attempt of each container; the one before it tells why it ended, as long as the newest has not come further."""
    newest = {}
    for one in logs:
        if one["attempt"] >= newest.get(one["container"], one)["attempt"]:
            newest[one["container"]] = one
    return [one for one in logs if newest[one["container"]] is one or newest[one["container"]]["stage"] not in ("started", "running", None)]


def _of_log(log, policy):
    for said in log["complaints"]:
        verdict, meaning, advice, least = COMPLAINTS.get(said["signature"], (None, "", "", 1))
        if verdict and said["count"] >= least and not _is_past(log, said, policy):
            yield verdict(*_told(log, said, meaning, advice), **_evidence(log, said))


def _is_past(log, said, policy):
    """Whether the container got on since, or it is long ago."""
    if said["over"] or said["age_s"] is None:
        return said["over"]
    went_on = said["age_s"] - (log["ended_s"] or 0)
    return said["age_s"] > policy[LOG_AGE] or (went_on > policy[SETTLING] and said["signature"] not in ONCE)


def _told(log, said, meaning, advice):
    times = "" if said["count"] == 1 else "%d times, " % said["count"]
    when = "" if said["age_s"] is None else "%s ago" % _cluster.span(max(0, said["age_s"]))
    message = "%s: %s (%slast %s): %s" % (log["container"], meaning, times, when or "at an unknown time", said["line"])
    return message, by_hand(advice + "; " + LOGS if log["pod"] else advice)


def _evidence(log, said):
    names = pod([log])
    return {**names, "container": log["container"], "attempt": log["attempt"], **{key: said[key] for key in ("signature", "count", "age_s", "line")}}


def _surest(found):
    """That start-up failed is only said where nothing says why."""
    plain = [one for one in found if one.evidence["signature"] != "failed_to_start"]
    return plain or found
