"""The whole job in the built window, with the real sample model and llama.cpp in-process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QPlainTextEdit, QPushButton, QSlider, QWidget
from pytestqt.qtbot import QtBot

from moelauncher.core.library.sample_model import build_sample_model
from moelauncher.core.session_state import SessionState
from tests.helpers.leaks import python_threads
from tests.helpers.window_driver import WindowDriver, sample_basedir


@pytest.fixture
def basedir(tmp_path: Path, session_cache: Path) -> Path:
    """A base folder with the sample model in its cache, and a greedy sampler."""
    return sample_basedir(tmp_path / "base", session_cache)


@pytest.fixture
def demo(qtbot: QtBot, basedir: Path) -> Iterator[WindowDriver]:
    """The program with ``--demo``, the sample model selected."""
    driver = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    try:
        driver.wait(lambda: driver.widget(QPushButton, "launchButton").isEnabled())
        yield driver
    finally:
        driver.close()


def test_the_whole_job(demo: WindowDriver) -> None:
    slider = demo.widget(QSlider, "expertSlider")
    assert slider.maximum() == 30
    before = demo.window.memory.gauge.bars
    demo.move_slider(8)
    assert demo.window.memory.gauge.bars != before, "the gauge moves with the slider"

    demo.launch()
    assert demo.program.session.state is SessionState.READY, demo.status_text()
    demo.ask("What is the capital of France?")
    demo.wait_for_state(SessionState.READY)
    assert "Paris" in demo.chat_text()
    assert "tok/s" in demo.chat_text()
    assert not demo.window.speed.history.is_empty

    demo.ask("Tell me a long story about the sea.")
    demo.wait_for_state(SessionState.GENERATING)
    demo.press("stopButton")
    demo.wait_for_state(SessionState.READY)

    demo.move_slider(20)
    demo.launch()
    assert demo.program.session.state is SessionState.READY, demo.status_text()
    demo.ask("And the capital of Italy?")
    demo.wait_for_state(SessionState.READY)
    assert "Rome" in demo.chat_text()
    assert "Paris" in demo.chat_text(), "the chat goes on"

    demo.press("unloadButton")
    demo.wait_for_state(SessionState.SELECTED)
    assert "Rome" in demo.chat_text(), "unloading keeps the chat"
    demo.close()
    assert [thread.name for thread in python_threads()] == ["MainThread"]


def test_the_slider_moves_under_a_running_reply(demo: WindowDriver) -> None:
    demo.move_slider(8)
    demo.launch()
    demo.ask("Tell me a long story about the sea.")
    demo.wait(lambda: len(demo.chat_text()) > 200)
    before = demo.chat_text()
    combo = demo.widget(QComboBox, "contextCombo")
    combo.lineEdit().setText("8k")
    combo.lineEdit().editingFinished.emit()
    assert demo.program.session.planner.choices().context.n_ctx == 8192
    demo.move_slider(20)
    assert "chat goes on" in demo.widget(QPushButton, "launchButton").text()
    demo.press("launchButton")
    demo.wait_for_state(SessionState.GENERATING)
    demo.wait(lambda: "after the change" in demo.status_text())
    demo.wait(lambda: len(demo.chat_text()) > len(before) + 200)
    assert demo.chat_text().startswith(before.rstrip()[:200])
    assert [mark.text for mark in demo.window.speed.history.marks(0.0)] == ["8 › 20"]
    demo.press("stopButton")
    demo.wait_for_state(SessionState.READY)


def test_live_applies_by_itself(demo: WindowDriver) -> None:
    demo.launch()
    live = demo.widget(QCheckBox, "liveSwitch")
    live.setChecked(True)
    demo.move_slider(11)
    demo.move_slider(12)
    session = demo.program.session
    demo.wait(lambda: session.state is SessionState.READY and "12" in marks_text(demo))
    assert demo.widget(QPushButton, "launchButton").text() == "Loaded"
    live.setChecked(False)
    demo.move_slider(13)
    assert demo.widget(QPushButton, "launchButton").isEnabled()


def marks_text(demo: WindowDriver) -> str:
    return " ".join(mark.text for mark in demo.window.speed.history.marks(0.0))


def test_all_named_widgets_are_there(demo: WindowDriver) -> None:
    names = (
        "modelList",
        "modelFilter",
        "memoryGauge",
        "expertSlider",
        "expertSpin",
        "layerStrip",
        "contextCombo",
        "kvCombo",
        "launchButton",
        "chatView",
        "chatInput",
        "sendButton",
        "stopButton",
        "statusLine",
    )
    for name in names:
        assert demo.widget(QWidget, name).accessibleName(), f"{name} has no accessible name"
    demo.wait(lambda: demo.window.findChild(QWidget, "speedPlot") is not None)


def test_cancel_of_a_load_leaves_everything_usable(demo: WindowDriver) -> None:
    demo.press("launchButton")
    demo.wait_for_state(SessionState.CHECKING, SessionState.LOADING, SessionState.READY)
    demo.program.session.cancel()
    demo.wait_for_state(SessionState.SELECTED, SessionState.READY)
    if demo.program.session.state is SessionState.SELECTED:
        demo.launch()
    assert demo.program.session.state is SessionState.READY


def test_choices_are_remembered(qtbot: QtBot, basedir: Path) -> None:
    first = WindowDriver(qtbot, ["--demo", "--basedir", str(basedir)])
    first.wait(lambda: first.widget(QPushButton, "launchButton").isEnabled())
    first.move_slider(11)
    first.close()
    second = WindowDriver(qtbot, ["--basedir", str(basedir)])
    second.wait(lambda: second.widget(QPushButton, "launchButton").isEnabled())
    assert second.widget(QSlider, "expertSlider").value() == 11, "same model, same stop"
    second.close()


def test_a_model_that_vanishes_between_listing_and_launch(demo: WindowDriver) -> None:
    sample = demo.program.session.planner.facts
    assert sample is not None
    sample.path.unlink()
    demo.press("launchButton")
    demo.wait_for_state(SessionState.FAILED)
    assert sample.path.name in demo.status_text() or "no longer" in demo.status_text()
    assert demo.widget(QPlainTextEdit, "chatInput").isEnabled()


@pytest.mark.parametrize("name", ["empty.gguf", "text.gguf", "cut.gguf", "folder.gguf"])
def test_bad_files_are_rows_with_a_reason(
    qtbot: QtBot, tmp_path: Path, session_cache: Path, name: str
) -> None:
    bad = tmp_path / name
    if name == "folder.gguf":
        bad.mkdir()
    elif name == "cut.gguf":
        with build_sample_model(session_cache).open("rb") as whole:
            bad.write_bytes(whole.read(8_000_000))
    else:
        bad.write_bytes(b"" if name == "empty.gguf" else b"this is no model at all\n" * 10)
    driver = WindowDriver(qtbot, [str(bad), "--basedir", str(tmp_path / "base")])
    try:
        driver.wait(lambda: bool(driver.status_text()))
        assert driver.program.session.state in (SessionState.UNLOADABLE, SessionState.EMPTY)
        assert not driver.widget(QPushButton, "launchButton").isEnabled()
        # A folder is looked into: only a file becomes the selected row.
        is_row = name != "folder.gguf"
        wanted = "This file cannot be loaded." if is_row else "Select a model to place its layers."
        driver.wait(lambda: driver.window.placement.sentence.text() == wanted)
    finally:
        driver.close()
