"""Where other programs keep their models on this machine.

In: the environment. Out: folders that exist. Any thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def default_model_folders(
    environ: Mapping[str, str] | None = None, home: Path | None = None
) -> tuple[Path, ...]:
    """The model folders of the Hugging Face cache, LM Studio and llama.cpp that exist.

    ``environ`` and ``home`` are this process's own unless given.
    """
    environ = os.environ if environ is None else environ
    home = Path.home() if home is None else home
    candidates = [_hugging_face(environ, home), *_lm_studio(home), _llama_cpp(environ, home)]
    found: list[Path] = []
    for folder in candidates:
        try:
            if folder.is_dir() and folder not in found:
                found.append(folder)
        except OSError:
            continue
    return tuple(found)


def _from(environ: Mapping[str, str], name: str, home: Path) -> Path | None:
    value = environ.get(name, "").strip()
    if not value:
        return None
    if value == "~" or value.startswith(("~/", "~\\")):
        return home / value[2:]
    return Path(value)


def _cache_home(environ: Mapping[str, str], home: Path) -> Path:
    return _from(environ, "XDG_CACHE_HOME", home) or home / ".cache"


def _hugging_face(environ: Mapping[str, str], home: Path) -> Path:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if folder := _from(environ, name, home):
            return folder
    base = _from(environ, "HF_HOME", home) or _cache_home(environ, home) / "huggingface"
    return base / "hub"


def _lm_studio(home: Path) -> list[Path]:
    folders = [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    try:
        # LM Studio writes here where its home was moved to.
        pointer = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        pointer = ""
    if pointer and "\0" not in pointer:
        folders.insert(0, Path(pointer) / "models")
    return folders


def _llama_cpp(environ: Mapping[str, str], home: Path) -> Path:
    if folder := _from(environ, "LLAMA_CACHE", home):
        return folder
    if sys.platform == "win32":
        local = _from(environ, "LOCALAPPDATA", home) or home / "AppData" / "Local"
        return local / "llama.cpp"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "llama.cpp"
    return _cache_home(environ, home) / "llama.cpp"
