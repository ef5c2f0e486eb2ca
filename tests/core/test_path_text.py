"""Paths survive being stored, whatever bytes their names hold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moelauncher.core.library.library_settings import hidden_models, hide_model
from moelauncher.core.path_text import path_as_text, path_of_text
from moelauncher.core.program.settings import Settings
from moelauncher.core.program.window_state import StateFile

#: What each system allows in a name and no text file can hold: odd bytes, or half a character.
ROOT, ODD = ("C:/m", "caf\ud83d") if sys.platform == "win32" else ("/m", "caf\udce9")


@pytest.mark.parametrize(
    "text", ["/m/größe 日本.gguf", "/m/50%25.gguf", "relative.gguf", "C:\\m\\a"]
)
def test_text_stays_as_it_is(text: str) -> None:
    assert path_as_text(Path(text)) == str(Path(text))
    assert path_of_text(path_as_text(Path(text))) == Path(text)


@pytest.mark.parametrize("root", [ROOT, "//server/share"])
def test_names_that_are_no_text_come_back(root: str) -> None:
    path = Path(f"{root}/{ODD} 100%/größe #1 {ODD}.gguf")
    assert path_as_text(path).isascii()
    assert path_of_text(path_as_text(path)) == path


def test_settings_hold_such_a_path(tmp_path: Path) -> None:
    path = Path(f"{ROOT}/{ODD}.gguf")
    settings = Settings.load(tmp_path / "settings.toml")
    hide_model(settings, path)
    settings.save()
    again = Settings.load(tmp_path / "settings.toml")
    assert again.notes == ()
    assert hidden_models(again) == {path}


def test_window_state_holds_such_a_text(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "window.json")
    state.set("selected_model", "/m/caf\udce9.gguf")
    assert state.save()
    assert StateFile(tmp_path / "window.json").get("selected_model") == "/m/caf\udce9.gguf"
