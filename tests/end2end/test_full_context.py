"""A context that gets full: said in time, and never cut in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit
from pytestqt.qtbot import QtBot

from moelauncher.core.session_state import SessionState
from tests.helpers.window_driver import WindowDriver, sample_basedir


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, session_cache: Path):  # type: ignore[no-untyped-def]
    base = sample_basedir(tmp_path / "base", session_cache)
    settings = base / "config" / "settings.toml"
    text = settings.read_text(encoding="utf-8").replace(
        "temperature = 0.0\n", "temperature = 0.0\nmax_tokens = 12\n[context]\nsize = 512\n"
    )
    settings.write_text(text, encoding="utf-8")
    made = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    try:
        made.launch()
        yield made
    finally:
        made.close()


def test_the_way_out_is_offered_before_the_context_is_full(driver: WindowDriver) -> None:
    chat, field = driver.window.chat, driver.widget(QPlainTextEdit, "chatInput")
    for n in range(3):
        driver.ask(f"Question {n}: " + "tell me more about the sea and its fish. " * 9)
        driver.wait_for_state(SessionState.READY)
    assert chat.offer.isHidden()
    field.setPlainText("And what about whales, and ships, and the moon? " * 9)
    driver.wait(lambda: chat.offer.isVisible())
    assert "of 512 tokens" in chat.offer.text.text() or "holds 512" in chat.offer.text.text()
    QTest.mouseClick(chat.offer.leave_out, Qt.MouseButton.LeftButton)
    driver.wait(lambda: bool(driver.program.session.chat.conversation.left_out))
    driver.wait(lambda: chat.offer.isHidden())
    messages = driver.program.session.chat.conversation.messages()
    assert not any("Question 0" in message.content for message in messages)
    assert "Question 0" in driver.chat_text(), "it stays to be read"
    chat.undo.undo()
    assert not driver.program.session.chat.conversation.left_out
    driver.wait(lambda: chat.offer.isVisible())
    QTest.mouseClick(chat.offer.enlarge, Qt.MouseButton.LeftButton)
    assert driver.window.placement.context.size_tokens == 4096
    driver.launch()
    driver.wait(lambda: chat.offer.isHidden())
    driver.press("sendButton")
    driver.wait_for_state(SessionState.READY)
    reply = driver.program.session.chat.conversation.last_reply
    assert reply is not None and reply.text


def test_a_message_larger_than_the_context_is_refused_in_words(driver: WindowDriver) -> None:
    driver.ask("whale " * 3000)
    driver.wait_for_state(SessionState.READY)
    assert "the context holds 512" in driver.chat_text()
    driver.ask("Name one fish.")
    driver.wait_for_state(SessionState.READY)
