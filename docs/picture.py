# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the README's picture and its table anew, from a real preflight of six SSH targets on this machine (root, sshd, chromium).

Each target is this machine with mounts and links of its own: some are well, some are ill as in the incidents that the collection grew from.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "unit")]

from browser import Browser  # noqa: E402
from patients import SILENT, calm  # noqa: E402

from lab.fleet import Fleet, Target, missing  # noqa: E402

README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "report.png"
BRIDGE = "ip link add br-3a10a9384428 type bridge; ip address add 172.18.0.1/16 dev br-3a10a9384428; ip link set br-3a10a9384428 up"
SWAP = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2\tpartition\t524284\t0\t-2\n"
UNIT = "Id=containerd.service LoadState=loaded ActiveState=active SubState=running UnitFileState=enabled KillMode=process Delegate=yes NRestarts=0"
SYSTEMD = "#!/bin/sh\nprintf '%%s\\n' %s\n" % UNIT
TARGETS = {
    "control-1": Target(calm(1)),
    "worker-1": Target(calm(2)),
    "worker-2": Target(calm(3, **{"/etc/fstab": "/dev/sda2 none swap sw 0 0\n", "/proc/swaps": SWAP})),
    "worker-3": Target(calm(4, BRIDGE)),
    "worker-4": Target(calm(5, SILENT, **{"/usr/local/sbin/systemctl": SYSTEMD})),
    "worker-5": Target(listens=False),
}
CHECKS = ["swap", "links", "runtime", "kubelet", "node", "host.name", "host.time"]


def main():
    why = missing(faces=True)
    if why:
        sys.exit("No picture can be taken here: " + why)
    with Fleet(TARGETS) as targets, tempfile.TemporaryDirectory() as place:
        variables = json.dumps({"nodecare_report_dir": place, "nodecare_checks": CHECKS})
        said = subprocess.run(
            [ROOT / ".venv/bin/ansible-playbook", "playbooks/preflight.yml", "-i", targets.inventory, "-e", variables],
            cwd=ROOT,
            env=targets.environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        ).stdout
        table = re.search(r"Compare the nodes and report\] \**\n(.*?)\n\nReport: ", said, re.DOTALL)
        if not table:
            sys.exit("The preflight gave no table:\n" + said)
        README.write_text(
            re.sub(r"(<!-- table -->\n```text\n).*?(```\n)", lambda kept: kept[1] + table[1] + "\n" + kept[2], README.read_text(), flags=re.DOTALL)
        )
        PICTURE.write_bytes(photograph(Path(place) / "report.html"))
    print("%s, and the table in %s" % (PICTURE.relative_to(ROOT), README.name))


def photograph(page):
    with Browser() as browser:
        browser.send("Emulation.setDeviceMetricsOverride", width=1180, height=860, deviceScaleFactor=1, mobile=False)
        browser.open(page)
        return base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"])


if __name__ == "__main__":
    main()
