"""The chat by keyboard, its text in other sizes, and files dropped on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit
from pytestqt.qtbot import QtBot

from moelauncher.core.session_state import SessionState
from moelauncher.gui import theme
from tests.helpers.window_driver import WindowDriver, sample_basedir

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def driver(qtbot: QtBot, tmp_path: Path, session_cache: Path) -> Iterator[WindowDriver]:
    base = sample_basedir(tmp_path / "base", session_cache)
    made = WindowDriver(qtbot, ["--demo", "--basedir", str(base)])
    made.window.activateWindow()
    try:
        yield made
    finally:
        made.close()
        theme.theme().set_chat_zoom(100)


def drop(driver: WindowDriver, *paths: Path) -> None:
    chat = driver.window.chat
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    point = chat.mapTo(driver.window, chat.rect().center())
    event = QDropEvent(
        QPointF(point),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    driver.window.dropEvent(event)


def test_a_talk_by_keyboard_alone(driver: WindowDriver) -> None:
    driver.launch()
    window, field = driver.window, driver.widget(QPlainTextEdit, "chatInput")
    talk = driver.program.session.chat
    field.setFocus()
    QTest.keyClicks(field, "Name one fish.")
    QTest.keyClick(field, Qt.Key.Key_Return)
    driver.wait_for_state(SessionState.READY)
    QTest.keyClick(window, Qt.Key.Key_R, CTRL)
    driver.wait_for_state(SessionState.READY)
    driver.wait(lambda: talk.conversation.shown()[-1].n_versions == 2)
    QTest.keyClick(window, Qt.Key.Key_Up, CTRL)
    assert field.toPlainText() == "Name one fish."
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.toPlainText() == ""
    QTest.keyClick(window, Qt.Key.Key_F, CTRL)
    assert window.chat.find_bar.isVisible()
    QTest.keyClick(window.chat.find_bar.field, Qt.Key.Key_Escape)
    QTest.keyClick(window, Qt.Key.Key_N, CTRL)
    assert not talk.conversation.nodes


def test_the_text_grows_and_shrinks(driver: WindowDriver) -> None:
    usual = theme.chat_font().pixelSize()
    for _ in range(20):
        QTest.keyClick(driver.window, Qt.Key.Key_Plus, CTRL)
    assert theme.chat_font().pixelSize() == round(usual * 1.8)
    assert driver.window.chat.composer.field.font().pixelSize() == round(usual * 1.8)
    QTest.keyClick(driver.window, Qt.Key.Key_0, CTRL)
    assert theme.chat_font().pixelSize() == usual


def test_f6_goes_around_the_panes(driver: WindowDriver) -> None:
    seen = set()
    driver.wait(lambda: driver.program.session.planner.facts is not None)
    for _ in range(8):
        QTest.keyClick(driver.window, Qt.Key.Key_F6)
        focused = QApplication.focusWidget()
        assert focused is not None
        seen.add(focused.objectName() or focused.parentWidget().objectName())
    assert {"modelList", "chatView", "chatInput", "contextCombo", "chatSearch"} <= seen


def test_text_files_are_quoted_and_binary_ones_refused(
    driver: WindowDriver, tmp_path: Path
) -> None:
    driver.launch()
    text, binary = tmp_path / "notes.txt", tmp_path / "photo.png"
    text.write_text("whales are no fish", encoding="utf-8")
    binary.write_bytes(b"\x89PNG\x00\x00")
    field = driver.widget(QPlainTextEdit, "chatInput")
    field.setPlainText("See this:")
    drop(driver, text)
    driver.wait(lambda: "whales" in field.toPlainText())
    assert field.toPlainText() == "See this:\n\nnotes.txt:\n\n```txt\nwhales are no fish\n```\n"
    driver.wait(lambda: "notes.txt was quoted: " in driver.status_text())
    drop(driver, binary)
    driver.wait(lambda: "photo.png is no text file" in driver.status_text())


def test_five_megabytes_are_pasted_and_refused_in_words(driver: WindowDriver) -> None:
    driver.launch()
    field = driver.widget(QPlainTextEdit, "chatInput")
    QApplication.clipboard().setText("whale \n" * 750_000)
    field.paste()
    assert len(field.toPlainText()) > 5_000_000
    driver.press("sendButton")
    driver.wait_for_state(SessionState.READY)
    assert "the context holds" in driver.chat_text()


def test_undo_waits_for_the_reply_that_runs(driver: WindowDriver) -> None:
    driver.launch()
    driver.ask("Name a colour.")
    driver.wait_for_state(SessionState.READY)
    chat = driver.program.session.chat
    gone = chat.conversation.path[1].key
    driver.program.session.turns.act("delete", gone)
    driver.ask("Count from one to a hundred.")
    assert chat.conversation.streaming
    driver.window.chat.undo.undo()
    assert gone not in chat.conversation.nodes
    driver.press("stopButton")
    driver.wait_for_state(SessionState.READY)
    driver.window.chat.undo.undo()
    assert gone in chat.conversation.nodes
