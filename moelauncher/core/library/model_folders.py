"""Where other programs on this machine keep their GGUF files.

In: the environment and the home folder. Out: :class:`ModelSource` values with folders that
exist. Looks at the disk, so call it from a pool job; never raises. Any thread.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: A settings file of another program that is larger is none.
_MAX_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True)
class ModelSource:
    """One program's folders. ``key`` names it in the settings, ``label`` for people."""

    key: str
    label: str
    folders: tuple[Path, ...]


@dataclass(frozen=True)
class _Places:
    """What a source is computed from."""

    environ: Mapping[str, str]
    home: Path
    platform: str

    def named(self, name: str) -> Path | None:
        """The folder that a variable names."""
        value = self.environ.get(name, "").strip()
        if not value or "\0" in value:
            return None
        if value == "~" or value.startswith(("~/", "~\\")):
            return self.home / value[2:]
        return Path(value)

    @property
    def cache(self) -> Path:
        """``~/.cache``, which Hugging Face uses on every platform."""
        return self.named("XDG_CACHE_HOME") or self.home / ".cache"

    @property
    def config(self) -> Path:
        """Where programs of this platform keep their settings (Windows: roaming)."""
        if self.platform == "win32":
            return self.named("APPDATA") or self.home / "AppData" / "Roaming"
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.named("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def data(self) -> Path:
        """Where programs of this platform keep their data (Windows: local)."""
        if self.platform == "win32":
            return self.named("LOCALAPPDATA") or self.home / "AppData" / "Local"
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.named("XDG_DATA_HOME") or self.home / ".local" / "share"


def model_sources(
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    *,
    skip: Iterable[str] = (),
    platform: str = sys.platform,
) -> tuple[ModelSource, ...]:
    """Every program whose model folders exist here, those in ``skip`` (keys) left out.

    ``environ``, ``home`` and ``platform`` are this process's own unless given.
    """
    places = _Places(
        os.environ if environ is None else environ,
        Path.home() if home is None else home,
        platform,
    )
    skipped = frozenset(skip)
    found: list[ModelSource] = []
    taken: set[Path] = set()
    for key, (label, candidates) in _SOURCES.items():
        if key in skipped:
            continue
        folders = []
        for folder in candidates(places):
            if folder not in taken and _is_folder(folder):
                taken.add(folder)
                folders.append(folder)
        if folders:
            found.append(ModelSource(key, label, tuple(folders)))
    return tuple(found)


def source_labels() -> dict[str, str]:
    """The name of every program that is looked for, by its key."""
    return {key: label for key, (label, _) in _SOURCES.items()}


def default_model_folders(
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    *,
    skip: Iterable[str] = (),
) -> tuple[Path, ...]:
    """All existing folders of :func:`model_sources`, in its order."""
    sources = model_sources(environ, home, skip=skip)
    return tuple(folder for source in sources for folder in source.folders)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _setting(file: Path, *names: str) -> Path | None:
    """A folder that another program's settings name; None where it names none."""
    try:
        value: object = json.loads(_settings_text(file))
    except (OSError, ValueError, RecursionError):
        return None
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return _folder_named(value)


def _ini_setting(file: Path, name: str) -> Path | None:
    """A folder that another program's settings name, as Qt writes them without a group."""
    try:
        text = _settings_text(file)
    except (OSError, ValueError):
        return None
    for line in text.splitlines():
        key, found, value = line.partition("=")
        if found and key.strip() == name:
            return _folder_named(value.strip().strip('"').replace("\\\\", "\\"))
    return None


def _settings_text(file: Path) -> str:
    if file.stat().st_size > _MAX_SETTINGS_BYTES:
        raise ValueError("too large for settings")
    return file.read_text(encoding="utf-8-sig")


def _folder_named(value: object) -> Path | None:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return None
    return Path(value.strip())


def _hugging_face(places: _Places) -> list[Path]:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if folder := places.named(name):
            return [folder]
    base = places.named("HF_HOME") or places.cache / "huggingface"
    return [base / "hub"]


def _lm_studio(places: _Places) -> list[Path]:
    home = places.home
    folders = [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    try:
        # LM Studio writes here where its home was moved to.
        pointer = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError):
        pointer = ""
    if pointer and "\0" not in pointer:
        folders.insert(0, Path(pointer) / "models")
    for base in (Path(pointer) if pointer and "\0" not in pointer else None, home / ".lmstudio"):
        moved = _setting(base / "settings.json", "downloadsFolder") if base else None
        if moved is not None:
            folders.insert(0, moved)
    return folders


def _llama_cpp(places: _Places) -> list[Path]:
    # Today's llama.cpp downloads into Hugging Face's cache; these are its own, older ones.
    if places.platform == "win32":
        own = places.data / "llama.cpp"
    elif places.platform == "darwin":
        own = places.home / "Library" / "Caches" / "llama.cpp"
    else:
        own = places.cache / "llama.cpp"
    moved = places.named("LLAMA_CACHE")
    return [own] if moved is None else [moved, own]


def _jan(places: _Places) -> list[Path]:
    bases = []
    if moved := places.named("JAN_DATA_FOLDER"):
        bases.append(moved)
    roots = [places.config, places.data]
    if root := places.named("JAN_DATA_ROOT"):
        roots.insert(0, root)
    for app in ("Jan", "jan"):
        for root in roots:
            moved = _setting(root / app / "settings.json", "data_folder")
            bases += [moved] if moved is not None else []
            bases += [root / app / "data", root / app]
    bases.append(places.home / "jan")
    return [base / part for base in bases for part in (Path("llamacpp", "models"), Path("models"))]


def _gpt4all(places: _Places) -> list[Path]:
    folders = [places.data / "nomic.ai" / "GPT4All", places.cache / "gpt4all"]
    moved = _ini_setting(places.config / "nomic.ai" / "GPT4All.ini", "modelPath")
    return folders if moved is None else [moved, *folders]


#: Unpacked wherever the user liked; these are the usual places.
_UNPACKED_IN = ("", "Downloads", "Documents", "Desktop")


def _text_generation_webui(places: _Places) -> list[Path]:
    return [
        places.home / below / name / inner
        for below in _UNPACKED_IN
        for name in ("text-generation-webui", "text-generation-webui-main", "textgen")
        for inner in (Path("user_data", "models"), Path("models"))
    ] + [
        # Its portable editions share this folder, which lies beside them.
        places.home / below / "user_data" / "models"
        for below in _UNPACKED_IN
    ]


def _kobold_cpp(places: _Places) -> list[Path]:
    return [
        places.home / below / name
        for below in _UNPACKED_IN
        for name in ("koboldcpp", "KoboldCpp", "KoboldCPP")
    ]


def _ollama(places: _Places) -> list[Path]:
    folders = [places.home / ".ollama" / "models"]
    if moved := places.named("OLLAMA_MODELS"):
        folders.insert(0, moved)
    if places.platform == "linux":
        # As a system service it has a home of its own.
        folders += [
            Path("/usr/share/ollama/.ollama/models"),
            Path("/var/lib/ollama/.ollama/models"),
            Path("/var/lib/ollama/models"),
        ]
    return folders


_SOURCES: dict[str, tuple[str, Callable[[_Places], list[Path]]]] = {
    "hugging_face": ("Hugging Face", _hugging_face),
    "lm_studio": ("LM Studio", _lm_studio),
    "llama_cpp": ("llama.cpp", _llama_cpp),
    "jan": ("Jan", _jan),
    "gpt4all": ("GPT4All", _gpt4all),
    "text_generation_webui": ("text-generation-webui", _text_generation_webui),
    "koboldcpp": ("KoboldCpp", _kobold_cpp),
    "ollama": ("Ollama", _ollama),
}
