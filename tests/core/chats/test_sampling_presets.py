"""Presets: the model's own, ours, the user's; and what a chat's numbers are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.chats.chat_library import MODELS, PRESETS, ChatLibrary
from moelauncher.core.chats.sampling_presets import (
    Preset,
    all_presets,
    model_sampling,
    preset_in,
    preset_label,
    settings_for_model,
    with_preset,
)

QWEN = {
    "general.sampling.temp": 0.6,
    "general.sampling.top_k": 20,
    "general.sampling.top_p": 0.95,
    "general.sampling.penalty_repeat": 1.05,
    "general.name": "Qwen",
}
OF_QWEN = {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "repeat_penalty": 1.05}


@pytest.fixture
def library(tmp_path: Path) -> ChatLibrary:
    return ChatLibrary(tmp_path / "library.json")


def named(presets: tuple[Preset, ...], key: str) -> Preset:
    return next(preset for preset in presets if preset.key == key)


def test_a_model_brings_its_own() -> None:
    assert model_sampling(QWEN) == OF_QWEN
    assert model_sampling({"general.name": "x"}) == {}
    broken = {"general.sampling.temp": "hot", "general.sampling.top_p": 7.0}
    assert model_sampling(broken) == {}


def test_what_there_is_to_choose(library: ChatLibrary) -> None:
    ours = ["precise", "balanced", "creative", "greedy"]
    assert [preset.key for preset in all_presets({}, library)] == ours
    library.put(PRESETS, "mine", {"temperature": 0.33, "nonsense": 1})
    library.put(PRESETS, "broken", "text")
    presets = all_presets(QWEN, library)
    assert [preset.key for preset in presets] == ["model", *ours, "own:mine"]
    assert presets[-1].values == {"temperature": 0.33} and presets[-1].is_own


def test_a_chat_is_called_by_its_preset(library: ChatLibrary) -> None:
    presets = all_presets(QWEN, library)
    chat: dict[str, object] = {"seed": 3, "top_k": 7}
    assert preset_label(chat, presets) == "own numbers"
    chat = with_preset(chat, named(presets, "precise"))
    assert (chat["seed"], chat["top_k"], chat["temperature"]) == (3, 40, 0.2)
    assert preset_label(chat, presets) == "precise"
    assert preset_label({**chat, "temperature": 0.21}, presets) == "own numbers"
    assert with_preset(chat, None) == {"seed": 3}
    assert preset_label({"seed": 3}, presets) == "usual"


def test_of_two_equal_ones_the_chosen_is_named(library: ChatLibrary) -> None:
    precise = named(all_presets({}, library), "precise")
    library.put(PRESETS, "mine", dict(precise.values))
    presets = all_presets({}, library)
    chosen = preset_in(with_preset({}, named(presets, "own:mine")), presets)
    assert chosen is not None and chosen.label == "mine"
    library.put(PRESETS, "mine", None)
    left = preset_in(with_preset({}, chosen), all_presets({}, library))
    assert left is not None and left.key == "precise"


def test_new_chats_begin_with_what_was_last_set_for_the_model(library: ChatLibrary) -> None:
    assert settings_for_model("a.gguf", {}, library) == {}
    assert settings_for_model("a.gguf", QWEN, library) == {**OF_QWEN, "preset": "model"}
    library.put(MODELS, "a.gguf", {"temperature": 0.1})
    assert settings_for_model("a.gguf", QWEN, library) == {"temperature": 0.1}
    library.put(MODELS, "a.gguf", {})
    assert settings_for_model("a.gguf", QWEN, library) == {}
