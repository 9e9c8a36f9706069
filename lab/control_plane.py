"""The control plane: etcd, API servers, controller manager and scheduler as processes in the lab's namespaces.

There can be three members of etcd and two API servers, so that quorums can be lost. Nodes, users, controller manager and
scheduler all ask the first API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .daemon import Daemon
from .kubernetes import VERSION, kubernetes
from .shell import LabError, Word, run, say, succeeds, wait_until
from .space import Space

ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")  # of the first, second and third member
ADDRESS = ADDRESSES[0]
PORT = 6443
READY_LIMIT = 300
OWN_GROUP = 6443  # what the control plane itself asks the API server is told by its group, so that others' path to it can fail
SERVICES = "10.96.0.0/16"
PODS = "192.168.0.0/16"
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v%(version)s
certificatesDir: %(pki)s
controlPlaneEndpoint: %(address)s:%(port)s
networking: {serviceSubnet: %(services)s, podSubnet: %(pods)s}
apiServer: {certSANs: [%(addresses)s]}
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
localAPIEndpoint: {advertiseAddress: %(address)s, bindPort: %(port)s}
nodeRegistration: {name: cp}
"""
CERTIFICATES = ("ca", "apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client", "sa")
USERS = {
    "admin": ("kubernetes-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
}


@dataclass(frozen=True)
class Plan:
    """What a lab's control plane consists of."""

    kubernetes: str = VERSION
    etcd: int = 1
    api_servers: int = 1


class ControlPlane:
    def __init__(self, space: Space, plan: Plan | None = None) -> None:
        """The control plane that stands in the lab, or the one that is planned."""
        self.space = space
        self.plan = plan or Plan(**space.noted("control-plane"))
        self.place = space.place / "control-plane"
        self.pki = self.place / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.place / "admin.conf"

    @cached_property
    def programs(self) -> Path:
        return kubernetes(self.plan.kubernetes)

    def start(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        for address in ADDRESSES[1 : max(self.plan.etcd, self.plan.api_servers)]:
            run(*self.space.inside("ip", "address", "replace", address + "/24", "dev", "lan0"))
        self._credentials()
        for name in self.members():
            self.start_member(name)
        seconds = wait_until("the control plane", self.ready, READY_LIMIT)
        # Without it the API server may not ask kubelets for logs and exec.
        self.grant("nodecare-lab:kubelet-api", "system:kubelet-api-admin", "kube-apiserver-kubelet-client")
        # Without these nobody may make a pod.
        accounts = ("kubectl", "-n", "kube-system", "get", "serviceaccount", "default")
        seconds += wait_until("the service accounts", lambda: succeeds(*self._own(*accounts), timeout=10), READY_LIMIT)
        say("control plane ready after %.0f s" % seconds)

    def ready(self) -> bool:
        servers = ["https://%s:%d" % (address, PORT) for address in ADDRESSES[: self.plan.api_servers]]
        return all(succeeds(*self._own("kubectl", "--server", one, "get", "--raw", "/readyz"), timeout=10) for one in servers)

    def kubectl(self, *words: str) -> list[str]:
        """As a user asks, by the path that can be made to fail."""
        return self.space.inside(self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *words, network_only=True)

    def ask(self, *words: str, stdin: str | None = None) -> str:
        return run(*self._own("kubectl", *words), stdin=stdin)

    # -- members -------------------------------------------------------------------------------------------------------

    def members(self) -> list[str]:
        return list(self._components())

    def member(self, name: str) -> Daemon:
        if name not in self.members():
            raise LabError("the control plane of lab %s has no %s; it has %s" % (self.space.id, name, ", ".join(self.members())))
        return Daemon(self.space, name, self.place)

    def start_member(self, name: str) -> None:
        program, *arguments = self._components()[name]
        # API servers keep a lease by their host's name, so each needs one of its own.
        named = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name)
        self.member(name).start(*named, "setpriv", "--regid", OWN_GROUP, "--clear-groups", self.programs / program, *arguments)

    def power(self, name: str, act: str) -> None:
        member = self.member(name)
        {"cut": member.kill, "start": lambda: self.start_member(name), "freeze": lambda: member.freeze(True), "thaw": lambda: member.freeze(False)}[act]()

    def states(self) -> dict[str, str]:
        return {name: self.member(name).state for name in self.members()}

    # -- parts ---------------------------------------------------------------------------------------------------------

    def add_kube_proxy(self) -> None:
        """As kubeadm does it: a DaemonSet whose image the nodes have."""
        words = ["addon", "kube-proxy", "--config", self.place / "kubeadm.yaml", "--kubeconfig", self.kubeconfig]
        run(*self._inside("kubeadm", "init", "phase", *words))

    def node_files(self, node: str) -> dict[str, str]:
        """What a node's kubelet needs to join."""
        return {
            "etc/kubernetes/kubelet.conf": self._kubeconfig("system:node:" + node, "system:nodes"),
            "etc/kubernetes/pki/ca.crt": (self.pki / "ca.crt").read_text(),
        }

    def knows(self, node: str) -> bool:
        return succeeds(*self._own("kubectl", "get", "node", node), timeout=10)

    def grant(self, name: str, role: str, user: str) -> None:
        if not succeeds(*self._own("kubectl", "get", "clusterrolebinding", name)):
            self.ask("create", "clusterrolebinding", name, "--clusterrole=" + role, "--user=" + user)

    def _own(self, *words: Word) -> list[str]:
        program, *arguments = words
        return self._inside(program, "--kubeconfig", self.kubeconfig, *arguments)

    def _inside(self, program: Word, *arguments: Word) -> list[str]:
        """One of Kubernetes' programs as the control plane's own."""
        return self.space.inside("setpriv", "--regid", OWN_GROUP, "--clear-groups", self.programs / str(program), *arguments, network_only=True)

    def _credentials(self) -> None:
        config = self.place / "kubeadm.yaml"
        words = {"version": self.plan.kubernetes, "pki": self.pki, "address": ADDRESS, "port": PORT, "services": SERVICES, "pods": PODS}
        config.write_text(CONFIG % {**words, "addresses": ", ".join(("127.0.0.1", *ADDRESSES))})
        for name in CERTIFICATES:
            if not (self.pki / (name + ".key")).exists():
                run(*self._inside("kubeadm", "init", "phase", "certs", name, "--config", config))
        for name, (user, group) in USERS.items():
            if not (self.place / (name + ".conf")).exists():
                (self.place / (name + ".conf")).write_text(self._kubeconfig(user, group))

    def _kubeconfig(self, user: str, group: str | None) -> str:
        words = ["--client-name", user, "--config", str(self.place / "kubeadm.yaml"), *(["--org", group] if group else [])]
        text = run(*self._inside("kubeadm", "kubeconfig", "user", *words))
        return text[text.index("apiVersion:") :]  # warnings come first

    def _components(self) -> dict[str, list[str]]:
        """The command line of each member, by its name."""
        pki = self.pki
        return {
            **{"etcd-%d" % number: self._etcd(number, address) for number, address in enumerate(ADDRESSES[: self.plan.etcd], start=1)},
            **{"kube-apiserver-%d" % number: self._api_server(address) for number, address in enumerate(ADDRESSES[: self.plan.api_servers], start=1)},
            "kube-controller-manager": [
                "kube-controller-manager",
                "--kubeconfig=%s/controller-manager.conf" % self.place, "--use-service-account-credentials", "--leader-elect=false",
                "--service-account-private-key-file=%s/sa.key" % pki, "--root-ca-file=%s/ca.crt" % pki, "--cluster-signing-cert-file=%s/ca.crt" % pki,
                "--cluster-signing-key-file=%s/ca.key" % pki, "--controllers=*,bootstrapsigner,tokencleaner",
            ],
            "kube-scheduler": ["kube-scheduler", "--kubeconfig=%s/scheduler.conf" % self.place, "--leader-elect=false"],
        }  # fmt: skip

    def _etcd(self, number: int, address: str) -> list[str]:
        peers = ["etcd-%d=http://%s:2380" % (one, where) for one, where in enumerate(ADDRESSES[: self.plan.etcd], start=1)]
        client, peer = "http://%s:2379" % address, "http://%s:2380" % address
        return [
            "etcd", "--name=etcd-%d" % number, "--data-dir=%s" % (self.place / ("etcd-%d" % number)), "--unsafe-no-fsync",
            "--listen-client-urls=" + client, "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
            "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + ",".join(peers),
        ]  # fmt: skip

    def _api_server(self, address: str) -> list[str]:
        pki = self.pki
        return [
            "kube-apiserver", "--etcd-servers=" + ",".join("http://%s:2379" % one for one in ADDRESSES[: self.plan.etcd]),
            "--service-cluster-ip-range=" + SERVICES, "--advertise-address=" + address, "--bind-address=" + address, "--secure-port=%d" % PORT,
            "--tls-cert-file=%s/apiserver.crt" % pki, "--tls-private-key-file=%s/apiserver.key" % pki, "--client-ca-file=%s/ca.crt" % pki,
            "--kubelet-client-certificate=%s/apiserver-kubelet-client.crt" % pki, "--kubelet-client-key=%s/apiserver-kubelet-client.key" % pki,
            "--kubelet-preferred-address-types=InternalIP", "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=%s/sa.pub" % pki, "--service-account-signing-key-file=%s/sa.key" % pki, "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", "--enable-bootstrap-token-auth=true",
        ]  # fmt: skip
