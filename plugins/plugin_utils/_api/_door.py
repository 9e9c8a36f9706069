# Copyright: (c) 2026, the nodecare contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE. The only door to the API server: it has a deadline for each answer, and says in one line why there was none."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode, urlsplit

from ._why import HUNG, NoAnswerError, refused

try:
    import urllib3
    from urllib3 import exceptions as wrong
except ImportError:  # it comes with the kubernetes client, without which there is nothing to ask
    urllib3 = wrong = None

CHUNK = 1 << 20


class Door:
    def __init__(self, url, pool, headers):
        """``headers`` gives those of a question, and is told how long that may take."""
        self.url = url.rstrip("/")
        self.asked = []  # paths
        self.took = []  # (seconds, path) of those that were answered
        self.server_time = None  # by the first answer; None while no server has answered
        self._since = 0.0  # when that was, by our own clock
        self._pool, self._headers = pool, headers

    @property
    def server(self):
        parts = urlsplit(self.url)
        host = "[%s]" % parts.hostname if ":" in str(parts.hostname) else parts.hostname
        return "%s:%d" % (host, parts.port or (80 if parts.scheme == "http" else 443))

    @property
    def now(self):
        """The API server's clock, once it has answered."""
        return time.time() if self.server_time is None else self.server_time + time.monotonic() - self._since

    def get(self, path, query, seconds):
        """The object that the API server has at a path; so long it may take to connect, and so long to say the next word."""
        return self._ask("GET", path, query, seconds)

    def create(self, path, body, seconds, dry_run=False):
        return self._ask("POST", path, _dry(dry_run), seconds, body)

    def replace(self, path, body, seconds, dry_run=False):
        """With the ``resourceVersion`` that it was read with, so that nobody's change in between is lost: the answer is 409 then."""
        return self._ask("PUT", path, _dry(dry_run), seconds, body)

    def patch(self, path, body, seconds, dry_run=False, kind="merge-patch"):
        return self._ask("PATCH", path, _dry(dry_run), seconds, body, "application/%s+json" % kind)

    def delete(self, path, seconds, body=None, dry_run=False):
        """Where there is a body, only that counts: a dry run that is asked for beside it would be none."""
        return self._ask("DELETE", path, _dry(dry_run), seconds, {**body, "dryRun": ["All"]} if body and dry_run else body)

    def _ask(self, method, path, query, seconds, body=None, kind="application/json"):
        self.asked.append(path)
        headers = self._headers(seconds)
        began = time.monotonic()
        target = self.url + path + ("?" + urlencode(query) if query else "")
        try:
            status, raw = self._send(method, target, headers, seconds, body, kind)
        except wrong.HTTPError as error:
            raise _unanswered(error, seconds) from None
        self.took.append((time.monotonic() - began, path))
        try:
            said = json.loads(raw)
        except ValueError:
            said = None
        if not 200 <= status < 300:
            raise refused(status, said)
        if not isinstance(said, dict):
            raise NoAnswerError("what answers there is no API server")
        return said

    def _send(self, method, target, headers, seconds, body, kind):
        if body is not None:
            headers = headers.copy()
            headers["Content-Type"] = kind
            body = json.dumps(body)
        # Nothing is followed and nothing tried again: a token goes to this server only, and time is short.
        answer = self._pool.request(
            method, target, body=body, headers=headers, timeout=urllib3.Timeout(connect=seconds, read=seconds), retries=False, preload_content=False
        )
        if self.server_time is None:
            self._since = time.monotonic()
            self.server_time = _date(answer.headers.get("Date")) or time.time()
        return answer.status, b"".join(answer.stream(CHUNK, decode_content=True))


def _dry(dry_run):
    return {"dryRun": "All"} if dry_run else {}


def _date(said):
    try:
        return parsedate_to_datetime(said).timestamp()
    except (TypeError, ValueError):
        return None


def _unanswered(error, seconds):
    if isinstance(error, wrong.TimeoutError) and not isinstance(error, wrong.NewConnectionError):
        return NoAnswerError("no answer within %.0f s" % seconds, HUNG)
    return NoAnswerError(_innermost(error))


def _innermost(error):
    """What the system said: Connection refused, certificate verify failed."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
