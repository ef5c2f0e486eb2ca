"""The settings of the model list as questions and answers: sources on or off, rows taken away.

In and out: :class:`Settings`; nothing is saved here. One thread.
"""

from __future__ import annotations

from pathlib import Path

from moelauncher.core.library.model_folders import source_labels
from moelauncher.core.path_text import path_as_text, path_of_text
from moelauncher.core.program.settings import HF_CACHE, HIDDEN_MODELS, SKIPPED_SOURCES, Settings

_HUGGING_FACE = "hugging_face"


def skipped_sources(settings: Settings) -> frozenset[str]:
    """Keys of the programs whose folders the user does not want listed."""
    skipped = {*settings.get(SKIPPED_SOURCES)}
    if not settings.get(HF_CACHE):
        skipped.add(_HUGGING_FACE)
    return frozenset(skipped)


def switch_source(settings: Settings, key: str, on: bool) -> None:
    """List a program's models from now on, or no longer."""
    if key == _HUGGING_FACE:
        settings.set(HF_CACHE, on)
        return
    skipped = settings.get(SKIPPED_SOURCES)
    known = [name for name in source_labels() if (not on if name == key else name in skipped)]
    settings.set(SKIPPED_SOURCES, tuple(known))


def hidden_models(settings: Settings) -> frozenset[Path]:
    """Models that were taken from the list; their files are where they were."""
    return frozenset(path_of_text(text) for text in settings.get(HIDDEN_MODELS))


def hide_model(settings: Settings, path: Path) -> None:
    """Take a model from the list."""
    hidden = settings.get(HIDDEN_MODELS)
    text = path_as_text(path)
    if text not in hidden:
        settings.set(HIDDEN_MODELS, (*hidden, text))


def show_hidden_models(settings: Settings) -> None:
    """List again what was taken away."""
    settings.set(HIDDEN_MODELS, ())
