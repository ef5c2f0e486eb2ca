"""Named ways to draw tokens: the model's own, ours, and the user's.

In: a file's metadata and what the user saved. Out: :class:`Preset`. A chat holds a preset's
numbers themselves, so that it stays as it was when a preset is changed or deleted. Pure; any
thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moelauncher.core.chats.chat_library import MODELS, PRESETS, ChatLibrary
from moelauncher.core.chats.chat_settings import known_numbers
from moelauncher.core.translate import tr

SAMPLING_NAMES = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty")
MODEL_KEY = "model"
#: The key of a user's preset is this and its name.
OWN = "own:"

_OURS: Mapping[str, Mapping[str, float]] = {
    "precise": {"temperature": 0.2, "top_k": 40, "top_p": 0.9, "min_p": 0.05},
    "balanced": {"temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
    "creative": {"temperature": 1.1, "top_k": 100, "top_p": 0.98, "min_p": 0.03},
    "greedy": {"temperature": 0.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
}
_IN_METADATA = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repeat_penalty",
}


@dataclass(frozen=True)
class Preset:
    """``values``: numbers by name in a chat's settings; what is missing is as usual."""

    key: str
    label: str
    values: Mapping[str, object]

    @property
    def is_own(self) -> bool:
        """Whether the user saved it, and may delete it."""
        return self.key.startswith(OWN)


def sampling_of(settings: Mapping[str, object]) -> dict[str, object]:
    """The part of a chat's settings that a preset sets; nonsense is passed over."""
    known = known_numbers(settings)
    return {name: known[name] for name in SAMPLING_NAMES if name in known}


def model_sampling(metadata: Mapping[str, object]) -> dict[str, object]:
    """What the makers of a model recommend, as its file says; empty where it does not."""
    return sampling_of(
        {name: metadata[key] for key, name in _IN_METADATA.items() if key in metadata}
    )


def all_presets(metadata: Mapping[str, object], library: ChatLibrary) -> tuple[Preset, ...]:
    """The model's own where its file has one, then ours, then the user's."""
    labels = {
        "precise": tr("precise"),
        "balanced": tr("balanced"),
        "creative": tr("creative"),
        "greedy": tr("greedy"),
    }
    found = []
    of_model = model_sampling(metadata)
    if of_model:
        found.append(Preset(MODEL_KEY, tr("model's own"), of_model))
    for key, values in _OURS.items():
        found.append(Preset(key, labels[key], {**values, "repeat_penalty": 1.0}))
    for name in library.names(PRESETS):
        kept = library.get(PRESETS, name)
        saved = sampling_of(kept) if isinstance(kept, dict) else {}
        if saved:
            found.append(Preset(OWN + name, name, saved))
    return tuple(found)


def with_preset(settings: Mapping[str, object], preset: Preset | None) -> dict[str, object]:
    """A chat's settings drawn by ``preset``; None: as usual."""
    kept = {k: v for k, v in settings.items() if k not in (*SAMPLING_NAMES, "preset")}
    return kept if preset is None else {**kept, **preset.values, "preset": preset.key}


def preset_in(settings: Mapping[str, object], presets: Sequence[Preset]) -> Preset | None:
    """Which preset these settings are: the one that was chosen, or the first that is equal."""
    values = sampling_of(settings)
    if not values:
        return None
    equal = [preset for preset in presets if sampling_of(preset.values) == values]
    chosen = [preset for preset in equal if preset.key == settings.get("preset")]
    return next(iter((*chosen, *equal)), None)


def preset_label(settings: Mapping[str, object], presets: Sequence[Preset]) -> str:
    """What the way to draw is called: a preset's name, "usual", or "own numbers"."""
    if not sampling_of(settings):
        return tr("usual")
    found = preset_in(settings, presets)
    return tr("own numbers") if found is None else found.label


def settings_for_model(
    path: str, metadata: Mapping[str, object], library: ChatLibrary
) -> dict[str, object]:
    """What a new chat with this model begins with: what was last set for it, or its own."""
    kept = library.get(MODELS, path)
    if isinstance(kept, dict):
        return dict(kept)
    of_model = model_sampling(metadata)
    return {**of_model, "preset": MODEL_KEY} if of_model else {}
