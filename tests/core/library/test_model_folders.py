"""Other programs' folders: where each keeps its models, on Linux and on Windows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.library.library_settings import (
    hidden_models,
    hide_model,
    show_hidden_models,
    skipped_sources,
    switch_source,
)
from moelauncher.core.library.model_folders import (
    default_model_folders,
    model_sources,
    source_labels,
)
from moelauncher.core.program.settings import Settings


def made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("key", "platform", "folder"),
    [
        ("hugging_face", "linux", ".cache/huggingface/hub"),
        ("hugging_face", "win32", ".cache/huggingface/hub"),
        ("lm_studio", "linux", ".lmstudio/models"),
        ("lm_studio", "linux", ".cache/lm-studio/models"),
        ("lm_studio", "win32", ".lmstudio/models"),
        ("llama_cpp", "linux", ".cache/llama.cpp"),
        ("llama_cpp", "win32", "AppData/Local/llama.cpp"),
        ("jan", "linux", ".config/Jan/data/llamacpp/models"),
        ("jan", "linux", ".local/share/Jan/data/llamacpp/models"),
        ("jan", "linux", "jan/models"),
        ("jan", "win32", "AppData/Roaming/Jan/data/llamacpp/models"),
        ("gpt4all", "linux", ".local/share/nomic.ai/GPT4All"),
        ("gpt4all", "win32", "AppData/Local/nomic.ai/GPT4All"),
        ("text_generation_webui", "linux", "text-generation-webui/user_data/models"),
        ("text_generation_webui", "win32", "Downloads/text-generation-webui/models"),
        ("text_generation_webui", "win32", "Downloads/user_data/models"),
        ("koboldcpp", "linux", "koboldcpp"),
        ("koboldcpp", "win32", "Desktop/KoboldCpp"),
        ("ollama", "linux", ".ollama/models"),
        ("ollama", "win32", ".ollama/models"),
    ],
)
def test_each_program_s_usual_place(tmp_path: Path, key: str, platform: str, folder: str) -> None:
    made(tmp_path / folder)
    (source,) = model_sources({}, tmp_path, platform=platform)
    assert (source.key, source.folders) == (key, (tmp_path / folder,))
    assert source.label == source_labels()[key]
    assert model_sources({}, tmp_path, platform=platform, skip=[key]) == ()


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("HF_HUB_CACHE", "hugging_face"),
        ("HUGGINGFACE_HUB_CACHE", "hugging_face"),
        ("LLAMA_CACHE", "llama_cpp"),
        ("OLLAMA_MODELS", "ollama"),
    ],
)
def test_variables_move_a_folder(tmp_path: Path, variable: str, key: str) -> None:
    moved = made(tmp_path / "elsewhere")
    (source,) = model_sources({variable: str(moved)}, tmp_path / "home", platform="win32")
    assert (source.key, source.folders) == (key, (moved,))
    made(tmp_path / "home" / "x")
    (source,) = model_sources({variable: "~/x"}, tmp_path / "home", platform="win32")
    assert source.folders == (tmp_path / "home" / "x",)
    for nonsense in ("", "  ", "a\0b", str(tmp_path / "none")):
        assert model_sources({variable: nonsense}, tmp_path / "home", platform="win32") == ()


def test_settings_of_other_programs_move_a_folder(tmp_path: Path) -> None:
    studio, jan = made(tmp_path / "studio"), made(tmp_path / "j" / "llamacpp" / "models")
    home = tmp_path / "home"
    (made(home / ".lmstudio") / "settings.json").write_text(
        json.dumps({"downloadsFolder": str(studio)}), encoding="utf-8"
    )
    (made(home / ".config" / "Jan") / "settings.json").write_text(
        json.dumps({"data_folder": str(tmp_path / "j")}), encoding="utf-8"
    )
    found = {source.key: source.folders for source in model_sources({}, home, platform="linux")}
    assert found["lm_studio"] == (studio,)
    assert found["jan"] == (jan,)
    variables = {"JAN_DATA_FOLDER": str(tmp_path / "j"), "JAN_DATA_ROOT": str(tmp_path / "none")}
    (source,) = model_sources(variables, tmp_path / "other home", platform="win32")
    assert (source.key, source.folders) == ("jan", (jan,))
    pointed = made(tmp_path / "pointed" / "models")
    (home / ".lmstudio-home-pointer").write_text(str(pointed.parent), encoding="utf-8")
    assert pointed in default_model_folders({}, home)


@pytest.mark.parametrize(
    ("platform", "settings"), [("linux", ".config"), ("win32", "AppData/Roaming")]
)
def test_where_gpt4all_and_jan_name_a_folder(tmp_path: Path, platform: str, settings: str) -> None:
    models, jan = made(tmp_path / "m"), made(tmp_path / "j" / "models")
    home = tmp_path / "home"
    data = ".local/share" if platform == "linux" else settings
    ini = made(home / settings / "nomic.ai") / "GPT4All.ini"
    ini.write_text(f"[General]\ndevice=CPU\nmodelPath={models}/\n", encoding="utf-8")
    (made(home / data / "Jan") / "settings.json").write_text(
        json.dumps({"data_folder": str(jan.parent)}), encoding="utf-8"
    )
    found = {source.key: source.folders for source in model_sources({}, home, platform=platform)}
    assert found["gpt4all"] == (models,)
    assert found["jan"] == (jan,)
    ini.write_text("modelPath=\n", encoding="utf-8")
    assert "gpt4all" not in {s.key for s in model_sources({}, home, platform=platform)}


@pytest.mark.parametrize("text", ["", "[", "[]", '{"downloadsFolder": 5}', "\0", "{" * 100_000])
def test_damaged_settings_of_other_programs_are_passed_over(tmp_path: Path, text: str) -> None:
    usual = made(tmp_path / ".lmstudio" / "models")
    (tmp_path / ".lmstudio" / "settings.json").write_text(text, encoding="utf-8")
    assert default_model_folders({}, tmp_path) == (usual,)


def test_one_folder_belongs_to_one_program(tmp_path: Path) -> None:
    shared = made(tmp_path / "models")
    variables = {"HF_HUB_CACHE": str(shared), "LLAMA_CACHE": str(shared)}
    (source,) = model_sources(variables, tmp_path / "home", platform="win32")
    assert source.key == "hugging_face"


def test_sources_are_switched_one_by_one(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path / "settings.toml")
    assert skipped_sources(settings) == frozenset()
    for key in source_labels():
        switch_source(settings, key, False)
    settings.save()
    settings = Settings.load(tmp_path / "settings.toml")
    assert skipped_sources(settings) == frozenset(source_labels())
    switch_source(settings, "jan", True)
    switch_source(settings, "hugging_face", True)
    assert skipped_sources(settings) == set(source_labels()) - {"jan", "hugging_face"}


def test_models_can_be_taken_from_the_list_and_put_back(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path / "settings.toml")
    hide_model(settings, Path("/models/a.gguf"))
    hide_model(settings, Path("/models/a.gguf"))
    hide_model(settings, Path("/models/b.gguf"))
    assert hidden_models(settings) == {Path("/models/a.gguf"), Path("/models/b.gguf")}
    show_hidden_models(settings)
    assert hidden_models(settings) == frozenset()
