"""An API server made of a file: the objects that a real one had, by their paths. A case changes them, and what is answered.

It is asked as the sweep asks (``Recorded``), or as a server on loopback that stands in for a real one (``standing_in``).
"""

from __future__ import annotations

import copy
import gzip
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._api._why import refused
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._sweep._document import document
from ansible_collections.nodecare.kubernetes.plugins.plugin_utils._sweep._sweep import Sweep

PLACE = Path(__file__).parent / "api"
OBJECTS = yaml.load((PLACE / "objects.yml").read_text(), yaml.CSafeLoader)
WORDS = {401: "somebody cannot be known", 403: "somebody cannot list this", 404: "the server could not find it"}
NAMED = "metadata.name="
ABOUT = "involvedObject.kind="


class Api:
    """What is said to a question: (HTTP status, object)."""

    def __init__(self, change=None, answers=None):
        self.objects = copy.deepcopy(OBJECTS)
        self.answers = answers or {}
        self.asked = []
        for place, what in (change or {}).items():
            self._change(*place.split(" "), what)

    def say(self, path, query):
        self.asked.append((path, query))
        status = self.answers.get(path, self.answers.get("*", 200 if self.objects.get(path) is not None else 404))
        if status != 200:
            return status, {"kind": "Status", "message": WORDS.get(status, "it broke"), "code": status}
        found = self.objects[path]
        return 200, self._page([one for one in found if _chosen(one, query)], query) if isinstance(found, list) else found

    def _page(self, found, query):
        first, limit = int(query.get("continue") or 0), int(query["limit"])
        left = len(found) - first - limit
        return {"metadata": {"continue": str(first + limit), "remainingItemCount": left} if left > 0 else {}, "items": found[first : first + limit]}

    def _change(self, path, name, what=None):
        """Either a path and what is there, or one object of a list by its name."""
        if what is None:
            name, what = None, name
        if name is None:
            merged = what if isinstance(what, list) else _merged(self.objects.get(path), what)
            self.objects[path] = merged if what is not None or not isinstance(self.objects.get(path), list) else []
            return
        found = self.objects[path]
        place = next(number for number, one in enumerate(found) if one["metadata"]["name"] == name)
        container = {key: what[key] for key in what if key in ("env", "image", "probes", "command")}
        found[place] = _merged(found[place], {key: value for key, value in what.items() if key not in container})
        if container:
            _tell(found[place]["spec"]["template"]["spec"]["containers"][0], container)


def _tell(container, what):
    """What a case says of a workload's one container: its probes replace all that it has."""
    for probe in [name for name in container if name.endswith("Probe")] if "probes" in what else ():
        del container[probe]
    container.update({**what.pop("probes", {}), **what})


def _merged(old, new):
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    both = {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    return {key: value for key, value in both.items() if value is not None}


def _chosen(one, query):
    field, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
    if field.startswith(NAMED):
        return one["metadata"]["name"] == field.removeprefix(NAMED)
    if field.startswith(ABOUT):
        return one["involvedObject"]["kind"] == field.removeprefix(ABOUT)
    own = one.get("metadata", {}).get("labels", {})
    if "=" in labels:
        return all(own.get(name) == value for name, _equals, value in (each.partition("=") for each in labels.split(",")))
    if labels and "(" not in labels:
        return labels in own
    return not labels or own.get("k8s-app") in labels.partition("(")[2].rstrip(")").split(",")


class Recorded:
    """A door that leads to objects in memory."""

    server_time = 1795030943.0

    def __init__(self, api):
        self.api = api

    def get(self, path, query, _seconds):
        status, said = self.api.say(path, query)
        if status != 200:
            raise refused(status, said)
        return said


def facts(api):
    return document(Sweep(Recorded(api), 20).run(), {"server": "10.0.0.1:6443"})


@contextmanager
def standing_in(api, slow=None, body=None):
    """A server on loopback. ``slow`` maps paths to the seconds that an answer takes; ``body`` says something else than JSON of an object."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        headers_seen = []

        def do_GET(self):
            self.headers_seen.append(self.headers)
            where = urlsplit(self.path)
            status, said = api.say(where.path, {name: values[0] for name, values in parse_qs(where.query).items()})
            time.sleep((slow or {}).get(where.path, 0))
            raw = gzip.compress(json.dumps(said).encode() if body is None else body)
            self.send_response(status)
            for name, value in (("Content-Length", len(raw)), ("Content-Encoding", "gzip"), ("Location", "/elsewhere")):
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_whatever: None  # who asked may be gone by now
    server.headers_seen = Handler.headers_seen
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        server.url = "http://127.0.0.1:%d" % server.server_port
        yield server
    finally:
        server.shutdown()
        server.server_close()
