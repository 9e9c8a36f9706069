# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The kubelet: does it run, would it start again, and for how long does the API server believe it?"""

from __future__ import annotations

from .._policy import threshold
from ._rule import by_hand, fail, passed, proven, repaired_by, rule, skip, unknown, warn

RESTARTS = threshold("kubelet_restarts", 5, "How many restarts by systemd are too many for a kubelet that runs for less than kubelet_settled_minutes.")
SETTLED = threshold("kubelet_settled_minutes", 20, "After how many minutes without a restart a kubelet counts as settled.")
CERTIFICATE_DAYS = threshold(
    "kubelet_certificate_days",
    14,
    "How many days before the end of the kubelet's client certificate to warn; less for a certificate that lives less than ten times as long.",
)
DAY = 86400

# What the journal says, what it means, and what to do. Those that have a rule of their own are not repeated here.
COMPLAINTS = {
    "certificate": ("says that a certificate has expired", "journalctl -u kubelet --since -1h | grep -i expired; kubeadm certs check-expiration"),
    "bootstrap": ("cannot get a client certificate", "kubeadm join, with a new token from: kubeadm token create --print-join-command"),
    "pleg": (
        "says that the container runtime does not list its containers within 3 min; look for blocked tasks and disk pressure before any restart",
        "journalctl -u containerd -u docker --since -1h; ps -eo pid,stat,wchan:32,comm | grep ' D'",
    ),
    "runtime_down": ("does not reach the container runtime", "systemctl status containerd crio docker cri-docker"),
    "cgroup_driver": (
        "and the container runtime use different cgroup drivers",
        "make cgroupDriver in /var/lib/kubelet/config.yaml and SystemdCgroup of containerd agree",
    ),
    "config": (
        "does not understand its configuration or flags",
        "journalctl -u kubelet -n 50; check /var/lib/kubelet/config.yaml and /var/lib/kubelet/kubeadm-flags.env",
    ),
    "inotify": ("runs out of inotify instances", "sysctl -w fs.inotify.max_user_instances=8192"),
    "disk_full": ("finds a file system full", "df -h /var/lib/kubelet /var/lib/containerd /var/log; df -i /var/lib/kubelet"),
}


def waits(installed):
    """Why nothing can be said yet about a kubelet that is not there, or that kubeadm has not told about a cluster."""
    if not installed["variant"]:
        return "no kubelet is installed yet"
    if not installed["joined"]:
        return "the kubelet has not joined a cluster yet; until then it restarts every few seconds by design"
    return None


def times(count):
    return "once" if count == 1 else "%d times" % count


def runs(unit, healthz):
    """True, False, or None where neither systemd nor the kubelet itself could be asked."""
    if healthz and healthz["state"] == "answered":
        return healthz["code"] == 200
    if healthz and healthz["state"] in ("refused", "hung"):
        return False
    return unit["active"] == "active" and unit["sub"] == "running" if unit else None


@rule(
    "kubelet.down",
    "The kubelet does not run",
    needs="kubelet.installed",
    uses=("kubelet.unit", "kubelet.healthz"),
    remedy=by_hand("systemctl status %(unit)s; journalctl -u %(unit)s -n 50 --no-pager"),
)
def down(installed, unit, healthz, policy):
    """Without a kubelet no pod starts, stops or is probed, and the node becomes NotReady within a minute.

    A unit that is active is not enough: the kubelet's own health check has to answer as well, unless it is turned off.
    """
    if waits(installed):
        return skip(waits(installed))
    about = {"unit": installed["unit"], **{key: unit[key] for key in ("active", "sub", "result", "exit_status") if unit and key in unit}}
    if unit and (unit["active"] != "active" or unit["sub"] != "running"):
        ended = "; it ended with status %s" % unit["exit_status"] if unit["exit_status"] else ""
        return fail("%s is %s (%s)%s" % (unit["name"], unit["active"], unit["sub"], ended), **about)
    if healthz and healthz["state"] in ("refused", "hung"):
        how = "refuses the connection" if healthz["state"] == "refused" else "does not answer within %g s" % healthz["seconds"]
        return fail(
            "the kubelet's health check on %(address)s:%(port)s %(how)s" % {**healthz, "how": how}, **about, port=healthz["port"], seconds=healthz["seconds"]
        )
    if healthz and healthz["state"] == "answered" and healthz["code"] != 200:
        return fail("the kubelet's health check answers %s: %s" % (healthz["code"], healthz["said"]), **about, code=healthz["code"])
    if runs(unit, healthz) is None:
        return unknown("neither systemd nor the kubelet's health check could be asked")
    return passed("the kubelet runs", **about)


@rule(
    "kubelet.refuses_swap",
    "The kubelet refuses to start because swap is on",
    needs="kubelet.installed",
    uses=("kubelet.journal", "kubelet.unit", "kubelet.healthz", "kubelet.config", "swap.active"),
    remedy=repaired_by("repair_swap", "swapoff %(device)s && systemctl restart %(unit)s; then put the findings of swap.returns right"),
)
def refuses_swap(installed, journal, unit, healthz, config, areas, policy):
    """A kubelet with failSwapOn ends at once with "running with swap on is not supported", and systemd starts it again for ever.

    kubeadm only warns about swap, so a join succeeds and the kubelet fails behind it.
    """
    if not installed["variant"]:
        return skip("no kubelet is installed yet")
    if runs(unit, healthz):
        return proven("the kubelet runs")
    said = next((one for one in journal or [] if one["signature"] == "swap"), None)
    if said:
        on = ", ".join("%(device)s, %(size_kib)d KiB, in use: %(used_kib)d KiB" % area for area in areas or []) or "off by now"
        evidence = {"line": said["line"], "count": said["count"], "device": areas[0]["device"] if areas else "-a", "unit": installed["unit"]}
        return fail("the kubelet refused to start %s in the last hour because swap is on (%s)" % (times(said["count"]), on), **evidence)
    if unit and unit["active"] in ("activating", "failed") and installed["joined"] and areas and config and config["fail_swap_on"]:
        return fail(
            "the kubelet does not come up (%s), swap is on (%s) and failSwapOn is true" % (unit["sub"], areas[0]["device"]),
            device=areas[0]["device"],
            fail_swap_on=True,
        )
    return []


@rule(
    "kubelet.certificate",
    "The kubelet's client certificate is at its end",
    needs=("kubelet.installed", "kubelet.certificate"),
    uses="kubelet.config",
    remedy=by_hand(
        "kubeadm join with a new token, or restore rotation: openssl x509 -noout -enddate -in %(path)s; journalctl -u kubelet -n 50 | grep -i certificate"
    ),
)
def certificate(installed, dates, config, policy):
    """With an expired client certificate the API server turns the kubelet away; the node is NotReady and cannot renew it by itself.

    Rotation starts when 70 to 90 % of the lifetime is over, so a certificate that is in its last tenth is not being rotated.
    """
    if waits(installed):
        return skip(waits(installed))
    if not dates:
        return skip("the kubelet has no client certificate in a file")
    days = dates["left_s"] / DAY
    evidence = {"path": dates["path"], "days_left": round(days, 1), "rotates": bool(config and config["rotate_certificates"])}
    if days <= 0:
        return fail("%s expired %.1f days ago" % (dates["path"], -days), **evidence)
    if dates["not_before"] > dates["not_after"] - dates["left_s"]:
        return fail("%s is not valid yet; is the node's clock right?" % dates["path"], **evidence)
    limit = min(policy[CERTIFICATE_DAYS], (dates["not_after"] - dates["not_before"]) / DAY / 10)
    if days < limit:
        return warn("%s ends in %.1f days, the limit is %.1f" % (dates["path"], days, limit), **evidence)
    return passed("valid for another %.0f days" % days, **evidence)


@rule(
    "kubelet.cgroup_v1",
    "The kubelet refuses cgroup v1",
    needs=("kubelet.cgroup", "kubelet.config"),
    uses=("kubelet.journal", "kubelet.unit", "kubelet.healthz"),
    versions={"kubelet.version": ">=1.35"},
    remedy=by_hand("add systemd.unified_cgroup_hierarchy=1 to the kernel command line and reboot", disruptive=True, reboot=True),
)
def cgroup_v1(version, config, journal, unit, healthz, policy):
    """Since 1.35 a kubelet does not start on cgroup v1 unless failCgroupV1 is false, and support for it is going away."""
    if version == 2:
        return proven("cgroup v2")
    said = next((one for one in journal or [] if one["signature"] == "cgroup_v1"), None)
    evidence = {"cgroup": version, "fail_cgroup_v1": config["fail_cgroup_v1"], "line": said and said["line"]}
    if said and not runs(unit, healthz):
        return fail("the kubelet refuses to run on this node's cgroup v1", **evidence)
    if config["fail_cgroup_v1"] is False:
        return warn("the node has cgroup v1, which failCgroupV1: false still allows; it is to be removed from the kubelet", **evidence)
    if config["from"]["fail_cgroup_v1"] is None:
        return unknown("the node has cgroup v1, and failCgroupV1 could not be read", **evidence)
    return fail("the node has cgroup v1, and this kubelet starts there only with failCgroupV1: false", **evidence)


@rule(
    "kubelet.restarts",
    "The kubelet restarts again and again",
    severity="warning",
    needs=("kubelet.installed", "kubelet.unit"),
    remedy=by_hand("journalctl -u %(unit)s --since -1h --no-pager | grep -iE 'failed|error' | tail -n 30"),
)
def restarts(installed, unit, policy):
    """A kubelet that ends and is started again is Ready in between, so the node looks well at most glances."""
    if waits(installed):
        return skip(waits(installed))
    if not unit or unit["restarts"] is None:
        return skip("systemd does not count this kubelet's restarts")
    evidence = {"unit": unit["name"], "restarts": unit["restarts"], "active_s": unit["active_s"]}
    if unit["restarts"] < policy[RESTARTS]:
        return passed("%d restarts since it was last started by hand or at boot" % unit["restarts"], **evidence)
    if unit["active"] == "active" and unit["active_s"] is not None and unit["active_s"] > policy[SETTLED] * 60:
        return passed("%d restarts, but none for %.0f min" % (unit["restarts"], unit["active_s"] / 60), **evidence)
    runs_for = "runs for %.0f s" % unit["active_s"] if unit["active"] == "active" and unit["active_s"] is not None else "is %s" % unit["active"]
    return fail("restarted %s by systemd, the limit is %d; it %s" % (times(unit["restarts"]), policy[RESTARTS], runs_for), **evidence)


@rule("kubelet.journal", "The kubelet complains in its journal", severity="warning", needs=("kubelet.installed", "kubelet.journal"))
def journal(installed, complaints, policy):
    """Some complaints name their cause so clearly that nobody has to search: PLEG, a runtime that is down, drivers that differ, a full disk."""
    if waits(installed):
        return skip(waits(installed))
    found = [(one, *COMPLAINTS[one["signature"]]) for one in complaints if one["signature"] in COMPLAINTS]
    return [warn("the kubelet %s (%s in the last hour)" % (means, times(one["count"])), remedy=by_hand(remedy), **one) for one, means, remedy in found]
