"""Container images made without a container engine: one layer, in the OCI archive format that ctr imports."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from .cache import built, digest_of
from .shell import run

PAUSE = "localhost/pause:3.10"
PAUSE_SOURCE = Path(__file__).parent / "programs" / "pause" / "pause.c"


def pause() -> Path:
    return built("pause", {"source": digest_of(PAUSE_SOURCE)}, _build_pause, "a second") / "image.tar"


def archive(target: Path, layer: Path, name: str, config: dict) -> None:
    """An image archive with one layer, an uncompressed tar."""
    content = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + _digest(layer)]}}
    settings = json.dumps(content).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _described("config.v1+json", settings),
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": "sha256:" + _digest(layer), "size": os.path.getsize(layer)}],
        }
    ).encode()
    entry = {**_described("manifest.v1+json", manifest), "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}
    with tarfile.open(target, "w") as out:
        _add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(out, "index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
        out.add(layer, "blobs/sha256/" + _digest(layer))
        for blob in (settings, manifest):
            _add(out, "blobs/sha256/" + hashlib.sha256(blob).hexdigest(), blob)


def _described(kind: str, blob: bytes) -> dict:
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + hashlib.sha256(blob).hexdigest(), "size": len(blob)}


def _add(out: tarfile.TarFile, name: str, blob: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(blob)
    out.addfile(entry, io.BytesIO(blob))


def _digest(file: Path) -> str:
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _build_pause(draft: Path) -> None:
    run("cc", "-static", "-Os", "-s", "-o", draft / "pause", PAUSE_SOURCE)
    run("tar", "-C", draft, "-cf", draft / "layer.tar", "pause")
    archive(draft / "image.tar", draft / "layer.tar", PAUSE, {"Entrypoint": ["/pause"]})
