"""A stand-in for docker's API on a unix socket: it answers as a real docker 20.10.24 was recorded to, and keeps a table of networks.

It makes and removes no link, as a real one does.
"""

from __future__ import annotations

import json
import socketserver
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

RECORDED = Path(__file__).parent / "repairs" / "docker-20.10.24-networks.json"
NEW_ID = "0f" * 32
BUSY = "error while removing network: network one id 45cee91595e6 has active endpoints"


class StandIn(BaseHTTPRequestHandler):
    def do_GET(self):
        docker = self.server.docker
        if docker["hangs"]:
            time.sleep(1)
        for path, (spared, how) in docker["fails"].items():
            if self.path.startswith(path) and docker["heard"].count(self.path) >= spared:
                return how(self)
        docker["heard"].append(self.path)
        if self.path == "/networks":
            self.say(500 if docker["networks"] is None else 200, docker["networks"])
        elif self.path in {"/containers/json", "/containers/json?all=1"}:
            self.say(200, [one for one in docker["containers"] if one["State"] == "running" or self.path.endswith("all=1")])
        else:
            known = [one for one in docker["networks"] if self.path == "/networks/" + one["Id"]]
            self.say(200, {**known[0], "Containers": docker["ends"]}) if known else self.say(404, {"message": "no such network"})
        return None

    def do_DELETE(self):
        docker = self.server.docker
        docker["asked"].append("DELETE " + self.path)
        if docker["busy"]:
            return self.say(403, {"message": BUSY})
        docker["networks"] = [one for one in docker["networks"] if self.path != "/networks/" + one["Id"]]
        return self.say(204, None)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.docker["asked"].append(body)
        self.server.docker["networks"].append({**body, "Id": NEW_ID})
        self.say(201, {"Id": NEW_ID, "Warning": ""})

    def no_longer(self):
        time.sleep(1)

    def broken(self):
        self.say(500, {"message": "database is locked"})

    def endless(self):
        self.say(200, ["x" * (2 << 20)])

    def say(self, code, said):
        body = b"" if said is None else json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a client"

    def log_message(self, *words):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextmanager
def docker(path, **more):
    """A docker that answers on this socket; gives the table of what it knows and what it was asked to change.

    ``fails`` says of paths how they fail, after so many answers.
    """
    known = {"networks": json.loads(RECORDED.read_text()), "containers": [], "ends": {}, "hangs": False, "busy": False, "fails": {}}
    known.update(heard=[], asked=[], **more)
    with Server(str(path), StandIn) as server:
        server.docker = known
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()
