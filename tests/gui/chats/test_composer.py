"""Writing a message: what sends, what does not, and what the buttons say."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtWidgets import QApplication

from moelauncher.gui.chats.composer import Composer
from moelauncher.gui.chats.message_field import LINES_MAX
from moelauncher.gui.theme import chat_font, theme

TYPED = "and what the wind said to the barn when night came on a roof"


@pytest.fixture
def composer(qtbot):
    widget = Composer()
    qtbot.addWidget(widget)
    widget.resize(700, widget.sizeHint().height())
    widget.set_enabled_actions(send=True, stop=False)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


@pytest.fixture
def sent(composer):
    texts: list[str] = []
    composer.send_requested.connect(texts.append)
    return texts


def type_text(qtbot, composer, text):
    qtbot.keyClicks(composer.field, text)


def compose(composer, preedit, commit=""):
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(composer.field, event)


def test_enter_sends_and_empties_the_field(qtbot, composer, sent):
    type_text(qtbot, composer, "hello")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == ["hello"]
    assert composer.field.toPlainText() == ""


def test_enter_of_the_number_block_sends(qtbot, composer, sent):
    type_text(qtbot, composer, "hello")
    qtbot.keyClick(composer.field, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)
    assert sent == ["hello"]


def test_shift_enter_starts_a_line(qtbot, composer, sent):
    type_text(qtbot, composer, "a")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    type_text(qtbot, composer, "b")
    assert sent == []
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == ["a\nb"]


@pytest.mark.parametrize("text", ["", "   "])
def test_blank_text_is_not_sent(qtbot, composer, sent, text):
    type_text(qtbot, composer, text)
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    assert not composer.send.isEnabled()


def test_text_is_kept_while_nothing_can_be_sent(qtbot, composer, sent):
    composer.set_enabled_actions(send=False, stop=True)
    type_text(qtbot, composer, "next question")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    assert composer.field.toPlainText() == "next question"


def test_enter_within_a_composition_does_not_send(qtbot, composer, sent):
    type_text(qtbot, composer, "nihon")
    compose(composer, "ご")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []


def test_the_enter_that_ends_a_composition_does_not_send_but_the_next_does(qtbot, composer, sent):
    compose(composer, "日本")
    compose(composer, "", "日本")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == []
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == ["日本"]


def test_a_composition_that_ended_long_ago_does_not_hold_enter_back(qtbot, composer, sent):
    compose(composer, "日本")
    compose(composer, "", "日本")
    qtbot.waitUntil(lambda: not composer.field._composition_ended.isActive())
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == ["日本"]


def test_up_in_the_empty_field_brings_the_last_message_back(qtbot, composer, sent):
    qtbot.keyClick(composer.field, Qt.Key.Key_Up)
    assert composer.field.toPlainText() == ""
    type_text(qtbot, composer, "again")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    qtbot.keyClick(composer.field, Qt.Key.Key_Up)
    assert composer.field.toPlainText() == "again"
    assert composer.field.textCursor().atEnd()


def test_up_in_a_text_moves_the_cursor(qtbot, composer, sent):
    type_text(qtbot, composer, "again")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    type_text(qtbot, composer, "new")
    qtbot.keyClick(composer.field, Qt.Key.Key_Up)
    assert composer.field.toPlainText() == "new"


def test_the_field_grows_to_eight_lines(composer):
    heights = []
    for lines in (1, 2, LINES_MAX, LINES_MAX + 1, 100):
        composer.field.setPlainText("\n".join(["x"] * lines))
        heights.append(composer.field.height())
    assert heights[0] < heights[1] < heights[2]
    assert heights[2] == heights[3] == heights[4]
    composer.field.clear()
    assert composer.field.height() == heights[0]


def test_long_lines_that_wrap_make_it_grow_too(composer):
    one = composer.field.height()
    composer.field.setPlainText("word " * 100)
    assert composer.field.height() > one


def test_a_long_text_has_no_bar_below_it(qtbot, composer):
    for width in (566, 600):
        composer.resize(width, composer.height())
        composer.field.clear()
        qtbot.wait(20)
        composer.field.setPlainText("x" * 5000)
        qtbot.waitUntil(composer.field.verticalScrollBar().isVisible)
        assert not composer.field.horizontalScrollBar().isVisible()


def test_what_is_typed_pushes_nothing_out_of_sight(qtbot, composer):
    composer.resize(360, composer.height())
    qtbot.wait(1)
    field = composer.field
    across, down = field.horizontalScrollBar(), field.verticalScrollBar()
    words = itertools.cycle(
        [
            "and",
            "what",
            "the",
            "wind",
            "said",
            "to",
            "the",
            "barn",
            "when",
            "night",
            "came",
            "on",
            "a",
            "roof",
        ]
    )
    while field.shown_lines < LINES_MAX:
        # Where a space hangs over the end of a line, Qt itself follows it.
        for letter in f"{next(words)} ":
            qtbot.keyClicks(field, letter)
            assert (across.value(), down.maximum()) == (0, 0)


def test_rich_text_is_pasted_as_plain_text(composer):
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold")
    QGuiApplication.clipboard().setMimeData(data)
    composer.field.paste()
    assert composer.field.toPlainText() == "bold"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("\n \n    if x:\n\treturn\n\n", "    if x:\n\treturn"),
        ("  hello ", "hello"),
        ("Qui\u00a0? 東京", "Qui\u00a0? 東京"),
    ],
)
def test_text_is_sent_as_it_was_written(qtbot, composer, sent, written, expected):
    composer.field.setPlainText(written)
    qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent == [expected]


def test_the_empty_field_grows_with_the_chats_text(composer):
    theme().set_chat_zoom(150)
    try:
        viewport = composer.field.viewport()
        assert viewport.font().pixelSize() == chat_font().pixelSize(), "of the placeholder"
    finally:
        theme().set_chat_zoom(100)


def test_stop_takes_the_place_of_send(qtbot, composer):
    place = composer.send.geometry()
    size = composer.size()
    composer.set_enabled_actions(send=False, stop=True)
    assert composer.stop.isVisible()
    assert not composer.send.isVisible()
    assert composer.stop.geometry() == place
    assert composer.size() == size
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.mouseClick(composer.stop, Qt.MouseButton.LeftButton)
    composer.set_enabled_actions(send=True, stop=False)
    assert composer.send.isVisible()


def test_context_use(composer):
    composer.set_context(1200, 32768)
    assert composer.context.text() == "1.2k of 32k"
    assert "1,200 of 32,768" in composer.context.toolTip()
    composer.set_context(32000, 32768)
    assert composer.context.text() == "nearly full: 32k of 32k"
    composer.set_context(40000, 32768)
    assert composer.context.text() == "too much: 40k of 32k"
    composer.set_context(1200, None)
    assert composer.context.text() == "1.2k tokens"
    composer.set_context(None, None)
    assert composer.context.text() == ""


def test_names_for_tests_and_assistive_tools(composer):
    named = {
        composer.field: ("chatInput", "Message"),
        composer.send: ("sendButton", "Send"),
        composer.stop: ("stopButton", "Stop"),
    }
    for widget, names in named.items():
        assert (widget.objectName(), widget.accessibleName()) == names


def test_the_model_is_named_in_the_empty_field(composer):
    composer.set_model_name("gpt-oss-20b")
    assert composer.field.placeholderText() == "Message gpt-oss-20b"
    composer.set_model_name("")
    assert composer.field.placeholderText() == "Message"


def test_files_are_left_to_the_window(composer):
    files, link = QMimeData(), QMimeData()
    files.setUrls([QUrl.fromLocalFile("/models/x.gguf")])
    link.setUrls([QUrl("https://a.example/")])
    link.setText("https://a.example/")
    assert not composer.field.canInsertFromMimeData(files)
    assert composer.field.canInsertFromMimeData(link)


def test_escape_stops_a_reply_that_runs(qtbot, composer):
    stops: list[bool] = []
    composer.stop_requested.connect(lambda: stops.append(True))
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert stops == []
    composer.set_enabled_actions(send=False, stop=True)
    compose(composer, "x")
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert stops == []
    compose(composer, "")
    qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert stops == [True]


def test_text_is_pasted_at_the_cursor_and_can_be_taken_back(composer):
    composer.field.setPlainText("before  after")
    cursor = composer.field.textCursor()
    cursor.setPosition(len("before "))
    composer.field.setTextCursor(cursor)
    QGuiApplication.clipboard().setText("one\r\ntwo\n<b>three</b>")
    composer.field.paste()
    assert composer.field.toPlainText() == "before one\ntwo\n<b>three</b> after"
    composer.field.undo()
    assert composer.field.toPlainText() == "before  after"
