"""A stand-in for the API of AWX on loopback: it keeps what is posted where that is as AWX documents it, and refuses everything else.

It runs no job, and is no proof that AWX takes what it takes: for that there is nothing here that could be installed.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from awx_surveys import invalid
from test_awx_project import playbooks

SCHEMA = yaml.safe_load(Path(__file__).with_name("awx_schema.yml").read_text())
TYPES = {"inventories": "inventory"}  # AWX's names for one of them; of the others it is the plural without its s
KINDS = {"string": str, "boolean": bool, "integer": int, "id": int, "choice": (str, int), "json": (str, dict)}
LINKED = {"organization": "organizations", "project": "projects", "inventory": "inventories", "workflow_job_template": "workflow_job_templates"}
BESIDE = {
    "job_templates": ("survey_spec", "credentials", "labels", "schedules"),
    "workflow_job_templates": ("survey_spec", "workflow_nodes", "labels", "schedules"),
    "workflow_job_template_nodes": ("success_nodes", "failure_nodes", "always_nodes", "credentials", "labels", "create_approval_template"),
}
TOKEN = "a-token-of-nobody"
ROOTS = [kind for kind in SCHEMA if kind not in ("workflow_approval_templates", "workflow_job_template_nodes")]
EMPTY = (
    *("users", "teams", "credential_types", "notification_templates", "inventory_sources", "applications", "system_job_templates", "labels", "hosts"),
    *("groups", "instance_groups", "roles", "tokens", "credential_input_sources", "ad_hoc_commands"),
)  # what awxkit asks about, too
RRULE = re.compile(r"^DTSTART:\d{8}T\d{6}Z RRULE:FREQ=(MINUTELY|HOURLY|DAILY|WEEKLY|MONTHLY);INTERVAL=\d+$")


class RefusedError(Exception):
    """(status, what AWX would say)"""


class Awx:
    def __init__(self, prefix="/api/"):
        self.root = prefix + "v2/"
        self.kept = {kind: {} for kind in SCHEMA}
        self.surveys, self.ways, self.last, self.changes = {}, {}, 0, []
        organization = self.make("organizations", {"name": "Default"})["id"]
        for kind, name in (("projects", "nodecare"), ("inventories", "nodes"), ("credentials", "machines"), ("credentials", "cluster")):
            self.make(kind, {"name": name, "organization": organization})
        self.changes.clear()

    # -- what is kept ------------------------------------------------------------------------------------------------------

    def make(self, kind, fields):
        self._check(kind, fields, None)
        self.last += 1
        made = self.kept[kind][self.last] = {"id": self.last, "type": TYPES.get(kind, kind[:-1]), **self._defaults(kind), **fields}
        self.changes.append(("made", kind, fields.get("name") or fields.get("identifier")))
        return self.shown(kind, made)

    def change(self, kind, number, fields):
        one = self.kept[kind][number]
        self._check(kind, {**one, **fields}, one)
        one.update(fields)
        self.changes.append(("changed", kind, one.get("name") or one.get("identifier")))
        return self.shown(kind, one)

    def shown(self, kind, one):
        url = "%s%s/%d/" % (self.root, kind, one["id"])
        related = {name: url + name + "/" for name in BESIDE.get(kind, ())}
        related.update({name: "%s%s/%d/" % (self.root, where, one[name]) for name, where in LINKED.items() if one.get(name)})
        if one.get("unified_job_template"):
            related["unified_job_template"] = "%s%s/%d/" % (self.root, self._kind_of(one["unified_job_template"]), one["unified_job_template"])
        return {**one, "url": url, "related": related, "summary_fields": {}}

    def _kind_of(self, number):
        return next(kind for kind, ones in self.kept.items() if number in ones)

    def _defaults(self, kind):
        empty = {"string": "", "boolean": False, "integer": 0, "json": "", "id": None, "choice": None}
        return {name: {} if name == "extra_data" else empty[field["type"]] for name, field in SCHEMA[kind].items() if name not in ("type", "identifier")}

    # -- what is refused ---------------------------------------------------------------------------------------------------

    def _check(self, kind, fields, before):
        known = SCHEMA[kind]
        for name, value in fields.items():
            field = known.get(name)
            if field is None and not (before and name in before):
                raise RefusedError(400, {name: ["%s is no field of %s" % (name, kind)]})
            if field and value is not None and not self._fits(field, value):
                raise RefusedError(400, {name: ["%r is no valid %s" % (value, field["type"])]})
        missing = [name for name, field in known.items() if field.get("required") and not fields.get(name)]
        if missing:
            raise RefusedError(400, {missing[0]: ["This field is required."]})
        for one in self.kept[kind].values():
            if one is not before and "name" in known and (one["name"], one.get("organization")) == (fields["name"], fields.get("organization")):
                raise RefusedError(400, {"__all__": ["%s with this name already exists." % kind]})
        getattr(self, "_check_" + kind, lambda fields: None)(fields)

    def _fits(self, field, value):
        if not isinstance(value, KINDS[field["type"]]) or (isinstance(value, bool) and field["type"] != "boolean"):
            return False
        if field["type"] == "id":
            return any(value in ones for ones in self.kept.values())
        if field["type"] == "json" and isinstance(value, str) and value:
            return isinstance(json.loads(value), dict)
        short = not isinstance(value, str) or len(value) <= field.get("longest", len(value))
        return short and value in field.get("choices", [value]) and not (field["type"] == "integer" and value < field.get("least", value))

    def _check_job_templates(self, fields):
        if fields["playbook"] not in playbooks():
            raise RefusedError(400, {"playbook": ["Playbook not found for project."]})
        if not fields.get("inventory") and not fields.get("ask_inventory_on_launch"):
            raise RefusedError(400, {"inventory": ["You must either set a default value or ask to prompt on launch."]})

    def _check_workflow_job_template_nodes(self, fields):
        template = self.kept["job_templates"].get(fields.get("unified_job_template"), {})
        for name, asked in (("job_type", "ask_job_type_on_launch"), ("limit", "ask_limit_on_launch"), ("job_slice_count", "ask_job_slice_count_on_launch")):
            if template and fields.get(name) and not template[asked]:
                raise RefusedError(400, {name: ["Field is not configured to prompt on launch."]})
        questions = {one["variable"]: one for one in self.surveys.get(template.get("id"), {}).get("spec", [])}
        for name, answer in (fields.get("extra_data") or {}).items():
            if name not in questions and not template.get("ask_variables_on_launch"):
                raise RefusedError(400, {"extra_data": ["Variables %s are not allowed on launch." % name]})
            if answer not in questions[name].get("choices", [answer]):
                raise RefusedError(400, {"variables_needed_to_start": ["Value %s for '%s' expected to be one of its choices." % (answer, name)]})

    def _check_schedules(self, fields):
        if not RRULE.match(fields["rrule"]):
            raise RefusedError(400, {"rrule": ["Valid DTSTART and RRULE required."]})

    # -- what is asked -----------------------------------------------------------------------------------------------------

    def answer(self, method, path, query, body):
        """(status, what is said)"""
        if path.rstrip("/") == self.root.removesuffix("v2/").rstrip("/"):
            return 200, {"current_version": self.root, "available_versions": {"v2": self.root}}
        kind, number, beside = (*path.removeprefix(self.root).strip("/").split("/"), "", "")[:3]
        if method == "OPTIONS":
            return 200, self._options(SCHEMA.get("workflow_job_template_nodes" if beside == "workflow_nodes" else kind, {}))
        if not number:
            return (201, self.make(kind, body)) if method == "POST" else (200, self._all(kind, query))
        if int(number) not in self.kept[kind]:
            raise RefusedError(404, {"detail": "Not found."})
        if beside:
            return getattr(self, "_" + beside, functools.partial(self._linked, beside))(method, kind, int(number), body)
        return 200, self.shown(kind, self.kept[kind][int(number)]) if method == "GET" else self.change(kind, int(number), body)

    def _all(self, kind, query):
        if not kind:
            return {TYPES.get(one, one): "%s%s/" % (self.root, one) for one in (*ROOTS, *EMPTY)}
        kinds = ("job_templates", "workflow_job_templates") if kind == "unified_job_templates" else (kind,)
        return _page([self.shown(one, item) for one in kinds for item in self.kept.get(one, {}).values()], query)

    def _create_approval_template(self, _method, kind, number, body):
        made = self.make("workflow_approval_templates", body)
        self.kept[kind][number]["unified_job_template"] = made["id"]
        return 201, made

    def _workflow_nodes(self, method, _kind, number, body):
        if method == "POST":
            return 201, self.make("workflow_job_template_nodes", {**body, "workflow_job_template": number})
        return 200, self._all("workflow_job_template_nodes", {"workflow_job_template": str(number)})

    def _linked(self, name, method, kind, number, body):
        ids = self.ways.setdefault((kind, number, name), [])
        if method == "POST":
            (ids.remove if body.get("disassociate") else ids.append)(body["id"])
            self.changes.append(("linked", name, number))
            return 204, None
        return 200, _page([self.shown(self._kind_of(i), self.kept[self._kind_of(i)][i]) for i in ids], {})

    def _survey_spec(self, method, kind, number, body):
        if method == "POST":
            why = invalid(body)
            if why:
                raise RefusedError(400, {"error": why})
            self.surveys[number] = body
            self.changes.append(("surveyed", kind, self.kept[kind][number]["name"]))
        return 200, {} if method == "POST" else self.surveys.get(number, {})

    @staticmethod
    def _options(fields):
        described = {name: {"type": field["type"], "required": field.get("required", False)} for name, field in fields.items()}
        return {"actions": {"POST": described}, "search_fields": ["name"], "description": ""}


def _page(found, query):
    either = {key[4:]: value for key, value in query.items() if key.startswith("or__")}
    for key, value in query.items():
        if not key.startswith("or__") and key not in ("page_size", "order_by"):
            found = [one for one in found if str(one.get(key)) == value]
    if either:
        found = [one for one in found if any(str(one.get(key)) == value for key, value in either.items())]
    return {"count": len(found), "next": None, "previous": None, "results": found}


@contextmanager
def standing_in(awx, product=("AWX", "24.6.1")):
    """The URL at which it answers whoever has the token."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length) if length else b""
            try:
                if self.headers.get("Authorization") != "Bearer " + TOKEN:
                    raise RefusedError(401, {"detail": "Authentication credentials were not provided."})
                query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
                status, said = awx.answer(self.command, parts.path, query, json.loads(text) if text else {})
            except RefusedError as refused:
                status, said = refused.args
            body = b"" if said is None else json.dumps(said).encode()
            self.send_response(status)
            for name, value in zip(("X-API-Product-Name", "X-API-Product-Version"), product):
                self.send_header(name, value)
            for name, value in (("Content-Type", "application/json"), ("Allow", "GET, POST, PATCH, PUT, HEAD, OPTIONS"), ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_OPTIONS = do_HEAD = handle_any

        def log_message(self, *_words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield "http://127.0.0.1:%d" % server.server_port
    finally:
        server.shutdown()
        server.server_close()
