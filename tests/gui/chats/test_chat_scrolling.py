"""The chat view follows, stays and lays out: never more than what is seen."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.errors import LauncherError
from moelauncher.gui import theme
from moelauncher.gui.chats.chat_view import ChatView
from moelauncher.gui.chats.markdown import ReplyDocument
from tests.helpers.chat_views import (
    STATS,
    long_chat,
    reply,
)


@pytest.fixture
def view(qtbot):
    widget = ChatView()
    qtbot.addWidget(widget)
    widget.resize(776, 500)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


# Scrolling


def test_the_view_follows_while_it_is_at_the_end(view):
    long_chat(view, 10)
    bar = view.verticalScrollBar()
    view.begin_reply("m")
    for _ in range(100):
        view.append("word " * 10 + "\n", "")
        assert bar.value() == bar.maximum()
    assert not view._chip.isVisible()


def test_who_reads_above_is_not_moved_and_sees_the_chip(view, qtbot):
    long_chat(view, 10)
    view.begin_reply("m")
    view.append("start\n", "")
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    assert not view.following
    at = bar.value()
    for _ in range(50):
        view.append("word " * 10 + "\n", "")
    view.finish_reply(STATS, "")
    assert bar.value() == at
    assert view._chip.isVisible()
    qtbot.mouseClick(view._chip, Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert view.following
    assert not view._chip.isVisible()


def test_sending_goes_to_the_end(view):
    long_chat(view, 10)
    view.verticalScrollBar().setValue(0)
    view.add_user_message("new")
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_the_text_being_read_stays_when_heights_become_exact(view, qtbot):
    long_chat(view, 40)
    bar = view.verticalScrollBar()
    view.resize(500, 500)
    bar.setValue(bar.maximum() // 2)
    index = view._column.index_at(bar.value())
    offset = bar.value() - view._column.tops[index]
    qtbot.waitUntil(lambda: not view._idle.isActive())
    assert abs((bar.value() - view._column.tops[index]) - offset) <= 1
    assert all(message.is_laid_out(view._column.width) for message in view._column.messages)


def test_a_new_width_flows_the_text_again(view, qtbot):
    reply(view, "word " * 200)
    tall = view._column.messages[0].height
    view.resize(400, 500)
    qtbot.waitUntil(lambda: view._column.messages[0].height > tall)


def test_a_new_scheme_repaints_with_its_colours(view, qapp):
    reply(view, "text")
    view.grab()
    theme.theme().changed.emit()
    assert view._column.messages[0].is_laid_out(view._column.width)
    assert "text" in view.toPlainText()


# Work done, counted


def test_streaming_lays_out_the_last_message_alone(view, qtbot, monkeypatch):
    long_chat(view, 100)
    qtbot.waitUntil(lambda: not view._idle.isActive())
    view.begin_reply("m")
    view.append("first", "")
    made = []
    make = ReplyDocument.__init__
    monkeypatch.setattr(ReplyDocument, "__init__", lambda self: (made.append(self), make(self))[1])
    arranged = []
    for message in view._column.messages[:-1]:
        monkeypatch.setattr(message, "lay_out", lambda width, m=message: arranged.append(m))
    for _ in range(50):
        view.append("word ", "")
    assert made == []
    assert arranged == []


def test_a_kept_chat_opens_by_laying_out_what_is_seen(view, monkeypatch, qtbot):
    chat = Conversation()
    for number in range(100):
        chat = chat.ask(f"question {number}").begin_reply("m").append("word " * 300)
        chat = chat.finish(STATS, "24 layers on the CPU")
    made = []
    make = ReplyDocument.__init__
    monkeypatch.setattr(ReplyDocument, "__init__", lambda self: (made.append(self), make(self))[1])
    view.show_conversation(chat)
    view.grab()
    assert 0 < len(made) < 20
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 10_000
    qtbot.waitUntil(lambda: not view._idle.isActive())
    assert bar.value() == bar.maximum()
    assert view.toPlainText().count("question") == 100


def test_stepping_between_versions_moves_no_arrow(view, qtbot):
    chat = Conversation().ask("first").begin_reply("m").append("word " * 300).finish(STATS)
    chat = chat.ask("in many words").begin_reply("m").append("long " * 900).finish(STATS)
    many = chat.path[2].key
    chat = chat.edit(many, "shortly").begin_reply("m").append("short").finish(STATS)
    few = chat.path[2].key
    view.show_conversation(chat)
    bar = view.verticalScrollBar()
    assert view.following and bar.maximum() > 0

    def arrows_y() -> int:
        spots = {spot.kind: spot for spot in view.messages[2].hot_spots}
        return round(view.message_rect(2).top() + spots["older"].rect.top())

    at = arrows_y()
    view.show_turns(chat.choose(many).shown(), held=2)
    assert abs(arrows_y() - at) <= 1
    assert not view.following, "what is looked at is the question, far above the end"
    qtbot.waitUntil(lambda: not view._idle.isActive())
    assert abs(arrows_y() - at) <= 1
    view.show_turns(chat.choose(few).shown(), held=2)
    assert abs(arrows_y() - at) <= 1
    assert view.following


def test_stepping_between_replies_at_the_end_keeps_the_end(view):
    chat = Conversation().ask("first").begin_reply("m").append("long " * 900).finish(STATS)
    long_one = chat.path[1].key
    chat = chat.regenerate(long_one, "m").append("word " * 500).finish(STATS)
    view.show_conversation(chat)
    bar = view.verticalScrollBar()
    view.show_turns(chat.choose(long_one).shown(), held=1)
    assert view.following and bar.value() == bar.maximum() > 0


def test_a_kept_chat_shows_every_kind_of_turn(view):
    chat = Conversation().ask("one").begin_reply("first").append("**a**", "thought of it")
    chat = chat.finish(STATS, "all on the GPU").ask("two").begin_reply("second").append("b")
    chat = chat.fail(LauncherError("It broke."))
    view.show_conversation(chat)
    lines = view.toPlainText().splitlines()
    assert [line for line in lines if line] == [
        "one",
        "▸ thought",
        "a",
        "38.4 tok/s · 212 tokens · prompt 412 at 310 tok/s · all on the GPU",
        "two",
        "second",
        "b",
        "It broke.",
    ]
