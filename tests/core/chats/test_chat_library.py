"""Prompts and presets of the user survive: a restart, and a file that was damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moelauncher.core.chats.chat_library import PRESETS, PROMPTS, ChatLibrary
from moelauncher.core.errors import LauncherError


def test_what_was_put_is_there_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "config" / "library.json"
    library = ChatLibrary(file)
    library.put(PROMPTS, "übersetzer", "Übersetze ins Deutsche.")
    library.put(PROMPTS, "Brief", "Be brief.")
    library.put(PRESETS, "mine", {"temperature": 0.3})
    again = ChatLibrary(file)
    assert again.names(PROMPTS) == ["Brief", "übersetzer"]
    assert again.text(PROMPTS, "übersetzer") == "Übersetze ins Deutsche."
    assert again.get(PRESETS, "mine") == {"temperature": 0.3}
    again.put(PROMPTS, "Brief", None)
    assert ChatLibrary(file).names(PROMPTS) == ["übersetzer"]


@pytest.mark.parametrize("text", ["{", "[1]", "\udcff", '"x"'])
def test_a_damaged_file_is_moved_aside_and_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "library.json"
    file.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    library = ChatLibrary(file)
    aside = tmp_path / "library.json.broken-1"
    assert str(aside) in library.note
    assert aside.exists() and not file.exists()
    library.put(PROMPTS, "new", "text")
    assert ChatLibrary(file).note == ""


def test_tables_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "library.json"
    file.write_text(json.dumps({"prompts": [1], "presets": {"a": 1}}), encoding="utf-8")
    library = ChatLibrary(file)
    assert (library.names(PROMPTS), library.note) == ([], "")
    assert library.text(PRESETS, "a") == ""


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LauncherError):
        ChatLibrary(tmp_path / "file" / "library.json").put(PROMPTS, "a", "b")
