"""What is built once: a directory named by the hash of everything that went into it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from .shell import say

CACHE = Path(os.environ.get("NODECARE_LAB_CACHE", "~/.cache/nodecare-lab")).expanduser()


def built(name: str, recipe: object, build: Callable[[Path], None], estimate: str) -> Path:
    """The directory that ``build`` filled for this recipe. One process builds; others that want the same wait for it."""
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True, default=str).encode()).hexdigest()[:16]
    place = CACHE / ("%s-%s" % (name, digest))
    if place.exists():
        return place
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / (".%s-%s.lock" % (name, digest)), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.exists():
            return place
        say("building %s, once: %s" % (name, estimate))
        start = time.monotonic()
        draft = CACHE / (".%s-%s.draft" % (name, digest))
        if draft.exists():  # left by a build that was killed
            shutil.rmtree(draft)
        draft.mkdir()
        build(draft)
        (draft / "recipe.json").write_text(json.dumps(recipe, indent=1, sort_keys=True, default=str))
        draft.rename(place)
        say("built %s in %.0f s" % (name, time.monotonic() - start))
    return place


def digest_of(*files: Path) -> str:
    """A hash over the contents of the files that a recipe consists of."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()
