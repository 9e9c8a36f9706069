# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. Who asks which API server: kubernetes.core's options and environment, by the kubernetes client's own way to take a kubeconfig."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress

from . import THREADS
from ._door import Door
from ._why import ClientError

try:
    import urllib3
    from kubernetes import client, config
    from kubernetes.config import kube_config
    from urllib3._collections import HTTPHeaderDict  # whose public name is younger
except ImportError:
    urllib3 = client = config = kube_config = HTTPHeaderDict = None

# {option: (type, names in the environment after K8S_AUTH_, attribute of the client's configuration)}, as in kubernetes.core
OPTIONS = {
    "kubeconfig": ("raw", ("KUBECONFIG",), None),
    "context": ("str", ("CONTEXT",), None),
    "host": ("str", ("HOST",), "host"),
    "api_key": ("str", ("API_KEY",), None),
    "username": ("str", ("USERNAME",), None),
    "password": ("str", ("PASSWORD",), None),
    "validate_certs": ("bool", ("VALIDATE_CERTS", "VERIFY_SSL"), "verify_ssl"),
    "ca_cert": ("path", ("CA_CERT", "SSL_CA_CERT"), "ssl_ca_cert"),
    "client_cert": ("path", ("CLIENT_CERT", "CERT_FILE"), "cert_file"),
    "client_key": ("path", ("CLIENT_KEY", "KEY_FILE"), "key_file"),
    "proxy": ("str", ("PROXY",), "proxy"),
    "no_proxy": ("str", ("NO_PROXY",), "no_proxy"),
    "proxy_headers": ("dict", (), None),
    "persist_config": ("bool", ("PERSIST_CONFIG",), None),
    "impersonate_user": ("str", ("IMPERSONATE_USER",), None),
    "impersonate_groups": ("list", ("IMPERSONATE_GROUPS",), None),
}
PROXY_HEADERS = ("proxy_basic_auth", "basic_auth", "user_agent")
LASTING_S = 30.0  # for which headers are taken as they are; the client has a token followed by the next some minutes before its end
DEFAULT = os.path.join("~", ".kube", "config")
MISSING = "the Python library kubernetes is needed on the controller to read a cluster: pip install kubernetes"
NOWHERE = (
    "no cluster is named: set kubeconfig (or K8S_AUTH_KUBECONFIG, KUBECONFIG, ~/.kube/config), or host and api_key (or K8S_AUTH_HOST and K8S_AUTH_API_KEY)"
)


def asked(options, environment):
    """The options as they are given, else as the environment has them."""
    found = {}
    for name, (kind, variables, _attribute) in OPTIONS.items():
        value = options.get(name)
        if value is None:
            value = next((environment["K8S_AUTH_" + one] for one in variables if environment.get("K8S_AUTH_" + one)), None)
            value = _typed(kind, value)
        if value not in (None, "", [], {}):
            found[name] = value
    headers = {name: environment.get("K8S_AUTH_PROXY_HEADERS_" + name.upper()) for name in PROXY_HEADERS}
    headers.update({name: value for name, value in (found.get("proxy_headers") or {}).items() if value})
    return {**found, "proxy_headers": {name: value for name, value in headers.items() if value}}


def _typed(kind, value):
    if value is None:
        return None
    if kind == "bool":
        return value.lower() not in ("0", "false", "no")
    return value.split(",") if kind == "list" else value


@contextmanager
def opened(options, seconds, environment):
    """The door to the API server that is meant. Keys that the client has to write to files are gone afterwards."""
    if client is None:
        raise ClientError(MISSING)
    wanted = _checked(asked(options, environment))
    default = environment.get("KUBECONFIG") or DEFAULT
    try:
        yield _within(seconds, _door, wanted, default)
    finally:
        # It does so itself when a program ends, but a task of Ansible's ends without that.
        kube_config._cleanup_temp_files()  # pylint: disable=protected-access


def _checked(wanted):
    if "host" in wanted and not wanted["host"].startswith(("https://", "http://")):
        raise ClientError("host is %r, and must be an URL such as https://10.0.0.1:6443" % wanted["host"])
    for name in ("kubeconfig", "ca_cert", "client_cert", "client_key"):
        value = wanted.get(name)
        if isinstance(value, str):
            wanted[name] = os.path.expanduser(value)
            if not os.path.exists(wanted[name]):
                raise ClientError("%s: there is no file %s on the controller" % (name, value))
    return wanted


def _within(seconds, function, *arguments):
    """A kubeconfig may name a program that brings the credentials, and that can hang."""
    said = []

    def call():
        try:
            said.append((function(*arguments), None))
        except BaseException as error:  # pylint: disable=broad-except
            said.append((None, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if not said:
        raise ClientError("the kubeconfig's program for credentials has given none within %.0f s" % seconds)
    ((result, error),) = said
    if error:
        raise error
    return result


def _door(wanted, default):
    configuration = _configuration(wanted, default)
    for name, (_kind, _variables, attribute) in OPTIONS.items():
        if attribute and name in wanted:
            setattr(configuration, attribute, wanted[name])
    configuration.connection_pool_maxsize = THREADS
    if wanted["proxy_headers"]:
        configuration.proxy_headers = urllib3.make_headers(**wanted["proxy_headers"])
    if not configuration.verify_ssl:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    pool = client.ApiClient(configuration).rest_client.pool_manager
    return Door(configuration.host, pool, Headers(lambda: _headers(configuration, wanted)))


class Headers:
    """As whom a question is asked: a token that a kubeconfig's program has given may not last as long as a task does.

    Where there is no new one, the old one is sent, and the API server says what that is worth.
    """

    def __init__(self, made):
        self._made, self._turn = made, threading.Lock()
        self._present, self._until = made(), time.monotonic() + LASTING_S

    def __call__(self, seconds):
        with self._turn:
            if time.monotonic() >= self._until:
                with suppress(Exception):
                    self._present = _within(seconds, self._made)
                self._until = time.monotonic() + LASTING_S
            return self._present


def _configuration(wanted, default):
    """As kubernetes.core goes about it: what is given by itself, else a kubeconfig, inside a pod its own account."""
    found = client.Configuration()
    enough = [("host", "api_key"), ("host", "username", "password"), ("host", "client_cert", "client_key")]
    if any(all(name in wanted for name in names) for names in enough):
        return found
    if "kubeconfig" not in wanted and "context" not in wanted:
        with suppress(config.ConfigException):
            config.load_incluster_config(client_configuration=found)
            return found
    _load(wanted, default, found)
    return found


def _load(wanted, default, configuration):
    given = wanted.get("kubeconfig") or default
    how = {
        "context": wanted.get("context"),
        "client_configuration": configuration,
        "persist_config": wanted.get("persist_config", False),
    }
    try:
        if isinstance(given, dict):
            config.load_kube_config_from_dict(config_dict=given, **how)
        else:
            config.load_kube_config(config_file=given, **how)
    except Exception as error:  # pylint: disable=broad-except  # what is wrong with a kubeconfig comes in many forms
        if isinstance(given, str) and not _is_there(given):
            raise ClientError(NOWHERE) from None
        named = "that is given as a dictionary" if isinstance(given, dict) else given
        raise ClientError("the kubeconfig %s cannot be used: %s" % (named, _first_line(error))) from None


def _is_there(places):
    return any(os.path.exists(os.path.expanduser(one)) for one in places.split(os.pathsep) if one)


def _first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _headers(configuration, wanted):
    headers = HTTPHeaderDict({"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "nodecare"})
    if "api_key" in wanted:
        headers["Authorization"] = "Bearer %s" % wanted["api_key"]
    elif "username" in wanted and "password" in wanted:
        headers.update(urllib3.make_headers(basic_auth="%(username)s:%(password)s" % wanted))
    else:
        for one in configuration.auth_settings().values():
            if one["in"] == "header" and one["value"]:
                headers[one["key"]] = one["value"]
    if "impersonate_user" in wanted:
        headers["Impersonate-User"] = wanted["impersonate_user"]
    for group in wanted.get("impersonate_groups", ()):
        headers.add("Impersonate-Group", group)
    return headers
