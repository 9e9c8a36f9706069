# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Which version of Calico does what when it looks for a node's address; read in the sources of every release."""

from __future__ import annotations

import re
from functools import lru_cache

from . import _re2

OLDEST = (3, 2, 0)

_FIRST = ("docker.*", "cbr.*", "dummy.*", "virbr.*", "lxcbr.*", "veth.*", "lo", "cali.*", "tunl.*", "flannel.*", "kube-ipvs.*")
_WITH_CNI = (*_FIRST, "cni.*")
_ANCHORED = tuple("^" + one for one in _WITH_CNI)
_TUNNELS = (*_ANCHORED, r"^vxlan\.calico.*", r"^vxlan-v6\.calico.*", r"^wireguard\.cali.*", r"^wg-v6\.cali.*")
_NODELOCALDNS = (*_TUNNELS, "^nodelocaldns.*")
_NEWEST = (*_NODELOCALDNS[:3], "^podman.*", *_NODELOCALDNS[3:7], "^br-.*", *_NODELOCALDNS[7:])  # their order is in Calico's words

# Patches of an older minor got what the first release of a newer one had not.
EXCLUDED = (
    (OLDEST, _FIRST),
    ((3, 15, 0), _WITH_CNI),
    ((3, 23, 4), _ANCHORED),
    ((3, 23, 5), _TUNNELS),
    ((3, 24, 0), _WITH_CNI),
    ((3, 24, 3), _ANCHORED),
    ((3, 24, 4), _TUNNELS),
    ((3, 24, 6), _NODELOCALDNS),
    ((3, 25, 0), _NEWEST),
)

NAMES_THE_METHOD_RIGHT = (3, 9, 0)
MONITOR = (3, 15, 2)
NONE_KEEPS = (3, 16, 0)
NEEDS_ONE_ADDRESS = (3, 16, 3)
MASK_OF_LINK = (3, 18, 0)
LINKS_ARE_STORED = (3, 31, 0)
ERRORS_ARE_WRAPPED = PEERS_HAVE_NO_MASK = (3, 32, 0)


class VersionError(ValueError):
    """A text that names no version of Calico whose sources were read."""


def version(text):
    """v3.31.0, 3.31 and 3.31.0-0.dev as numbers; without a patch the first release is meant, without anything the newest."""
    text = str(text or "").strip()
    if text in ("", "master", "latest"):
        return (9999, 0, 0)
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])", text)
    if not found:
        raise VersionError("%r is no version of Calico; give it as 3.31.0" % text)
    known = tuple(int(part or 0) for part in found.groups())
    if known < OLDEST:
        raise VersionError("Calico %s is older than %s, the oldest whose choice is known" % (text, ".".join(map(str, OLDEST))))
    return known


def excluded(known):
    """The names that first-found and skip-interface pass over, as regular expressions of Go's."""
    return [names for since, names in EXCLUDED if since <= known][-1]


@lru_cache(maxsize=4096)
def passes_over(name, known):
    """Whether first-found passes a link over by its name."""
    return _passed_over(excluded(known))(name)


@lru_cache(maxsize=4096)
def passes_over_since(name):
    """The release from which on every one passes such a name over, or None."""
    first = None
    for since, names in EXCLUDED:
        first = (first or since) if _passed_over(names)(name) else None
    return first


@lru_cache(maxsize=len(EXCLUDED))
def _passed_over(names):
    return _re2.compiled("(" + ")|(".join(names) + ")")


def masks_the_internal_ip(known):
    """Whether kubernetes-internal-ip gives the network's address in place of the node's: 10.0.2.0/24 for 10.0.2.15/24."""
    return (3, 22, 0) <= known < (3, 22, 4) or (3, 23, 0) <= known < (3, 23, 2)


def skips_without_backend(known):
    """Whether CALICO_NETWORKING_BACKEND=none means that no address is looked for."""
    return known < (3, 16, 0) or known >= (3, 26, 2)
