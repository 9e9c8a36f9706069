"""The probe's timing of API servers, against servers of our own that are slow, dumb, closed, not ready or speak no TLS."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
import time

import pytest
from ansible_collections.nodecare.kubernetes.plugins.module_utils._node import Node
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.host import _ports
from ansible_collections.nodecare.kubernetes.plugins.module_utils._probes.path import _peers, _servers
from hypothesis import given
from hypothesis import strategies as st
from recorded import read

REFUSAL = b'{"kind":"Status","status":"Failure","reason":"Unauthorized","code":401}'
NOT_READY = b"[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\nreadyz check failed\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A server certificate that ended an hour ago: this one is only measured, not trusted."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
    dates = (now - datetime.timedelta(days=365), now - datetime.timedelta(hours=1))
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(dates[0]).not_valid_after(dates[1]).sign(key, hashes.SHA256())
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(key.private_bytes(*plain) + made.public_bytes(serialization.Encoding.PEM))
    return file


class Server:
    """Answers each connection in a thread, as it is told."""

    def __init__(self, certificate=None, before=0.0, each=0.0, code=b"401 Unauthorized", body=REFUSAL, ready=(b"200 OK", b"ok"), header=b"", dumb=False):
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.before, self.each, self.dumb, self.header = before, each, dumb, header
        self.said = {b"/readyz": ready, b"/version": (code, body)}
        self.asked, self.open = [], []
        self.link = socket.create_server(("127.0.0.1", 0))
        self.target = "127.0.0.1:%d" % self.link.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                link, _address = self.link.accept()
                self.open.append(link)
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link):
        with contextlib.suppress(OSError, ssl.SSLError):
            if self.dumb:
                return
            time.sleep(self.before)
            if self.context:
                link = self.context.wrap_socket(link, server_side=True)  # noqa: PLW2901
                self.open.append(link)
            while True:
                text = b""
                while b"\r\n\r\n" not in text:
                    chunk = link.recv(4096)
                    if not chunk:
                        return
                    text += chunk
                self.asked.append(text)
                time.sleep(self.each)
                code, body = self.said[text.split()[1]]
                link.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (code, len(body), self.header, body))

    def close(self):
        self.link.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept(), which would keep it open
        for link in [self.link, *self.open]:
            link.close()


@contextlib.contextmanager
def server(*arguments, **options):
    one = Server(*arguments, **options)
    try:
        yield one
    finally:
        one.close()


def measured(target, deadline=3.0):
    node = Node("/nonexistent", deadline, targets={"api": [target]})
    (said,) = _servers.api(node)
    return said, node.problems


def test_a_quick_one(certificate):
    with server(certificate) as one:
        said, problems = measured(one.target)
    assert (said["state"], said["talks"], said["failed"], said["code"], said["from"]) == ("answered", 4, 0, 401, "targets")
    assert {step: said[step]["n"] for step in ("connect", "tls", "answer")} == {"connect": 4, "tls": 4, "answer": 8}
    assert said["answer"]["p50"] <= said["answer"]["p90"] <= said["answer"]["max"] < 1
    assert said["ready"]["code"] == 200 and said["ready"]["failing"] == []
    assert -3700 < said["certificate"]["left_s"] < -3500
    assert problems == []
    assert not any(b"uthorization" in text or b"ookie" in text for text in one.asked)


def test_a_slow_one(certificate):
    with server(certificate, before=0.3, each=0.2) as one:
        said, _problems = measured(one.target)
    assert said["connect"]["p50"] < 0.25
    assert 0.25 <= said["tls"]["p50"] < 1.5 and 0.15 <= said["answer"]["p50"] < 1.4
    assert (said["state"], said["failed"]) == ("answered", 0)


def test_one_that_takes_longer_than_there_is_time(certificate):
    with server(certificate, each=30) as one:
        begun = time.monotonic()
        said, _problems = measured(one.target, 1.0)
    assert time.monotonic() - begun < 25
    assert (said["state"], said["at"], said["how"], said["failed"]) == ("hung", "answer", "hung", 1)
    assert said["tls"]["n"] == 1 and "answer" not in said


def test_one_whose_etcd_is_ill(certificate):
    with server(certificate, ready=(b"500 Internal Server Error", NOT_READY)) as one:
        said, _problems = measured(one.target)
    assert said["state"] == "answered" and said["ready"]["code"] == 500 and said["ready"]["failing"] == ["etcd"]


def test_one_that_closes_after_each_answer(certificate):
    with server(certificate, header=b"Connection: close\r\n") as one:
        said, _problems = measured(one.target)
    assert (said["state"], said["answer"]["n"]) == ("answered", 4)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_etcd_that_wants_a_certificate_has_answered(certificate, version):
    """Before 1.3 it says so within the handshake."""
    with server(certificate, before=0.1) as one:
        one.context.verify_mode, one.context.maximum_version = ssl.CERT_REQUIRED, version
        (said,) = _servers.etcd(Node("/nonexistent", 3.0, targets={"etcd": ["https://" + one.target]}))
    assert (said["state"], said["failed"]) == ("answered", 0), said
    assert said["tls"]["n"] == 4 and 0.05 <= said["tls"]["p50"] < 1.5


def test_others_that_are_none(certificate):
    with server() as plain:
        said, _problems = measured(plain.target, 1.0)
        assert (said["at"], said["state"]) in (("tls", "failed"), ("tls", "hung"))
    with server(dumb=True) as dumb:
        said, _problems = measured(dumb.target, 0.5)
        assert (said["state"], said["at"]) == ("hung", "tls")
    said, _problems = measured(plain.target)
    assert (said["state"], said["at"], said["how"]) == ("refused", "connect", "refused")
    with server(certificate) as one:
        port = one.target.rpartition(":")[2]
        said = Node("/nonexistent", 1.0).converse(("127.0.0.1", int(port)), ".x" * 80, [])
        assert (said["state"], said["at"]) == ("failed", "tls")
    for target in ("https://", "nobody.invalid:6443", "-", "[::1", "a b", "10.0.0.1:99999"):
        said, _problems = measured(target, 0.5)
        assert (said["state"], said["at"]) == ("failed", "address"), target


KUBECONFIG = "apiVersion: v1\nclusters:\n- cluster:\n    server: %s\n  name: x\n"
ETCD = '{"name": "k8s-pod-network", "plugins": [{"type": "calico", "etcd_endpoints": "https://10.0.0.1:2379,http://10.0.0.2:2379"}]}'


@pytest.mark.parametrize(
    ("files", "servers", "etcd"),
    [
        ({}, [], []),
        ({"/etc/kubernetes/kubelet.conf": KUBECONFIG % "https://10.0.0.1:6443"}, ["10.0.0.1:6443"], []),
        ({"/etc/kubernetes/bootstrap-kubelet.conf": KUBECONFIG % '"https://api.example/"'}, ["api.example:443"], []),
        ({"/etc/kubernetes/kubelet.conf": KUBECONFIG % "https://[fd00::1]:6443"}, ["[fd00::1]:6443"], []),
        ({"/etc/kubernetes/kubelet.conf": "no: [yaml"}, [], []),
        ({"/etc/cni/net.d/10-calico.conflist": ETCD}, [], ["10.0.0.1:2379", "10.0.0.2:2379"]),
        ({"/etc/cni/net.d/10-calico.conflist": '["list", 3]'}, [], []),
    ],
)
def test_who_is_asked(files, servers, etcd, tmp_path):
    """What a recorded machine reaches is recorded, too: nothing here leaves this one."""
    facts = read(None, {"files": files}, tmp_path, ["path"])
    assert [one["target"] for one in facts["path"]["api"]] == servers
    assert [one["target"] for one in facts["path"]["etcd"]] == etcd
    assert facts["path"]["peers"]["asked"] == 0


@given(st.one_of(st.text(max_size=60), st.from_regex(r"(https?://)?[\[\]a-z0-9.:]{0,20}(:\d{1,7})?/?", fullmatch=True)))
def test_any_text_is_a_place_or_none(text):
    host, port = _servers.place(text, 6443)
    assert host is None or (0 <= port <= 65535 and not set(host) & set(" /\r\n\"'"))
    assert isinstance(_servers.shown(host, port), str)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_the_middle_lies_before_nine_of_ten(values):
    said = _servers.spread(values)
    assert min(values) <= said["p50"] <= said["p90"] <= said["max"] == max(values)


ROWS = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:00B3 0200000A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1
   1: 0100000A:A000 0300000A:00B3 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1
   2: 0100000A:280A 0400000A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1
   3: 00000000:00B3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1
"""


def test_what_is_in_use(tmp_path):
    """A session with BIRD counts whoever began it; that somebody came to this node's kubelet says nothing about theirs."""
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/tcp").write_text(ROWS)
    used = _peers.in_use(Node(str(tmp_path)))
    assert {("10.0.0.2", 179), ("10.0.0.3", 179)} <= used
    assert ("10.0.0.4", 10250) not in used


def test_a_session_with_a_port_of_its_own_is_in_use(tmp_path):
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/tcp").write_text(ROWS.replace("00B3", "00B2"))
    used = _peers.in_use(Node(str(tmp_path), targets={"bgp": 178}))
    assert {("10.0.0.2", 178), ("10.0.0.3", 178)} <= used
    assert ("10.0.0.2", 178) not in _peers.in_use(Node(str(tmp_path), targets={"bgp": None}))


def test_connections_are_read_once_and_anew_where_they_could_not_be_read(tmp_path):
    """The kernel takes its time to list them, and three probes ask."""
    (tmp_path / "proc/net").mkdir(parents=True)
    file, node = tmp_path / "proc/net/tcp", Node(str(tmp_path))
    assert ("10.0.0.2", 179) not in _peers.in_use(node)
    file.write_text(ROWS)
    assert ("10.0.0.2", 179) in _peers.in_use(node)
    file.write_text("")
    assert ("10.0.0.2", 179) in _peers.in_use(node)
    assert [port for port, _inode in _ports.listening(node.table("/proc/net/tcp"))] == [_peers.BGP]


@given(
    st.dictionaries(st.text(max_size=8), st.one_of(st.none(), st.integers(), st.text(max_size=20), st.dictionaries(st.text(max_size=8), st.text(max_size=8))))
)
def test_any_peers_are_some_or_none(peers):
    chosen, left_out = _peers.told(Node("/nonexistent", targets={"ports": [179, "x", -4]}), peers)
    assert left_out == 0 and all(one["tcp"] in ([], [179]) for one in chosen.values())
