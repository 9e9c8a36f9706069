# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Felix, as it answers for itself: the kubelet asks the same two questions."""

from __future__ import annotations

from ..._node import whole
from ._processes import environment, programs

PORT = 9099
QUESTIONS = ("liveness", "readiness")
WRONG = ("timed out", "reporting non-live", "reporting non-ready")


def felix(node):
    """{state, host, port, liveness: {state, code, seconds, ill}, readiness: {the same}}

    ``state`` is that of the first question that was not answered (refused, hung), answered where both were, or off.
    ``ill`` names the components that do not report, since 3.23 as Felix itself lists them.
    """
    told = environment(node, programs(node)) or {}
    host, port = told.get("FELIX_HEALTHHOST", "localhost"), whole(told.get("FELIX_HEALTHPORT", "")) or PORT
    found = {"state": "off", "host": "127.0.0.1" if host in ("localhost", "0.0.0.0", "::") else host, "port": port}
    if told.get("FELIX_HEALTHENABLED", "true").lower() in ("false", "0", "no", "n", "f"):
        return found
    left = node.deadline
    for question in QUESTIONS:
        answer = node.http((found["host"], port), "/" + question, deadline=max(0.1, left))
        left -= answer.seconds
        found[question] = {"state": answer.state, "code": answer.code, "seconds": answer.seconds, "ill": ill(answer.out[:8000])}
        found["state"] = answer.state
        if answer.state != "answered":
            break
    return found


def ill(text):
    """The components in Felix's table that do not report as they must, such as ``InternalDataplaneMainLoop: timed out``."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    wrong = [(cells[0][:60], list(dict.fromkeys(cell for cell in cells[2:4] if cell in WRONG)), cells[4][:100]) for cells in rows if len(cells) > 4]
    return ["%s: %s%s" % (name, ", ".join(how), ", " + detail if detail else "") for name, how, detail in wrong if how][:10]
