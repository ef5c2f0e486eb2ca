"""Ollama's store: blobs without names, and manifests that say which of them is a model.

In: a folder. Out: the models whose manifests lie in it. Never raises; any thread. A manifest is
not trusted: a digest that is no digest leads nowhere.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MODEL = "application/vnd.ollama.image.model"
_PROJECTOR = "application/vnd.ollama.image.projector"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_MAX_MANIFEST_BYTES = 1 << 20
#: HOST/NAMESPACE/MODEL/TAG.
_DEPTH = 4


@dataclass(frozen=True)
class OllamaModel:
    """One tag: its name as Ollama shows it, and its files (which may be missing)."""

    name: str
    path: Path
    projector: Path | None


def ollama_models(folder: Path) -> Iterator[OllamaModel]:
    """The models that the manifests of ``folder`` name, by the manifests' paths."""
    manifests = folder / "manifests"
    for base, below, names in os.walk(manifests, followlinks=False):
        below.sort()
        parts = Path(base).relative_to(manifests).parts
        if len(parts) >= _DEPTH:
            below.clear()
            continue
        if len(parts) < _DEPTH - 1:
            continue
        for tag in sorted(names):
            model = _model_of(Path(base) / tag, (*parts, tag), folder / "blobs")
            if model is not None:
                yield model


def _model_of(manifest: Path, parts: tuple[str, ...], blobs: Path) -> OllamaModel | None:
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    layers = document.get("layers") if isinstance(document, dict) else None
    if not isinstance(layers, list):
        return None
    found: dict[str, Path] = {}
    for layer in layers:
        if not isinstance(layer, dict):
            continue
        kind, digest = layer.get("mediaType"), layer.get("digest")
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is not None and isinstance(kind, str):
            found.setdefault(kind, _blob(blobs, match[1]))
    if _MODEL not in found:
        return None
    _, namespace, model, tag = parts
    owner = "" if namespace == "library" else f"{namespace}/"
    return OllamaModel(f"{owner}{model}:{tag}", found[_MODEL], found.get(_PROJECTOR))


def _blob(blobs: Path, digest: str) -> Path:
    # Older versions wrote a colon, where the file system takes one.
    old = blobs / f"sha256:{digest}"
    try:
        if os.name != "nt" and old.is_file():
            return old
    except OSError:
        pass
    return blobs / f"sha256-{digest}"
