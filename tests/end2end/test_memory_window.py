"""Memory in the built window: what needs no load is none, and what is freed comes back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import EngineEvent, LoadProgress
from moelauncher.core.library.sample_model import build_sample_model, sample_model_path
from moelauncher.core.session_state import SessionState
from tests.helpers.window_driver import WindowDriver, settings_file


@pytest.fixture
def demo(qtbot: QtBot, tmp_path: Path, session_cache: Path) -> Iterator[WindowDriver]:
    """The program with the sample model selected."""
    built = build_sample_model(session_cache)
    base = tmp_path / "base"
    target = sample_model_path(base / "cache" / "sample")
    target.parent.mkdir(parents=True)
    try:
        os.link(built, target)
    except OSError:
        shutil.copyfile(built, target)
    settings_file(base, "[sampling]\ntemperature = 0.0\nmax_tokens = 4\n")
    driver = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    try:
        driver.wait(lambda: driver.widget(QPushButton, "launchButton").isEnabled())
        yield driver
    finally:
        driver.close()


def test_only_what_needs_a_load_is_one(demo: WindowDriver) -> None:
    stages: list[str] = []

    def note(events: list[EngineEvent]) -> None:
        stages.extend(event.stage for event in events if isinstance(event, LoadProgress))

    demo.program.session.bridge.events.connect(note)
    pane = demo.window.placement
    demo.launch()
    assert "reading" in stages

    stages.clear()
    pane.context.set_size(2048)
    pane.options_changed.emit()
    demo.launch()
    assert demo.program.session.state is SessionState.READY
    assert "reading" not in stages, "another context is made on the same model"

    stages.clear()
    pane.kv.setCurrentText("q8_0")
    pane.options_changed.emit()
    demo.launch()
    assert demo.program.session.state is SessionState.READY
    assert "reading" not in stages, "so is another KV type"

    stages.clear()
    pane.more.threads.setValue(1)
    pane.options_changed.emit()
    demo.launch()
    assert demo.program.session.state is SessionState.READY
    assert not {"reading", "context"} & set(stages), "threads need nothing at all"


def test_the_load_report_and_the_freed_model(demo: WindowDriver) -> None:
    demo.launch()
    comparison = demo.program.session.outcome.accounts.comparison
    assert comparison is not None
    assert comparison.wrong == ()
    assert demo.widget(QPushButton, "loadReportButton").isVisible()
    demo.press("unloadButton")
    demo.wait_for_state(SessionState.SELECTED)
    assert not demo.widget(QPushButton, "loadReportButton").isVisible()
    demo.ask("What is the capital of France?")
    # Asking loads it again. The answer is so short that its state may never be seen.
    demo.wait(lambda: demo.program.session.chat.conversation.last_reply is not None)
    demo.wait_for_state(SessionState.READY)
    assert "capital" in demo.chat_text()
    assert "tok/s" in demo.chat_text()
