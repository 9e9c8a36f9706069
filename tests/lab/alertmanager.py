"""Debian's Alertmanager on loopback, with a configuration of ours."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from datetime import datetime, timedelta, timezone

import pytest
from checkout import CACHE
from labs import Daemon

UNPACKED = CACHE / "prometheus"
# It reads its templates below /usr/share, where this machine has none of them: only this process and its children see that they are there.
WITH_ITS_FILES = ["unshare", "--mount", "sh", "-ec", 'mount -t overlay -o "lowerdir=$0/usr/share:/usr/share" none /usr/share; exec "$@"', str(UNPACKED)]


def program(name):
    unpacked = UNPACKED / "usr/bin" / name
    if not unpacked.exists():
        pytest.skip("no %s here: sh requirements/prometheus.sh" % name)
    return unpacked


class Alertmanager(Daemon):
    def __init__(self, place, configuration, port):
        self.place, self.configuration, self.address = place, configuration, "127.0.0.1:%d" % port

    def started(self):
        (self.place / "alertmanager.yml").write_text(self.configuration)
        argv = [*WITH_ITS_FILES, program("prometheus-alertmanager"), "--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="]
        return subprocess.Popen([*argv, "--web.listen-address=" + self.address], cwd=self.place, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready(self):
        try:
            with urllib.request.urlopen("http://%s/-/ready" % self.address, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def tell(self, *alerts, firing=True):
        """As Prometheus does: an alert that is over has an end."""
        end = datetime.now(timezone.utc) + timedelta(hours=1 if firing else -1)
        begin = end - timedelta(hours=2)
        said = json.dumps([{"labels": labels, "startsAt": begin.isoformat(), "endsAt": end.isoformat()} for labels in alerts]).encode()
        asked = urllib.request.Request("http://%s/api/v2/alerts" % self.address, said, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200
