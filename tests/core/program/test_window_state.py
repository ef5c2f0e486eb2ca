"""The window's own memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from moelauncher.core.program.window_state import StateFile


def test_values_come_back(tmp_path: Path) -> None:
    path = tmp_path / "data" / "window.json"
    state = StateFile(path)
    assert state.get("sizes") is None
    state.set("sizes", [200, 500])
    state.set("models", {"Qwen 日本": {"cpu_moe": 30}})
    assert state.save()
    again = StateFile(path)
    assert again.get("sizes") == [200, 500]
    assert again.get("models") == {"Qwen 日本": {"cpu_moe": 30}}


def test_none_forgets(tmp_path: Path) -> None:
    path = tmp_path / "window.json"
    state = StateFile(path)
    state.set("a", 1)
    state.set("a", None)
    state.save()
    assert StateFile(path).get("a") is None


def test_nothing_changed_writes_nothing(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "window.json")
    assert state.save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xff", b"[" * 100_000, b""])
def test_a_broken_file_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "window.json"
    path.write_bytes(content)
    state = StateFile(path)
    assert state.get("a") is None
    state.set("a", 1)
    assert state.save()
    assert StateFile(path).get("a") == 1


def test_an_unwritable_place_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    state = StateFile(tmp_path / "data" / "window.json")
    state.set("a", 1)
    assert not state.save()
    assert "Cannot write" in caplog.text
