"""A stand-in of AWX's API: it knows two templates and writes down what is launched. It runs nothing: jobs succeed, or are at work while it is told so."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TEMPLATES = {"nodecare diagnose": "job_template", "nodecare repair nodes": "workflow_job_template"}
JOBS = {"job_template": "jobs", "workflow_job_template": "workflow_jobs"}
TOKEN = "of-the-stand-in"
ASKS = dict.fromkeys(("ask_limit_on_launch", "ask_labels_on_launch", "ask_inventory_on_launch", "ask_variables_on_launch"), False)


class AwxStandIn:
    """``artifacts`` is what a job of a job template leaves; ``launched`` has (template, what was asked for) of each launch."""

    def __init__(self, artifacts=None):
        self.artifacts, self.at_work, self.launched = artifacts or {}, False, []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answers", (Answers,), {"awx": self}))

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_address[1]

    def names(self):
        return [name for name, _asked in self.launched]

    def job(self, number):
        name, _asked = self.launched[number - 1]
        left = self.artifacts if TEMPLATES[name] == "job_template" else {}
        return {"id": number, "status": "running" if self.at_work else "successful", "created": "2026-01-01T00:00:00Z", "artifacts": left}


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = urlsplit(self.path)
        query = parse_qs(asked.query)
        kind = asked.path.strip("/").split("/")[2]
        if kind == "config":
            self.say({"version": "24.6.1"})
        elif kind == "unified_job_templates":
            self.say_all([template(name) for name in query["name"] if name in TEMPLATES])
        else:
            self.say_all([self.awx.job(int(number)) for number in query["id__in"][0].split(",")])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(self.path.strip("/").split("/")[-2])
        name, kind = list(TEMPLATES.items())[number]
        self.awx.launched.append((name, asked))
        self.say({"url": "/api/v2/%s/%d/" % (JOBS[kind], len(self.awx.launched))}, 201)

    def say_all(self, results):
        self.say({"count": len(results), "next": None, "results": results})

    def say(self, what, code=200):
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            what, code = {"detail": "Authentication credentials were not provided."}, 401
        said = json.dumps(what).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_words):
        """Nobody reads it."""


def template(name):
    number, kind = list(TEMPLATES).index(name), TEMPLATES[name]
    known = {"id": number, "type": kind, "name": name, "summary_fields": {"organization": {"name": "Operations"}}}
    return {**known, **ASKS, "ask_limit_on_launch": True, "related": {"launch": "/api/v2/%ss/%d/launch/" % (kind, number)}}
