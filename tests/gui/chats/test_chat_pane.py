"""The chat pane passes values to its parts and wishes to whoever listens."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QWidget

from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.core.session_state import Selection, SessionState, controls
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.gui.chats.chat_pane import ChatPane

STATS = GenerationStats("stop", 12, 0, 3, 100.0, 20.0, 0.1, 0.4, 15)


@pytest.fixture
def pane(qtbot):
    widget = ChatPane()
    qtbot.addWidget(widget)
    widget.resize(760, 600)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def test_the_widgets_that_others_look_for_are_there(pane):
    assert pane.findChild(QWidget, "chatView").toPlainText().startswith("Pick a model")
    assert pane.findChild(QPlainTextEdit, "chatInput") is not None
    assert pane.findChild(QPushButton, "sendButton") is not None
    assert pane.findChild(QPushButton, "stopButton") is not None


def test_a_turn(pane):
    pane.add_user_message("2 + 2?")
    pane.begin_reply("m")
    pane.set_prompt_progress(PromptReading(4, 12))
    pane.append("", "easy")
    pane.append("**4**", "")
    pane.finish_reply(STATS, "all on the GPU")
    text = pane.findChild(QWidget, "chatView").toPlainText()
    assert text.splitlines()[:2] == ["2 + 2?", ""]
    assert "\n4\n" in text
    assert "20.0 tok/s · 3 tokens · prompt 12 at 100 tok/s · all on the GPU" in text


def test_a_failed_turn(pane):
    pane.add_user_message("2 + 2?")
    pane.begin_reply("m")
    pane.fail_reply(LauncherError("It broke.", "Try again."))
    text = pane.view.toPlainText()
    assert "It broke." in text
    assert "Try again." in text


@pytest.mark.parametrize(
    ("state", "send", "stop"),
    [
        (SessionState.EMPTY, False, False),
        (SessionState.READY, True, False),
        (SessionState.PREFILL, False, True),
        (SessionState.GENERATING, False, True),
        (SessionState.STOPPING, False, False),
    ],
)
def test_controls(pane, state, send, stop):
    pane.composer.field.setPlainText("text")
    pane.set_controls(controls(state, Selection.LOADABLE))
    assert pane.composer.send.isEnabled() == send
    assert pane.composer.stop.isEnabled() == stop
    assert pane.composer.stop.isVisible() == stop


def test_sending(pane, qtbot):
    pane.set_controls(controls(SessionState.READY, Selection.LOADABLE))
    qtbot.keyClicks(pane.composer.field, "hello")
    with qtbot.waitSignal(pane.send_requested) as sent:
        qtbot.mouseClick(pane.composer.send, Qt.MouseButton.LeftButton)
    assert sent.args == ["hello"]


def test_new_chat_is_offered_once_there_is_one(pane, qtbot):
    button = pane.findChild(QPushButton, "newChatButton")
    assert not button.isEnabled()
    pane.add_user_message("x")
    assert button.isEnabled()
    with qtbot.waitSignal(pane.new_chat_requested):
        button.click()
    pane.clear()
    assert not button.isEnabled()


def test_a_notice_is_plain_text_and_goes_away(pane):
    notice = pane.findChild(QLabel, "chatNotice")
    assert not notice.isVisible()
    pane.set_notice("no chat template: <b>ChatML</b> is used")
    assert notice.isVisible()
    assert notice.textFormat() == Qt.TextFormat.PlainText
    pane.set_notice("")
    assert not notice.isVisible()


def test_letters_typed_over_the_messages_go_into_the_field(pane, qtbot):
    pane.add_user_message("one")
    pane.composer.field.setPlainText("so ")
    pane.composer.field.moveCursor(QTextCursor.MoveOperation.End)
    pane.view.setFocus()
    qtbot.waitUntil(pane.view.hasFocus)
    for key in (Qt.Key.Key_Space, Qt.Key.Key_PageUp, Qt.Key.Key_Tab):
        qtbot.keyClick(pane.view, key)
        pane.view.setFocus()
    qtbot.keyClick(pane.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert pane.composer.text == "so " and pane.view.hasFocus()
    qtbot.keyClicks(pane.view, "H")
    qtbot.keyClicks(pane.composer.field, "i")
    assert pane.composer.text == "so Hi" and pane.composer.field.hasFocus()


def test_escape_over_the_messages_ends_the_reply(pane, qtbot):
    pane.add_user_message("one")
    pane.view.setFocus()
    with qtbot.assertNotEmitted(pane.stop_requested):
        qtbot.keyClick(pane.view, Qt.Key.Key_Escape)
    pane.composer.set_enabled_actions(False, True)
    with qtbot.waitSignal(pane.stop_requested):
        qtbot.keyClick(pane.view, Qt.Key.Key_Escape)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (SessionState.SELECTED, "Launch a model first: nobody is there to answer."),
        (SessionState.LOADING, "The model cannot answer yet; the message stays until it can."),
        (SessionState.GENERATING, ""),
        (SessionState.READY, ""),
    ],
)
def test_who_cannot_send_is_told_why(pane, qtbot, state, told):
    pane.set_controls(controls(state, Selection.LOADABLE))
    pane.composer.field.setPlainText("text")
    heard = []
    pane.held_back.connect(heard.append)
    qtbot.keyClick(pane.composer.field, Qt.Key.Key_Return)
    assert heard == ([told] if told else [])
    assert pane.composer.send.toolTip() == (told or "Send (Enter). Shift+Enter starts a new line.")
    assert (pane.composer.text == "") == (state is SessionState.READY)
