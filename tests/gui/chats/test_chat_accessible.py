"""The chat as a screen reader finds it: a list of messages, each with its text."""

from __future__ import annotations

import gc

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect
from PySide6.QtGui import QAccessible
from shiboken6 import isValid

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.gui.chats.chat_view import ChatView

STATS = GenerationStats("stop", 412, 0, 500, 310.0, 38.4, 0.2, 6.0, 912)
ANSWER = "An *answer* with `code`, 東京 🙂 and\n\n- a list"


def talk(n_turns: int = 1) -> Conversation:
    chat = Conversation()
    for number in range(n_turns):
        chat = chat.ask(f"Question {number}?").begin_reply("model").append(ANSWER)
        chat = chat.finish(STATS, "")
    return chat


@pytest.fixture
def view(qtbot):
    made = ChatView()
    qtbot.addWidget(made)
    made.resize(776, 500)
    made.show()
    made.show_conversation(talk(6))
    return made


def names(interface):
    rows = [interface.child(number) for number in range(interface.childCount())]
    return [row.text(QAccessible.Text.Name) for row in rows]


def test_each_message_is_a_row_with_its_words(view):
    chat = QAccessible.queryAccessibleInterface(view)
    assert chat.role() == QAccessible.Role.List
    assert chat.text(QAccessible.Text.Name) == "Chat"
    assert names(chat)[:2] == [
        "You: Question 0?",
        "Reply: An answer with code, 東京 🙂 and a list",
    ]
    reply = chat.child(1)
    assert reply.role() == QAccessible.Role.ListItem
    assert reply.state().readOnly and reply.isValid()
    assert reply.parent() is chat and chat.indexOfChild(reply) == 1
    assert chat.child(1) is reply
    assert chat.child(99) is None and chat.child(-1) is None


def test_its_text_is_read_in_pieces(view):
    text = QAccessible.queryAccessibleInterface(view).child(1).textInterface()
    whole = text.text(0, -1)
    assert whole.startswith("An answer with code, 東京 🙂 and\na list")
    assert "38.4 tok/s" in whole
    assert text.characterCount() == len(whole)
    assert text.text(3, 9) == "answer"
    text.setCursorPosition(7)
    assert (text.cursorPosition(), text.selectionCount()) == (7, 0)


def test_rows_are_where_they_are_painted(view):
    chat = QAccessible.queryAccessibleInterface(view)
    port = QRect(view.viewport().mapToGlobal(QPoint(0, 0)), view.viewport().size())
    last, first = chat.child(chat.childCount() - 1), chat.child(0)
    assert port.intersects(last.rect()) and not last.state().offscreen
    assert not port.intersects(first.rect()) and first.state().offscreen
    center = last.rect().center()
    assert chat.childAt(center.x(), center.y()) is last
    assert last.textInterface().offsetAtPoint(center) == 0
    first.textInterface().scrollToSubstring(0, 4)
    assert not first.state().offscreen


def test_what_is_said_meanwhile_comes_and_what_goes_is_gone(view):
    chat = QAccessible.queryAccessibleInterface(view)
    before = chat.child(1)
    view.add_user_message("And now?")
    view.begin_reply("model")
    view.append("Now", "")
    assert names(chat)[-2:] == ["You: And now?", "Reply: Now"]
    assert chat.child(1) is before
    view.show_conversation(talk(1))
    assert chat.childCount() == 2
    assert not isValid(before)
    view.clear()
    assert chat.childCount() == 0


def test_view_and_rows_go_together(qtbot):
    made = ChatView()
    made.show_conversation(talk())
    chat = QAccessible.queryAccessibleInterface(made)
    row = chat.child(0)
    made.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not isValid(chat) and not isValid(row)
    del made, chat, row
    gc.collect()


def test_nothing_is_made_where_no_screen_reader_asks(qtbot):
    made = ChatView()
    qtbot.addWidget(made)
    made.show_conversation(talk())
    assert made.accessible is None
