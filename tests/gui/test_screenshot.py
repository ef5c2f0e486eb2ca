"""``--screenshot``: a picture once all is settled, and an exit status."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from moelauncher.gui import screenshot
from moelauncher.gui.screenshot import Screenshot


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    statuses: list[int] = []
    monkeypatch.setattr(screenshot, "_LOOK_EVERY_MS", 1)
    monkeypatch.setattr(screenshot.QCoreApplication, "exit", statuses.append)
    return statuses


def test_picture_is_taken_once_it_has_been_settled_for_a_while(
    qtbot: QtBot, tmp_path: Path, ended: list[int]
) -> None:
    looks = iter([True, False, *[True] * 100])
    label = QLabel("window")
    qtbot.addWidget(label)
    label.show()
    file = tmp_path / "window.png"
    Screenshot(label, lambda: next(looks), file)
    qtbot.waitUntil(lambda: bool(ended))
    assert ended == [0]
    assert file.read_bytes().startswith(b"\x89PNG")
    assert len(list(looks)) == 102 - 2 - screenshot._SETTLED_LOOKS
    assert not label.isVisible()


@pytest.mark.parametrize("settles", [True, False])
def test_no_picture_is_a_failure(
    qtbot: QtBot,
    tmp_path: Path,
    ended: list[int],
    settles: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(screenshot, "_PATIENCE_LOOKS", 20)
    label = QLabel("window")
    qtbot.addWidget(label)
    Screenshot(label, lambda: settles, tmp_path / "no such folder" / "window.png")
    qtbot.waitUntil(lambda: bool(ended))
    assert ended == [1]
    assert ("no such folder" if settles else "did not settle") in capsys.readouterr().err
