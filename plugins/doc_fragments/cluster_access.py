# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How the API server is reached: the options of kubernetes.core, under the same names and with the same environment."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - The path of a kubeconfig on the controller, or its content as a dictionary.
      - Also E(K8S_AUTH_KUBECONFIG). Where nothing else is given, the account of the pod that this runs in is taken, else
        E(KUBECONFIG), else C(~/.kube/config).
    type: raw
  context:
    description: The context of the kubeconfig that is to be used instead of its current one. Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description: The URL of the API server. Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description: The token by which the API server knows who asks. Also E(K8S_AUTH_API_KEY).
    type: str
  username:
    description: The user's name where the API server, or what stands before it, takes HTTP basic authentication. Also E(K8S_AUTH_USERNAME).
    type: str
  password:
    description: The password of O(username). Also E(K8S_AUTH_PASSWORD).
    type: str
  validate_certs:
    description: Whether the API server's certificate must be good. Also E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  ca_cert:
    description: The file with the certificates that the API server's own is checked by. Also E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description: The file with the certificate by which the API server knows who asks. Also E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: The file with the key of O(client_cert). Also E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  proxy:
    description: The URL of the HTTP proxy on the way to the API server. Also E(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Hosts, domains and networks, separated by commas, that are asked without O(proxy). Also E(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description: What the proxy is told.
    type: dict
    suboptions:
      proxy_basic_auth:
        description: C(user:password) for the proxy. Also E(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description: C(user:password) for the server behind the proxy. Also E(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description: The name under which the proxy is asked. Also E(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  persist_config:
    description: Whether tokens that were refreshed are written back to the kubeconfig. Also E(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description: The user as whom the API server is asked. Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: The groups as whose member the API server is asked. Also E(K8S_AUTH_IMPERSONATE_GROUPS), separated by commas.
    type: list
    elements: str
requirements:
  - kubernetes >= 24.2.0 (Python library, on the controller)
"""
