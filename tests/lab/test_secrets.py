"""Nothing secret is shown, however much a run is told to tell: each playbook on a real node, with the real keys and tokens of node and cluster."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from labs import ROOT

# awx_content is about AWX, and asks no node
PLAYBOOKS = sorted(path.stem for path in ROOT.glob("playbooks/*.yml") if path.stem != "awx_content")
NODE = "n1"
KEPT = "cat /etc/kubernetes/*.conf /etc/cni/net.d/*kubeconfig; find /var/lib/kubelet/pki /etc/kubernetes/pki -name '*.pem' -o -name '*.key' | xargs -r cat"
TOKENS = "find /var/lib/kubelet/pods -path '*serviceaccount*' -name token | xargs -r cat; find /var/lib/kubelet/pods -name token | head -n 20 | xargs -r cat"
PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+(.*?)\s+-----END", re.DOTALL)
DATA = re.compile(r"(?:client-key-data|token): *['\"]?([A-Za-z0-9+/=._-]{40,})")
LONG = re.compile(r"[A-Za-z0-9+/=._-]{40,}")
LEAST = 40  # characters of a secret that would give it away


@pytest.fixture(scope="module")
def secrets(cluster):
    """{where it is kept: texts of which none may be shown}"""
    config = yaml.safe_load(Path(cluster.do("kubeconfig")).read_text())
    found = {
        "the administrator's key": _of_keys(config["users"][0]["user"]["client-key-data"]),
        "keys and tokens on the node": _of_text(cluster.on(NODE, KEPT)),
        "tokens of pods": LONG.findall(cluster.on(NODE, TOKENS)),
        "the run's token": [cluster.kubectl("-n", "kube-system", "create", "token", "default")],
    }
    assert all(found.values()), {where: len(texts) for where, texts in found.items()}
    return found


def _of_text(text):
    keys = [line for body in PEM.findall(text) for line in body.split() if len(line) >= LEAST]
    return keys + [part for data in DATA.findall(text) for part in _of_keys(data)]


def _of_keys(data):
    """As it is written, and the lines of a key that is inside."""
    try:
        inside = base64.b64decode(data, validate=True).decode()
    except ValueError:
        inside = ""
    return [data, *(line for body in PEM.findall(inside) for line in body.split() if len(line) >= LEAST)]


@pytest.fixture(scope="module")
def kubeconfig(cluster, secrets, tmp_path_factory):
    """The administrator's, by a key and by a token at once: a run then has both."""
    config = yaml.safe_load(Path(cluster.do("kubeconfig")).read_text())
    (config["users"][0]["user"]["token"],) = secrets["the run's token"]
    file = tmp_path_factory.mktemp("secrets") / "config"
    file.write_text(yaml.safe_dump(config))
    return file


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_nothing_secret_is_shown(playbook, cluster, secrets, kubeconfig, tmp_path):
    """Whether the repair refuses does not matter here."""
    given = {"nodecare_report_dir": str(tmp_path / "report"), "nodecare_wait": 30, "nodecare_reboot_ok": False, "nodecare_save_facts": True}
    argv = ["-i", "lab/hosts.sh", "playbooks/%s.yml" % playbook, "--limit", NODE, "--check", "--diff", "-vvv", "-e", json.dumps(given)]
    said = _said(cluster, argv, K8S_AUTH_KUBECONFIG=str(kubeconfig))
    written = [file.read_text(errors="replace") for file in (tmp_path / "report").rglob("*") if file.is_file()] if (tmp_path / "report").exists() else []
    shown = {where: sum(text in said or any(text in one for one in written) for text in texts) for where, texts in secrets.items()}
    assert not any(shown.values()), shown


def _said(cluster, argv, **environment):
    done = subprocess.run(
        cluster.command("exec", "--", Path(sys.executable).with_name("ansible-playbook"), *argv),
        cwd=ROOT, env=cluster.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert "PLAY RECAP" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr
