"""A program of the runtime's that writes to a file system which takes nothing: slow at first, by the scheduler's own clock, and stuck later."""

from __future__ import annotations

import pytest
from labs import eventually
from runtimes import preflight

RULE = "runtime.blocked_tasks"
FROZEN = """
set -e; cd /root; modprobe loop; truncate -s 32M frozen.img; mkfs.ext4 -q frozen.img; mkdir frozen; mount -o loop frozen.img frozen
cp /bin/dash runc; fsfreeze -f frozen
systemd-run --quiet --unit=writes /root/runc -c 'echo x >/root/frozen/file'
"""
WELL = "cd /root; fsfreeze -u frozen 2>/dev/null; systemctl stop writes 2>/dev/null; umount frozen 2>/dev/null; rm -rf frozen frozen.img runc; true"
STATE = "ps -o stat= -C runc || true"


@pytest.fixture
def writer(nodes):
    nodes.on("n1", WELL)
    nodes.on("n1", FROZEN)
    eventually("the kernel to keep the writer waiting", lambda: nodes.on("n1", STATE).startswith("D"))
    yield nodes
    nodes.on("n1", WELL)


def test_a_writer_is_slow_and_then_stuck(writer, tmp_path):
    def judged(**more):
        return preflight(writer, tmp_path, "--limit", "n1", nodecare_cluster=False, **more)[RULE]

    assert judged(nodecare_thresholds={"runtime_blocked_s": 3600}) == "warn", "the kernel of the node tells since when"
    eventually("it to be called stuck", lambda: judged() == "fail")
    writer.on("n1", "fsfreeze -u /root/frozen")
    eventually("the writer to have come to its end", lambda: not writer.on("n1", STATE))
    assert judged() in ("pass", "skip")
