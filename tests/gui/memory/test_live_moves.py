"""The session while a reply waits for its model to move, over a scripted engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QCheckBox, QPushButton
from pytestqt.qtbot import QtBot

from moelauncher.core.engine_protocol import (
    CarriedChat,
    Finished,
    GenerationStats,
    LoadCancelled,
    Loaded,
    LoadFailed,
    LoadReport,
    PromptProgress,
    TokenEvent,
)
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import SessionState
from tests.helpers.gguf_files import write_tiny_model
from tests.helpers.scripted_session import ScriptedWindow

STATS = GenerationStats("stop", 5, 0, 9, 100.0, 30.0, 0.1, 1.0, 14)


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path) -> Iterator[ScriptedWindow]:
    """A loaded model in the middle of a reply."""
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    made.launch()
    made.session.send("Tell me a story.")
    made.reply = made.engine.newest  # type: ignore[attr-defined]
    made.engine.say(TokenEvent(0, "Once ", "", 1, 0.0))
    made.wait(lambda: made.session.state is SessionState.GENERATING)
    yield made
    made.close()


def report(driver: ScriptedWindow, how: str = "restored", reason: str = "") -> LoadReport:
    load = driver.engine.loads[-1]
    return LoadReport(
        load.path,
        load.placement,
        load.context,
        2.0,
        load.context.n_ctx,
        4,
        True,
        driver.buffers(driver.plan),
        "model",
        carried=CarriedChat(how, 12, reason),
    )


def move(driver: ScriptedWindow, stop: int) -> None:
    driver.window.placement.slider.setValue(stop)
    button = driver.window.findChild(QPushButton, "launchButton")
    assert "chat goes on" in button.text()
    button.click()
    assert driver.session.state is SessionState.MOVING
    assert driver.engine.loads[-1].keeps_chat
    assert button.text() == "Cancel"


def token(driver: ScriptedWindow, n: int, text: str) -> None:
    driver.engine.say(TokenEvent(0, text, "", n, 1e9), request=driver.reply)  # type: ignore[attr-defined]


def message(driver: ScriptedWindow) -> str:
    return driver.window.status.message.text()


def test_the_reply_goes_on_and_the_wait_is_said(driver: ScriptedWindow) -> None:
    move(driver, 2)
    driver.engine.say(Loaded(0, report(driver)))
    driver.wait(lambda: driver.session.state is SessionState.GENERATING)
    token(driver, 2, "upon a time")
    driver.wait(lambda: "after the change" in message(driver))
    driver.wait(lambda: "Once upon a time" in driver.window.chat.view.toPlainText())
    driver.engine.say(Finished(0, STATS), request=driver.reply)  # type: ignore[attr-defined]
    driver.wait(lambda: driver.session.state is SessionState.READY)


def test_a_chat_that_is_read_again_says_why(driver: ScriptedWindow) -> None:
    move(driver, 2)
    driver.engine.say(Loaded(0, report(driver, "read_again", "The KV type changed.")))
    token(driver, 2, "upon")
    driver.wait(lambda: "The KV type changed." in message(driver))


def test_what_cannot_be_loaded_brings_the_old_place_back(driver: ScriptedWindow) -> None:
    before = report(driver)
    move(driver, 3)
    driver.engine.say(
        LoadFailed(0, LauncherError("It does not fit.", "Close others."), restored=before)
    )
    driver.wait(lambda: driver.session.state is SessionState.GENERATING)
    assert "It does not fit." in message(driver)
    assert "back where it was" in message(driver)
    token(driver, 2, "upon")
    driver.wait(lambda: "Once upon" in driver.window.chat.view.toPlainText())


def test_cancel_stops_the_move_and_not_the_reply(driver: ScriptedWindow) -> None:
    before = report(driver)
    move(driver, 1)
    driver.window.findChild(QPushButton, "launchButton").click()
    assert driver.engine.stopped == [driver.engine.newest]
    driver.engine.say(LoadCancelled(0, before))
    driver.wait(lambda: driver.session.state is SessionState.GENERATING)
    assert "cancelled" in message(driver)


def test_a_reply_that_was_faster_ends_first(driver: ScriptedWindow) -> None:
    move(driver, 2)
    driver.engine.say(Finished(0, STATS), request=driver.reply)  # type: ignore[attr-defined]
    driver.wait(lambda: driver.session.state is SessionState.LOADING)
    driver.engine.say(Loaded(0, report(driver)))
    driver.wait(lambda: driver.session.state is SessionState.READY)


def test_stop_in_mid_move_rests_once_both_have_ended(driver: ScriptedWindow) -> None:
    """The engine ends the reply first where it had not come to the move yet."""
    before = report(driver)
    move(driver, 2)
    n_move = driver.engine.newest
    driver.window.findChild(QPushButton, "stopButton").click()
    driver.engine.say(Finished(0, STATS), request=driver.reply)  # type: ignore[attr-defined]
    driver.wait(lambda: not driver.session.chat.conversation.streaming)
    assert driver.session.state is SessionState.STOPPING
    driver.engine.say(LoadCancelled(0, before), request=n_move)
    driver.wait(lambda: driver.session.state is SessionState.READY)
    assert "cancelled" in message(driver)


def test_live_leaves_what_does_not_fit(driver: ScriptedWindow) -> None:
    driver.window.findChild(QCheckBox, "liveSwitch").setChecked(True)
    driver.window.memory.leave_free_changed.emit("CUDA0", 13 << 30)
    driver.window.placement.slider.setValue(1)
    n_loads = len(driver.engine.loads)
    driver.wait(lambda: "does not fit" in message(driver))
    assert len(driver.engine.loads) == n_loads


def test_a_move_before_the_first_token_goes_on_reading(qtbot: QtBot, tmp_path: Path) -> None:
    made = ScriptedWindow(qtbot, tmp_path, write_tiny_model(tmp_path / "tiny.gguf", "moe"))
    try:
        made.launch()
        made.session.send("Tell me a story.")
        reply = made.engine.newest
        made.engine.say(PromptProgress(0, 10, 100, 0, 1.0))
        made.window.placement.slider.setValue(2)
        made.session.launch()
        assert made.session.state is SessionState.MOVING
        made.engine.say(Loaded(0, report(made)))
        made.engine.say(PromptProgress(0, 10, 100, 0, 1.0), request=reply)
        made.wait(lambda: made.session.state is SessionState.PREFILL)
        made.wait(lambda: "The prompt is read on" in message(made))
        made.engine.say(TokenEvent(0, "Once ", "", 1, 1e9), request=reply)
        made.wait(lambda: made.session.state is SessionState.GENERATING)
        assert "read on" in message(made)
        assert [mark.text for mark in made.window.speed.history.marks(-1e9)] == ["0 › 2"]
    finally:
        made.close()


def test_what_is_read_again_is_shaded_and_counted_once(driver: ScriptedWindow) -> None:
    shades = len(driver.window.speed.history.shades(-1e9))
    driver.engine.say(TokenEvent(0, "there ", "", 2, 1.0), request=driver.reply)  # type: ignore[attr-defined]
    move(driver, 2)
    driver.engine.say(Loaded(0, report(driver, "read_again", "The KV type changed.")))
    driver.wait(lambda: "read again now" in message(driver))
    for done in (0, 7):
        driver.engine.say(PromptProgress(0, done, 7, 0, 1.0), request=driver.reply)  # type: ignore[attr-defined]
    driver.wait(lambda: len(driver.window.speed.history.shades(-1e9)) == shades + 1)
    token(driver, 3, "was ")
    driver.wait(lambda: "went on" in message(driver))
    assert driver.session.state is SessionState.GENERATING
