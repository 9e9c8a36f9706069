# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Faults of the Calico version in use, of which this node shows that it meets them."""

from __future__ import annotations

from ... import _cluster
from ..._calico._host import is_global_unicast
from ..._calico._methods import limits
from ..._calico._re2 import Refused, Untold
from ..._calico._versions import masks_the_internal_ip, passes_over_since
from ..._calico._versions import version as numbers
from .._rule import by_hand, fail, passed, rule, skip, unknown, warn
from ._here import NEEDS, USES, look_at

UPGRADE = by_hand("upgrade Calico to %(fixed)s or newer; until then set the method that calico.wrong_address recommends", disruptive=True)
READINESS_WANTS_ALL = (((3, 2, 0), (3, 2, 6)), ((3, 3, 0), (3, 6, 0)))
REFUSES_LOOSE_FILTER = ((3, 2, 0), (3, 12, 0))


@rule(
    "calico.version",
    "A known fault of this Calico version is met here",
    severity="warning",
    needs=NEEDS,
    uses=(*USES, "host.sysctls"),
    remedy=UPGRADE,
)
def version(*facts):
    """Older releases of Calico have faults that only some nodes meet; told are those for which this node has what they need: a link
    that the release should pass over by its name and does not, kubernetes-internal-ip where it masks the address, loose reverse path
    filtering where Felix ends over it, and a dead peer where readiness wants all of them.
    """
    *known, sysctls, policy = facts
    here = look_at(known, policy)
    if here.silence:
        return (unknown if here.silence.unread else skip)(here.silence.why)
    settings = here.families
    if not settings or not settings[0].version:
        return skip("Calico's version is not known")
    found = [one for setting in settings if not setting.unknown for one in (*_names(here, setting), *_mask(here, setting))]
    found += [*_loose_filter(here, settings[0], sysctls), *_dead_peer(here, settings[0])]
    return found or passed("nothing on this node meets a known fault of Calico %s" % settings[0].version)


def _names(here, setting):
    """Links that newer releases pass over by their names, and this one does not."""
    try:
        limit = limits(setting.method, setting.numbers)
        newer = limits(setting.method, numbers(""))
        missed = [link for link in here.host.backwards() if limit and limit.exclude and limit.verdict(link.name) is None and newer.verdict(link.name)]
    except (Refused, Untold):
        return
    for link in missed:
        held = next((one for one in link.of(setting.family) if is_global_unicast(one.ip)), None)
        if held:
            said = here.foreseen(setting.family)
            since = ".".join(map(str, passes_over_since(link.name) or ()))
            takes = "takes it" if said["link"] == link.name else "would take it if it came last"
            speak = fail if said["link"] == link.name else warn
            message = "Calico %s does not pass over %s (%s) as %s and newer do, and %s" % (setting.version, link.name, held.text(setting.numbers), since, takes)
            yield speak(message, fault="names", link=link.name, address=held.text(setting.numbers), version=setting.version, fixed=since)


def _mask(here, setting):
    if setting.method.startswith("kubernetes-internal-ip") and masks_the_internal_ip(setting.numbers):
        said = here.foreseen(setting.family)
        message = "Calico %s gives the network's address in place of the InternalIP: %s" % (setting.version, said["address"] or "here nothing")
        yield fail(message, fault="mask", version=setting.version, fixed="3.22.4" if setting.numbers < (3, 23, 0) else "3.23.2", address=said["address"])


def _loose_filter(here, setting, sysctls):
    """Felix reads the setting of all links together, and newer systemd sets that to loose."""
    since, until = REFUSES_LOOSE_FILTER
    now = ((sysctls or {}).get("net.ipv4.conf.all.rp_filter") or {}).get("now")
    ignores = str(((here.calico or {}).get("env") or {}).get("FELIX_IGNORELOOSERPF", "")).lower() == "true"
    if since <= setting.numbers < until and now not in (None, "0", "1") and not ignores:
        message = "Felix of Calico %s ends where net.ipv4.conf.all.rp_filter is %s; 3.12 and newer do without it" % (setting.version, now)
        remedy = by_hand("echo net.ipv4.conf.all.rp_filter=1 > /etc/sysctl.d/99-calico.conf && sysctl -p /etc/sysctl.d/99-calico.conf  # or upgrade Calico")
        yield fail(message, remedy, fault="rp_filter", version=setting.version, fixed="3.12.0", rp_filter=now)


def _dead_peer(here, setting):
    calico = here.calico or {}
    meshed = calico.get("backend") == "bird" and (calico.get("bgp") or {}).get("mesh")
    if not meshed or not any(since <= setting.numbers < until for since, until in READINESS_WANTS_ALL):
        return
    dead = [node["name"] for node in here.nodes or () if _cluster.is_ready(node) is False and _cluster.registered(node)]
    own = (here.node or {}).get("name")
    if [name for name in dead if name != own]:
        message = "Calico %s calls calico-node ready only with all BGP peers, and %s is down" % (setting.version, _cluster.listed(dead))
        remedy = by_hand("upgrade Calico to %(fixed)s or newer, or bring back or delete the Nodes that are down")
        yield warn(message, remedy, fault="readiness", version=setting.version, fixed="3.6.0", nodes=dead[:10])
