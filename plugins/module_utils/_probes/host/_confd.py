# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Folders of configuration fragments, as systemd, kmod and procps read them."""

from __future__ import annotations

FOLDERS = ("/etc", "/run", "/usr/local/lib", "/usr/lib")


def fragments(node, folder):
    """(path, text) of the fragments that count, in the order in which they are read.

    The name decides the order whatever the folder; of two with one name the earlier folder's counts, and an empty one, or
    a link to /dev/null, is how administrators switch a vendor's off.
    """
    paths = {}
    for top in reversed(FOLDERS):
        above = "%s/%s" % (top, folder)
        paths.update({name: above + "/" + name for name in node.list(above) if name.endswith(".conf")})
    return [(paths[name], _text(node, paths[name])) for name in sorted(paths)]


def _text(node, path):
    return "" if node.target(path) == "/dev/null" else node.read(path) or ""
