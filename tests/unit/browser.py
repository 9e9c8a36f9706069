"""Debian's Chromium without a window, driven over a pipe by its own protocol: no driver, no port, nothing to download."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]


class Browser:
    def __enter__(self):
        with ExitStack() as started:
            self.home = tempfile.mkdtemp(prefix="nodecare-browser-")
            started.callback(shutil.rmtree, self.home, ignore_errors=True)
            self._start()
            started.callback(self._end)
            self.number, self.rest, self.session, self.events = 0, b"", None, []
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime", "Log"):
                self.send(domain + ".enable")
            self.started = started.pop_all()
        return self

    def __exit__(self, *_error):
        self.started.close()

    def _start(self):
        theirs, self.ask = os.pipe()
        self.hear, answers = os.pipe()
        command = 'exec "$@" 3<&%d 4>&%d' % (theirs, answers)
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", CHROMIUM, *FLAGS, "--user-data-dir=" + self.home, "about:blank"],
            pass_fds=(theirs, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(answers)

    def _end(self):
        os.close(self.ask)  # Chromium ends with its pipe
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.hear)

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.ask, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self.number:
                assert "error" not in said, said
                return said["result"]
            self.events.append(said)

    def _next(self):
        while b"\0" not in self.rest:
            more = os.read(self.hear, 1 << 16)
            assert more, "Chromium ended with status %s" % self.process.poll()
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, scripts=True):
        """Show a file; answers when it is loaded."""
        self.events.clear()
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send("Page.navigate", url=Path(path).as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def tell(self, expression):
        """What an expression is worth in the page."""
        said = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def complaints(self):
        """Errors, exceptions and dialogs since the page was opened."""
        self.tell("new Promise((done) => setTimeout(done))")
        return [
            event["params"]
            for event in self.events
            if event.get("method") in ("Runtime.exceptionThrown", "Page.javascriptDialogOpening")
            or (event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
        ]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
