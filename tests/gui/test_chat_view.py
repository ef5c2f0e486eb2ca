"""The column of messages: streaming, following, selecting, folding, and staying light."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage, QTextDocument
from PySide6.QtWidgets import QMenu

from moelauncher.core.conversation import Conversation
from moelauncher.core.engine_protocol import GenerationStats
from moelauncher.core.errors import LauncherError
from moelauncher.gui import theme
from moelauncher.gui.chat_view import ChatView
from moelauncher.gui.code_block import card_rect
from moelauncher.gui.markdown import ReplyDocument
from moelauncher.gui.message_view import HotSpot

STATS = GenerationStats("stop", 412, 0, 212, 310.0, 38.4, 0.2, 6.0, 624)
CODE_REPLY = "Try **this**:\n\n```python\nprint('hi')\n```\nDone."
THOUGHT = "Let me see."


class Clock:
    """Time that passes only when told."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


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


def reply(view: ChatView, text: str, label: str = "m", reasoning: str = "") -> None:
    view.begin_reply(label)
    if reasoning:
        view.append("", reasoning)
    view.append(text, "")
    view.finish_reply(STATS, "24 layers on the CPU")


def long_chat(view: ChatView, n_turns: int) -> None:
    for number in range(n_turns):
        view.add_user_message(f"question {number}")
        reply(view, f"answer {number}. " + "Some more words to wrap. " * 20)


def spots(view: ChatView, kind: str) -> list[tuple[QPoint, HotSpot]]:
    found = []
    left = view._left
    for message, top in zip(view._column.messages, view._column.tops, strict=True):
        for spot in message.hot_spots:
            if spot.kind == kind:
                center = spot.rect.center() + QPointF(left, top - view.verticalScrollBar().value())
                found.append((center.toPoint(), spot))
    return found


def click(qtbot, view: ChatView, point: QPoint) -> None:
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)


def drag(qtbot, view: ChatView, start: QPoint, end: QPoint) -> None:
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(view.viewport(), end)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=end)


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
    view.set_prompt_progress(1, 2, None, None)
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
    view.set_prompt_progress(100, 400, 50.0, 6.0)
    assert "Reading the prompt: 100 of 400 tokens · 50.0 tok/s · 6.0 s left" in view.toPlainText()
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
    view.set_prompt_progress(1, 4, 10.0, 3.0)
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
