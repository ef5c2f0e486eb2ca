"""Paths survive being stored, whatever bytes their names hold."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from moelauncher.core.library_settings import hidden_models, hide_model
from moelauncher.core.path_text import path_as_text, path_of_text
from moelauncher.core.settings import Settings
from moelauncher.core.window_state import StateFile

undecodable = pytest.mark.skipif(
    sys.platform == "win32", reason="names are text on Windows, whatever else they are"
)


@pytest.mark.parametrize(
    "text", ["/m/größe 日本.gguf", "/m/50%25.gguf", "relative.gguf", "C:\\m\\a"]
)
def test_text_stays_as_it_is(text: str) -> None:
    assert path_as_text(Path(text)) == str(Path(text))
    assert path_of_text(path_as_text(Path(text))) == Path(text)


@undecodable
def test_bytes_that_are_no_text_come_back() -> None:
    path = Path(os.fsdecode(b"/m/caf\xe9 100%/m\xff.gguf"))
    assert path_as_text(path).isascii()
    assert path_of_text(path_as_text(path)) == path


@undecodable
def test_settings_hold_such_a_path(tmp_path: Path) -> None:
    path = Path(os.fsdecode(b"/m/caf\xe9.gguf"))
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
