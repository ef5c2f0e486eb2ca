"""The column of messages: streaming, following, selecting, folding, and staying light."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage, QTextDocument
from PySide6.QtWidgets import QMenu

from moelauncher.core.chats.conversation import Conversation
from moelauncher.core.errors import LauncherError
from moelauncher.core.speed.prompt_pace import PromptReading
from moelauncher.gui.chats.chat_view import ChatView
from moelauncher.gui.chats.code_block import card_rect
from moelauncher.gui.chats.markdown import ReplyDocument
from tests.helpers.chat_views import (
    CODE_REPLY,
    STATS,
    THOUGHT,
    Clock,
    click,
    drag,
    long_chat,
    reply,
    spots,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def view(qtbot, clock):
    widget = ChatView(clock=clock)
    qtbot.addWidget(widget)
    widget.resize(776, 500)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


# Text


def test_the_whole_chat_as_text(view):
    view.add_user_message("Why?")
    reply(view, "Because **so**.")
    text = view.toPlainText()
    assert "Why?" in text
    assert "Because so." in text
    assert "38.4 tok/s · 212 tokens · prompt 412 at 310 tok/s · 24 layers on the CPU" in text


def test_an_empty_chat_says_what_to_do(view):
    view.set_empty_hint("Pick a model.")
    assert view.toPlainText() == "Pick a model."
    view.add_user_message("x")
    assert "Pick a model." not in view.toPlainText()


@pytest.mark.parametrize(
    "text",
    ["```python\nx = 1\n```", "\n\n```\nx\n```\nyes", "1. ```\n   x\n   ```", "> ```\n> x\n> ```"],
)
def test_a_card_that_begins_a_reply_stays_within_it(view, text):
    view.add_user_message("Write code.")
    reply(view, text)
    message = view._column.messages[-1]
    (part,) = (part for part in message.parts if part.kind == "body")
    card = card_rect(part.document, part.codes[0], part.document.textWidth())
    card.translate(part.origin)
    assert card.top() >= 0
    assert card.bottom() <= message.height
    (copy,) = (spot for spot in message.hot_spots if spot.kind == "copy")
    assert card.contains(copy.rect)


def test_streamed_text_is_shown_as_it_comes(view):
    view.begin_reply("m")
    shown = ""
    for piece in ("One", " **two", "**\n", "\n", "thrée 🙂", "👨‍👩‍👧"):
        view.append(piece, "")
        shown += piece
        assert shown in view.toPlainText()
    view.finish_reply(STATS, "")
    assert "One two" in view.toPlainText()
    assert "thrée 🙂👨‍👩‍👧" in view.toPlainText()


@pytest.mark.parametrize(
    "text",
    [
        "🙂 👩‍👩‍👧‍👦 🏳️‍🌈 🇯🇵 👍🏽 1️⃣",
        "東京は晴れです。𠮷野家 안녕하세요",
        "e\u0301 a\u0308\u0332 Z\u0351\u036b ก็ क्षि",
        "שלום עולם، مرحبا بالعالم \u202bא\u202c ﷺ",
    ],
)
def test_text_of_every_script_streams_in_character_by_character(view, qapp, text):
    view.add_user_message(text)
    view.begin_reply("model")
    for character in text:
        view.append(character, character)
        qapp.processEvents()
    assert view._column.last.plain_body == text
    assert view._column.last.source_text == text
    view.finish_reply(STATS, "")
    assert view._column.last.plain_body == text
    assert view._column.messages[0].plain_body == text
    assert "\ufffd" not in view.toPlainText()


def test_markdown_is_read_once_at_the_end(view, monkeypatch):
    reads = []
    read = QTextDocument.setMarkdown

    def counted(document, *arguments):
        reads.append(document)
        return read(document, *arguments)

    monkeypatch.setattr(ReplyDocument, "setMarkdown", counted, raising=False)
    view.begin_reply("m")
    for _ in range(50):
        view.append("word **b** ", "")
    assert reads == []
    view.finish_reply(STATS, "")
    assert len(reads) == 1


def test_html_from_user_and_model_is_text(view):
    view.add_user_message("<b>u</b>")
    reply(view, "<i>m</i>", label="<u>l</u>")
    for text in ("<b>u</b>", "<i>m</i>"):
        assert text in view.toPlainText()


def test_the_label_is_shown_when_the_model_changes(view):
    reply(view, "a", "first")
    reply(view, "b", "first")
    assert "first" not in view.toPlainText()
    reply(view, "c", "second")
    assert "second" in view.toPlainText()


def test_late_text_of_a_closed_reply_is_dropped(view):
    reply(view, "done")
    view.append("late", "late")
    view.set_prompt_progress(PromptReading(1, 2))
    view.finish_reply(STATS, "")
    assert "late" not in view.toPlainText()
    assert view.toPlainText().count("212 tokens") == 1


def test_clear_forgets_everything(view):
    long_chat(view, 5)
    view.clear()
    assert view.toPlainText() == ""
    assert view.verticalScrollBar().maximum() == 0
    view.add_user_message("again")
    assert view.toPlainText() == "again"


# Before and after the text


def test_prompt_progress_goes_when_text_comes(view):
    view.begin_reply("m")
    assert "Waiting for the first token" in view.toPlainText()
    view.set_prompt_progress(PromptReading(100, 400, 50.0, 6.0))
    assert "Reading the prompt: 100 of 400 tokens · 50.0 tok/s · 6 s left" in view.toPlainText()
    view.append("Hi", "")
    assert "Reading" not in view.toPlainText()


def test_thinking_is_folded_with_its_time(view, clock, qtbot):
    view.begin_reply("m")
    view.append("", "Let me ")
    clock.now += 3.0
    view.append("", "see.")
    assert "thinking for 3.0 s" in view.toPlainText()
    clock.now += 1.2
    view.append("\n\nAnswer", "")
    clock.now += 50
    view.append(" it is.", "")
    view.finish_reply(STATS, "")
    text = view.toPlainText()
    assert "thought for 4.2 s" in text
    assert THOUGHT not in text
    assert "Answer it is." in text
    click(qtbot, view, spots(view, "thought")[0][0])
    assert THOUGHT in view.toPlainText()
    click(qtbot, view, spots(view, "thought")[0][0])
    assert THOUGHT not in view.toPlainText()


def test_open_thinking_grows_while_it_streams(view, qtbot):
    view.begin_reply("m")
    view.append("", "one ")
    click(qtbot, view, spots(view, "thought")[0][0])
    view.append("", "two ")
    view.append("", "three")
    assert "one two three" in view.toPlainText()


def test_an_error_has_sentence_hint_and_folded_details(view, qtbot):
    view.begin_reply("m")
    view.append("Half an ans", "")
    view.fail_reply(LauncherError("The GPU ran out of memory.", "Move two layers.", "vk: -2\nx"))
    text = view.toPlainText()
    for part in ("Half an ans", "The GPU ran out of memory.", "Move two layers."):
        assert part in text
    assert "vk: -2" not in text
    click(qtbot, view, spots(view, "details")[0][0])
    assert "vk: -2" in view.toPlainText()


def test_an_error_without_a_reply_opens_one(view):
    view.fail_reply(LauncherError("No model is loaded."))
    assert "No model is loaded." in view.toPlainText()
    assert spots(view, "details") == []


def test_a_stopped_reply_without_text_says_so(view):
    view.begin_reply("m")
    view.finish_reply(replace(STATS, finish_reason="cancelled", completion_tokens=0), "")
    assert "stopped" in view.toPlainText()


def test_a_long_paste_is_folded(view, qtbot):
    view.add_user_message("\n".join(f"line {n}" for n in range(200)))
    height = view._column.messages[0].height
    assert height < 400
    view.verticalScrollBar().setValue(0)
    point, spot = spots(view, "more")[0]
    assert "200" in spot.label
    click(qtbot, view, point)
    assert view._column.messages[0].height > 2000
    assert "line 199" in view.toPlainText()


def test_a_long_paste_without_line_breaks_is_folded_by_its_characters(view):
    view.add_user_message("word " * 2000)
    assert view._column.messages[0].height < 500
    view.verticalScrollBar().setValue(0)
    assert spots(view, "more")[0][1].label == "Show all 10,000 characters"


# Copy and selection


def test_copy_gives_the_code_alone(view, qtbot):
    reply(view, CODE_REPLY)
    click(qtbot, view, spots(view, "copy")[0][0])
    assert QGuiApplication.clipboard().text() == "print('hi')"
    assert [spot.label for _, spot in spots(view, "copy")] == ["Copied"]
    view._copied_timer.stop()
    view._forget_copied()
    assert [spot.label for _, spot in spots(view, "copy")] == ["Copy"]


def test_select_all_and_copy_takes_every_message(view, qtbot):
    view.add_user_message("Why?")
    reply(view, CODE_REPLY, reasoning="hidden thought")
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    text = QGuiApplication.clipboard().text()
    assert text == "Why?\n\nTry this:\nprint('hi')\nDone."


def test_a_drag_selects_across_messages(view, qtbot):
    view.add_user_message("first question")
    reply(view, "the answer")
    left, width = view._left, view._column.width
    start = QPoint(round(left + width - 40), round(view._column.tops[0] + 18))
    end = QPoint(round(left + 30), round(view._column.tops[1] + 8))
    drag(qtbot, view, start, end)
    lines = view.selected_text().split("\n\n")
    assert len(lines) == 2
    assert "first question".endswith(lines[0].strip() or "?")
    assert "the answer".startswith(lines[1])
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert view.selected_text() == ""


def test_a_double_click_selects_a_word(view, qtbot):
    reply(view, "alpha beta gamma")
    left = view._left
    point = QPoint(round(left + 8), round(view._column.tops[0] + 8))
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert view.selected_text() == "alpha"


def test_a_selection_stays_while_a_reply_streams(view, qtbot):
    view.add_user_message("question")
    view.begin_reply("m")
    view.append("some text", "")
    view.select_all()
    before = view.selected_text()
    view.append(" and more", "")
    assert view.selected_text() == before


# Keyboard


def test_tab_reaches_folds_and_copy_and_enter_activates(view, qtbot):
    reply(view, CODE_REPLY, reasoning="why")
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Tab)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    assert "why" in view.toPlainText()
    qtbot.keyClick(view, Qt.Key.Key_Tab)
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert QGuiApplication.clipboard().text() == "print('hi')"
    view._copied_timer.stop()


def test_what_finds_no_room_in_a_narrow_chat_is_in_the_menu(view, qtbot):
    chat = Conversation().ask("Why?").begin_reply("m").append("So.").finish(STATS, "")
    view.show_turns(chat.shown())
    wide = [spot.label for spot in view._column.last.hot_spots if not spot.rect.isEmpty()]
    view.resize(200, 400)
    narrow = [spot.label for spot in view._column.last.hot_spots if not spot.rect.isEmpty()]
    assert 0 < len(narrow) < len(wide)
    right = view._column.width
    assert all(spot.rect.right() <= right for spot in view._column.last.hot_spots)
    menu = QMenu()
    qtbot.addWidget(menu)
    view._add_turn_actions(view._column.last, menu)
    texts = [action.text() for action in menu.actions()]
    assert set(wide) - {"Copy"} <= set(texts)


def test_home_and_end(view, qtbot):
    long_chat(view, 10)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_a_reader_hears_the_finished_reply(view):
    assert view.accessibleName() == "Chat"
    reply(view, "the whole answer")
    assert view.accessibleDescription() == "the whole answer"


def test_what_streaming_repaints_is_all_that_changed(view, qapp):
    view.add_user_message("q")
    view.begin_reply("m")
    pieces = ["word ", "averyveryverylongword", "\n", "\n\n- x", " 日本語", " 🙂", " zz" * 60]
    for piece in pieces * 6:
        view.append(piece, "")
        qapp.processEvents()
        on_screen = qapp.primaryScreen().grabWindow(view.winId()).toImage()
        painted_whole = view.grab().toImage()
        rgb = QImage.Format.Format_RGB32
        assert on_screen.convertToFormat(rgb) == painted_whole.convertToFormat(rgb), piece


def test_every_state_paints(view, clock):
    view.set_empty_hint("hint")
    view.grab()
    view.add_user_message("q")
    view.begin_reply("m")
    view.grab()
    view.set_prompt_progress(PromptReading(1, 4, 10.0, 3.0))
    view.grab()
    view.append("", "think")
    view.grab()
    view.append("text", "")
    view.grab()
    view.append("\n\n> quote\n\n" + CODE_REPLY + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "")
    view.finish_reply(STATS, "")
    view.select_all()
    image = view.grab().toImage()
    colors = {image.pixelColor(x, y).name() for x in range(0, 776, 2) for y in range(0, 500, 2)}
    assert len(colors) > 10
