"""Container images made without a container engine, in the OCI archive format that ctr imports."""

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


def archive(target: Path, images: dict[str, dict], layers: list[Path]) -> None:
    """An archive of images by their names and settings, which share the same layers: uncompressed tars."""
    digests = {layer: "sha256:" + _digest(layer) for layer in layers}
    described = [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": os.path.getsize(layer)} for layer, digest in digests.items()]
    blobs: list[bytes] = []
    entries = []
    for name, settings in images.items():
        rootfs = {"type": "layers", "diff_ids": list(digests.values())}
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": settings, "rootfs": rootfs}).encode()
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": _described("config.v1+json", config)}
        blobs += [config, json.dumps({**manifest, "layers": described}).encode()]
        names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
        entries.append({**_described("manifest.v1+json", blobs[-1]), "annotations": names})
    with tarfile.open(target, "w") as out:
        _add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(out, "index.json", json.dumps({"schemaVersion": 2, "manifests": entries}).encode())
        for layer, digest in digests.items():
            out.add(layer, "blobs/sha256/" + digest.partition(":")[2])
        for blob in dict.fromkeys(blobs):
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
    archive(draft / "image.tar", {PAUSE: {"Entrypoint": ["/pause"]}}, [draft / "layer.tar"])
    (draft / "layer.tar").unlink()
