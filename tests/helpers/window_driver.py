"""Drives the built program as a person does: by its widgets' names, waiting for what shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton, QSlider, QWidget
from pytestqt.qtbot import QtBot

from moelauncher import app
from moelauncher.core.library.sample_model import build_sample_model, sample_model_path
from moelauncher.core.session_state import SessionState
from moelauncher.gui.controls.undo_bar import UndoBar
from tests.helpers.patient_qtbot import PATIENCE_MS

Kind = TypeVar("Kind", bound=QWidget)


class WindowDriver:
    """One running program under test. Close it in every test: :meth:`close`."""

    def __init__(self, qtbot: QtBot, arguments: Sequence[str]) -> None:
        self._qtbot = qtbot
        self._closed = False
        self.program = app.build(list(arguments))
        self.window = self.program.window
        for offer in self.window.findChildren(UndoBar):
            # What is deleted may be taken back as late as a busy machine comes to it.
            offer._timer.setInterval(PATIENCE_MS)

    def widget(self, kind: type[Kind], name: str) -> Kind:
        """The widget called ``name``."""
        found = self.window.findChild(kind, name)
        assert found is not None, f"no {kind.__name__} called {name}"
        return found

    def wait(self, condition: Callable[[], bool]) -> None:
        """Let the window live until ``condition`` holds."""
        self._qtbot.waitUntil(condition)

    def wait_for_state(self, *states: SessionState) -> None:
        """Let the window live until its session stands in one of ``states``."""
        self.wait(lambda: self.program.session.state in states)

    def press(self, name: str) -> None:
        """Click a button, which must be able to."""
        button = self.widget(QPushButton, name)
        assert button.isEnabled(), f"{name} is off: {button.toolTip()}"
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def launch(self) -> None:
        """Press Launch (or Apply) and wait until the model is there."""
        self.wait(lambda: self.widget(QPushButton, "launchButton").isEnabled())
        self.press("launchButton")
        self.wait_for_state(SessionState.READY, SessionState.FAILED)

    def move_slider(self, stop: int) -> None:
        """Put the slider on a stop."""
        self.widget(QSlider, "expertSlider").setValue(stop)

    def ask(self, text: str) -> None:
        """Type a message and press Send."""
        self.widget(QPlainTextEdit, "chatInput").setPlainText(text)
        self.press("sendButton")

    def chat_text(self) -> str:
        """All that the chat shows."""
        view = self.widget(QWidget, "chatView")
        text: str = view.toPlainText()  # type: ignore[attr-defined]
        return text

    def status_text(self) -> str:
        """The message in the status line, or nothing."""
        return self.window.status.message.text()

    def close(self) -> None:
        """Close the window as its frame's button does, and delete it. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.window.close()
        self.program.close()
        self.window.deleteLater()
        self.program.deleteLater()
        self._qtbot.wait(1)


def settings_file(basedir: Path, text: str) -> None:
    """Write the settings that a program under ``basedir`` will start with."""
    folder = basedir / "config"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.toml").write_text(text, encoding="utf-8")


def sample_basedir(base: Path, session_cache: Path) -> Path:
    """A base folder with the sample model in its cache, and a greedy sampler."""
    built = build_sample_model(session_cache)
    target = sample_model_path(base / "cache" / "sample")
    target.parent.mkdir(parents=True)
    try:
        os.link(built, target)
    except OSError:
        shutil.copyfile(built, target)
    settings_file(base, "[sampling]\ntemperature = 0.0\n")
    return base
