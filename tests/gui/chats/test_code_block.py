"""Code is coloured by its language, at the right places, and drawn within its card."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QTextCursor

from moelauncher.gui.chats.code_block import card_rect, copy_rect
from moelauncher.gui.chats.markdown import ReplyDocument, set_reply
from moelauncher.gui.palette import DARK, LIGHT

pytestmark = pytest.mark.usefixtures("qapp")


def color_of(document: ReplyDocument, word: str) -> QColor:
    found = document.find(word)
    assert not found.isNull(), word
    cursor = QTextCursor(document)
    cursor.setPosition(found.selectionStart() + 1)
    return cursor.charFormat().foreground().color()


def test_words_have_the_theme_s_colours():
    document = ReplyDocument()
    set_reply(document, "```python\ndef bus(n):\n    return 2  # note\n```", DARK)
    assert color_of(document, "def") == DARK.code_keyword
    assert color_of(document, "bus") == DARK.code_function
    assert color_of(document, "note") == DARK.code_comment
    assert color_of(document, "2") == DARK.code_number


def test_colours_stay_in_place_behind_characters_of_two_units():
    document = ReplyDocument()
    set_reply(document, "```python\nx = '🙂🙂🙂'\nreturn_ = 1\nreturn x\n```", LIGHT)
    last = document.find("return x")
    cursor = QTextCursor(document)
    cursor.setPosition(last.selectionStart() + 1)
    assert cursor.charFormat().foreground().color() == LIGHT.code_keyword
    cursor.setPosition(last.selectionEnd())
    assert cursor.charFormat().foreground().color() != LIGHT.code_keyword


def test_a_byte_order_mark_moves_no_colour():
    document = ReplyDocument()
    set_reply(document, "```python\n\ufeffx = 1\nreturn x\n```", DARK)
    assert color_of(document, "return") == DARK.code_keyword
    found = document.find("return")
    cursor = QTextCursor(document)
    cursor.setPosition(found.selectionEnd())
    assert cursor.charFormat().foreground().color() == DARK.code_keyword
    cursor.setPosition(found.selectionEnd() + 1)
    assert cursor.charFormat().foreground().color() != DARK.code_keyword


@pytest.mark.parametrize("language", ["", "nosuchlanguage", "<b>", "python title=x"])
def test_any_language_is_taken(language):
    codes = set_reply(ReplyDocument(), f"```{language}\nx = 1\n```", DARK)
    assert codes[0].text == "x = 1"
    assert codes[0].language == (language.split() or [""])[0]


def test_the_card_holds_its_text_and_its_button():
    document = ReplyDocument()
    code = set_reply(document, "before\n\n```\nx\ny\n```\n\nafter", DARK)[0]
    document.setTextWidth(400)
    card = card_rect(document, code, 400)
    layout = document.documentLayout()
    for number in range(code.first, code.last + 1):
        assert card.contains(layout.blockBoundingRect(document.findBlockByNumber(number)))
    for text in ("before", "after"):
        around = layout.blockBoundingRect(document.find(text).block())
        assert not card.intersects(around)
    assert card.contains(copy_rect(card, "Copied"))
