"""Find in the chat, whatever is laid out so far."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.gui.chats.chat_pane import ChatPane
from moelauncher.gui.chats.message_view import marks_of
from moelauncher.gui.theme import theme

STATS = GenerationStats("stop", 12, 0, 3, 100.0, 20.0, 0.1, 0.4, 15)


@pytest.fixture
def pane(qtbot):
    widget = ChatPane()
    qtbot.addWidget(widget)
    widget.resize(760, 600)
    with qtbot.waitExposed(widget):
        widget.show()
    talk = Conversation()
    for n in range(30):
        talk = talk.ask(f"Question {n} of the Sea?").begin_reply("m")
        talk = talk.append(f"An **answer** on sea{n}.\n\n" + "words " * 200).finish(STATS)
    widget.show_conversation(talk)
    widget.find_bar.open()
    return widget


def type_text(pane, qtbot, text):
    pane.find_bar.field.setText(text)
    qtbot.waitUntil(lambda: not pane.find_bar._typed.isActive())


def test_every_place_is_counted_and_the_newest_shown(pane, qtbot):
    type_text(pane, qtbot, "sea")
    assert pane.find_bar.count.text() == "60 of 60"
    y = pane.view._find.y()
    bar = pane.view.verticalScrollBar()
    assert bar.value() <= y <= bar.value() + pane.view.viewport().height()


def test_going_through_the_places_scrolls_to_them(pane, qtbot):
    type_text(pane, qtbot, "QUESTION 3 of")
    assert pane.find_bar.count.text() == "1 of 1"
    bar = pane.view.verticalScrollBar()
    assert bar.value() < bar.maximum() // 2
    type_text(pane, qtbot, "question")
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert pane.find_bar.count.text() == "29 of 30"
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return)
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return)
    assert pane.find_bar.count.text() == "1 of 30"
    assert bar.value() < 100


def test_words_across_markdown_are_found(pane, qtbot):
    type_text(pane, qtbot, "an answer on sea7.")
    assert pane.find_bar.count.text() == "1 of 1"


def test_folded_thinking_is_found_and_unfolded(pane, qtbot):
    talk = Conversation().ask("Which animal?").begin_reply("m")
    talk = talk.append("A zebra.", "A lion? No, a zebra. " * 3).finish(STATS)
    pane.show_conversation(talk)
    type_text(pane, qtbot, "zebra")
    assert pane.find_bar.count.text() == "4 of 4"
    assert "lion" not in pane.view.toPlainText(), "what is shown is in the answer"
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert pane.find_bar.count.text() == "3 of 4"
    assert "lion" in pane.view.toPlainText()
    thinking, answer = (p for p in pane.view._column.messages[1].parts if p.hits)
    assert [present for _, _, present in thinking.hits] == [False, False, True]
    inks = {m.format.foreground().color().name() for m in marks_of(thinking, None, theme().colors)}
    assert inks == {theme().colors.text.name()}, "muted text cannot be read on a mark"
    assert [present for _, _, present in answer.hits] == [False]


def test_the_folded_part_of_a_long_message_is_found_and_unfolded(pane, qtbot):
    lines = [f"line {n}" for n in range(200)]
    lines[150] = "here is the needle"
    talk = Conversation().ask("\n".join(lines)).begin_reply("m").append("Fine.").finish(STATS)
    pane.show_conversation(talk)
    assert "needle" not in pane.view.messages[0].parts[0].document.toPlainText()
    type_text(pane, qtbot, "needle")
    assert pane.find_bar.count.text() == "1 of 1"
    y, bar = pane.view._find.y(), pane.view.verticalScrollBar()
    assert bar.value() <= y <= bar.value() + pane.view.viewport().height()
    assert y > pane.view.viewport().height(), "it stands far below the first lines"


def test_a_search_goes_on_in_what_is_shown_next(pane, qtbot):
    type_text(pane, qtbot, "answer on sea29.")
    talk = Conversation().ask("Where is sea29?").begin_reply("m")
    pane.show_conversation(talk)
    assert pane.find_bar.count.text() == "not found"
    talk = talk.append("An answer on sea29.").finish(STATS)
    pane.show_turns(talk.shown())
    assert pane.find_bar.count.text() == "1 of 1"
    assert [p for m in pane.view._column.messages for p in m.parts if p.hits]


def test_nothing_found_and_the_end_of_the_search(pane, qtbot):
    type_text(pane, qtbot, "whale")
    assert pane.find_bar.count.text() == "not found"
    type_text(pane, qtbot, "sea")
    marked = [p for m in pane.view._column.messages for p in m.parts if p.hits]
    assert marked
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Escape)
    assert pane.find_bar.isHidden()
    assert not any(p.hits for m in pane.view._column.messages for p in m.parts)


def test_another_chat_ends_the_marks(pane, qtbot):
    type_text(pane, qtbot, "sea")
    pane.clear()
    assert pane.view.hits == (0, 0)


def test_the_marks_outlive_another_look(pane, qtbot):
    type_text(pane, qtbot, "question")
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return)
    before = pane.find_bar.count.text()
    theme().changed.emit()
    marked = [p for m in pane.view._column.messages for p in m.parts if p.hits]
    assert len(marked) == 30
    assert [present for p in marked for _, _, present in p.hits].count(True) == 1
    assert pane.view.hits[0] == 30
    qtbot.keyClick(pane.find_bar.field, Qt.Key.Key_Return)
    assert before == "1 of 30"
    assert pane.find_bar.count.text() == "2 of 30"
