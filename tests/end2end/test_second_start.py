"""The program started again while its window is open: by processes, as the system starts them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.program_starts import ended, eventually, started
from tests.helpers.window_driver import WindowDriver


def test_the_open_window_takes_the_file_and_is_closed(tmp_path: Path) -> None:
    base, model = tmp_path / "base", tmp_path / "größe 2.gguf"
    write_tiny_model(model)
    log = base / "logs" / "moelauncher.log"
    first = started(base, [])
    eventually(lambda: log.exists() and "listening for later starts" in log.read_text("utf-8"))
    # A relative name: the two may run in different folders.
    assert ended(started(base, [model.name])) == (0, "")
    assert first.poll() is None
    eventually(lambda: f"selected {model}" in log.read_text("utf-8"))
    assert ended(started(base, ["--quit"])) == (0, "")
    assert ended(first) == (0, "")
    kept = json.loads((base / "data" / "window.json").read_text("utf-8"))
    assert Path(kept["selected_model"]) == model
    assert not list(base.glob("logs/running-*.json"))


def test_without_a_window_nothing_is_closed_and_none_opens(tmp_path: Path) -> None:
    assert ended(started(tmp_path / "base", ["--quit"])) == (0, "")
    assert not (tmp_path / "base").exists()


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[WindowDriver]:
    driver = WindowDriver(qtbot, ["--basedir", str(tmp_path / "base")])
    driver.wait(lambda: not driver.program.session.library.is_scanning)
    yield driver
    driver.close()


@pytest.mark.parametrize("token", ["", "a-token-of-the-compositor"])
def test_the_window_comes_to_front_with_the_starter_s_leave(
    window: WindowDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    seen: list[str] = []
    monkeypatch.delenv("XDG_ACTIVATION_TOKEN", raising=False)
    monkeypatch.setattr(
        window.window,
        "activateWindow",
        lambda: seen.append(os.environ.get("XDG_ACTIVATION_TOKEN", "")),
    )
    window.window.showMinimized()
    second = started(tmp_path / "base", [], **({"XDG_ACTIVATION_TOKEN": token} if token else {}))
    window.wait(lambda: second.poll() is not None and bool(seen))
    assert ended(second) == (0, "")
    assert seen == [token]
    assert "XDG_ACTIVATION_TOKEN" not in os.environ
    assert not window.window.isMinimized()


def test_quit_closes_an_open_dialog_too(window: WindowDriver, tmp_path: Path) -> None:
    dialog = QDialog(window.window)
    dialog.open()
    second = started(tmp_path / "base", ["--quit"])
    window.wait(lambda: second.poll() is not None and not window.window.isVisible())
    assert ended(second) == (0, "")
    assert not dialog.isVisible()
