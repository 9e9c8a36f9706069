"""The control plane: etcd, API server, controller manager and scheduler as processes in the lab's namespaces."""

from __future__ import annotations

from pathlib import Path

from .kubernetes import VERSION
from .shell import run, say, succeeds, wait_until
from .space import Space

ADDRESS = "10.0.0.1"
SERVICES = "10.96.0.0/16"
PODS = "192.168.0.0/16"
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v%(version)s
certificatesDir: %(pki)s
controlPlaneEndpoint: %(address)s:6443
networking: {serviceSubnet: %(services)s, podSubnet: %(pods)s}
apiServer: {certSANs: [127.0.0.1, %(address)s]}
imageRepository: localhost
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: %(pods)s
conntrack: {maxPerCore: 0}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: %(address)s, bindPort: 6443}
nodeRegistration: {name: cp}
"""
CERTIFICATES = ("ca", "apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client", "sa")
USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
}


class ControlPlane:
    def __init__(self, space: Space, programs: Path) -> None:
        self.space = space
        self.programs = programs
        self.place = space.place / "control-plane"
        self.pki = self.place / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.place / "admin.conf"

    def start(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self._credentials()
        if not self.ready():
            for name, arguments in self._components().items():
                self.space.start(self.place / (name + ".log"), self.programs / name, *arguments)
            seconds = wait_until("the API server", self.ready, 120)
            # Without it the API server may not ask kubelets for logs and exec.
            self._grant("nodecare-lab:kubelet-api", "system:kubelet-api-admin", "kube-apiserver-kubelet-client")
            say("control plane ready after %.0f s" % seconds)

    def ready(self) -> bool:
        return succeeds(*self.kubectl("get", "--raw", "/readyz"), timeout=10)

    def kubectl(self, *words: str) -> list[str]:
        return self.space.inside(self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *words, network_only=True)

    def ask(self, *words: str, stdin: str | None = None) -> str:
        return run(*self.kubectl(*words), stdin=stdin)

    def add_kube_proxy(self) -> None:
        """As kubeadm does it: a DaemonSet whose image the nodes have."""
        words = ["addon", "kube-proxy", "--config", self.place / "kubeadm.yaml", "--kubeconfig", self.kubeconfig]
        run(*self.space.inside(self.programs / "kubeadm", "init", "phase", *words))

    def node_files(self, node: str) -> dict[str, str]:
        """What a node's kubelet needs to join."""
        return {
            "etc/kubernetes/kubelet.conf": self._kubeconfig("system:node:" + node, "system:nodes"),
            "etc/kubernetes/pki/ca.crt": (self.pki / "ca.crt").read_text(),
        }

    def knows(self, node: str) -> bool:
        return succeeds(*self.kubectl("get", "node", node), timeout=10)

    def _grant(self, name: str, role: str, user: str) -> None:
        if not succeeds(*self.kubectl("get", "clusterrolebinding", name)):
            self.ask("create", "clusterrolebinding", name, "--clusterrole=" + role, "--user=" + user)

    def _credentials(self) -> None:
        config = self.place / "kubeadm.yaml"
        config.write_text(CONFIG % {"version": VERSION, "pki": self.pki, "address": ADDRESS, "services": SERVICES, "pods": PODS})
        for name in CERTIFICATES:
            if not (self.pki / (name + ".key")).exists():
                run(*self.space.inside(self.programs / "kubeadm", "init", "phase", "certs", name, "--config", config))
        for name, (user, group) in USERS.items():
            if not (self.place / (name + ".conf")).exists():
                (self.place / (name + ".conf")).write_text(self._kubeconfig(user, group))

    def _kubeconfig(self, user: str, group: str | None) -> str:
        words = ["--client-name", user, "--config", str(self.place / "kubeadm.yaml"), *(["--org", group] if group else [])]
        text = run(*self.space.inside(self.programs / "kubeadm", "kubeconfig", "user", *words))
        return text[text.index("apiVersion:") :]  # warnings come first

    def _components(self) -> dict[str, list[str]]:
        pki, etcd = self.pki, "http://127.0.0.1:2379"
        return {
            "etcd": [
                "--data-dir=%s" % (self.place / "etcd"), "--unsafe-no-fsync", "--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
                "--listen-peer-urls=http://127.0.0.1:2380",
            ],
            "kube-apiserver": [
                "--etcd-servers=" + etcd, "--service-cluster-ip-range=" + SERVICES, "--advertise-address=" + ADDRESS, "--secure-port=6443",
                "--tls-cert-file=%s/apiserver.crt" % pki, "--tls-private-key-file=%s/apiserver.key" % pki, "--client-ca-file=%s/ca.crt" % pki,
                "--kubelet-client-certificate=%s/apiserver-kubelet-client.crt" % pki, "--kubelet-client-key=%s/apiserver-kubelet-client.key" % pki,
                "--kubelet-preferred-address-types=InternalIP", "--service-account-issuer=https://kubernetes.default.svc",
                "--service-account-key-file=%s/sa.pub" % pki, "--service-account-signing-key-file=%s/sa.key" % pki, "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--enable-bootstrap-token-auth=true",
            ],
            "kube-controller-manager": [
                "--kubeconfig=%s/controller-manager.conf" % self.place, "--use-service-account-credentials", "--leader-elect=false",
                "--service-account-private-key-file=%s/sa.key" % pki, "--root-ca-file=%s/ca.crt" % pki, "--cluster-signing-cert-file=%s/ca.crt" % pki,
                "--cluster-signing-key-file=%s/ca.key" % pki, "--controllers=*,bootstrapsigner,tokencleaner",
            ],
            "kube-scheduler": ["--kubeconfig=%s/scheduler.conf" % self.place, "--leader-elect=false"],
        }  # fmt: skip
