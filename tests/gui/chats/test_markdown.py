"""Markdown of a reply: styled, complete, and never HTML or a loaded resource."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextDocument, QTextTable

from moelauncher.gui.chats.code_block import GAP_PX, card_rect
from moelauncher.gui.chats.markdown import MARKDOWN_LIMIT_CHARS, ReplyDocument, prepared, set_reply
from moelauncher.gui.palette import DARK

pytestmark = pytest.mark.usefixtures("qapp")


def rendered(text: str) -> ReplyDocument:
    document = ReplyDocument()
    set_reply(document, text, DARK)
    return document


@pytest.mark.parametrize(
    "text",
    [
        "<b>bold</b>",
        "<script>alert(1)</script>",
        '<img src="http://example.org/x.png">',
        "<think>why</think>",
        "a < b and b > c",
        "<|im_start|>user",
    ],
)
def test_html_stays_text(text):
    assert rendered(text).toPlainText().strip() == text


def test_nothing_is_loaded(monkeypatch):
    asked = []
    load = ReplyDocument.loadResource
    monkeypatch.setattr(
        ReplyDocument,
        "loadResource",
        lambda self, kind, name: (asked.append(name), load(self, kind, name))[1],
    )
    document = rendered("![cat](http://example.org/cat.png) ![](file:///etc/passwd)")
    document.size()
    assert asked == []
    text = document.toPlainText()
    assert "[image: cat, http://example.org/cat.png]" in text
    assert "[image: no description, file:///etc/passwd]" in text


def test_a_resource_that_is_asked_for_is_not_given():
    kind = QTextDocument.ResourceType.ImageResource.value
    assert ReplyDocument().resource(kind, QUrl("file:///etc/passwd")) is None


def test_text_that_looks_like_front_matter_is_shown():
    text = rendered("---\ntitle: x\n---\nHello").toPlainText()
    assert "title: x" in text
    assert "Hello" in text


def test_two_blocks_of_code_in_a_row_stay_two():
    document = ReplyDocument()
    codes = set_reply(document, "```py\na = 1\n```\n\n```py\nb = 2\n```", DARK)
    assert [(code.language, code.text) for code in codes] == [("py", "a = 1"), ("py", "b = 2")]


def test_code_keeps_empty_lines_and_indentation():
    text = "def f():\n\n    return '*_<b>_*'"
    codes = set_reply(ReplyDocument(), f"Look:\n\n```python\n{text}\n```\nDone.", DARK)
    assert [code.text for code in codes] == [text]


@pytest.mark.parametrize(
    "source",
    ["~~~\nx\n~~~", "    x", "```\nx", "- item\n\n  ```\n  x\n  ```"],
    ids=["tildes", "indented", "cut off", "in a list"],
)
def test_every_kind_of_code_block_is_found(source):
    assert [code.text for code in set_reply(ReplyDocument(), source, DARK)] == ["x"]


def test_formulas_stay_readable():
    text = rendered(r"With \(a_1 * b_2\) and $x_i + y_i$ and \[c_1\].").toPlainText()
    assert text == r"With \(a_1 * b_2\) and $x_i + y_i$ and \[c_1\]."


def test_formulas_in_code_are_left_alone():
    codes = set_reply(ReplyDocument(), "```\n$a_1$ \\(x\\)\n```", DARK)
    assert codes[0].text == "$a_1$ \\(x\\)"
    assert rendered("`$a_1$`").toPlainText() == "$a_1$"


def test_prices_are_no_formulas():
    assert rendered("It costs $5 or *maybe* $6.").toPlainText() == "It costs $5 or maybe $6."


def test_a_table_is_a_table():
    document = rendered("> quote\n\n| a | b |\n|---|--:|\n| 1 | **2** |\n")
    tables = [f for f in document.rootFrame().childFrames() if isinstance(f, QTextTable)]
    assert [(table.rows(), table.columns()) for table in tables] == [(2, 2)]
    cells = [
        tables[0].cellAt(row, column).firstCursorPosition().block().text()
        for row in range(2)
        for column in range(2)
    ]
    assert cells == ["a", "b", "1", "2"]


def test_a_table_stands_clear_of_the_code_above_it():
    document = ReplyDocument()
    (code,) = set_reply(document, "Text\n\n```\nx\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n", DARK)
    document.setTextWidth(400)
    (table,) = (f for f in document.rootFrame().childFrames() if isinstance(f, QTextTable))
    text = document.documentLayout().blockBoundingRect(table.firstCursorPosition().block())
    shape = table.format().toTableFormat()
    edge = text.top() - shape.cellPadding() - shape.border()
    assert edge >= card_rect(document, code, 400).bottom() + GAP_PX


@pytest.mark.parametrize(
    "text",
    [
        ">" * 3000 + " x",
        "- " * 3000 + "x",
        "[" * 5000,
        "*a_" * 5000,
        "`" * 5001 + "x",
        "$a" * 5000,
        "| a " * 500 + "|\n" + "|---" * 500 + "|\n",
        "\n".join("  " * depth + "- x" for depth in range(200)),
        "\x00\ufffe\u202eabc",
        "",
    ],
    ids=["quotes", "lists", "brackets", "stars", "ticks", "dollars", "wide", "deep", "odd", "none"],
)
def test_hostile_text_is_laid_out(text):
    document = rendered(text)
    document.setTextWidth(600)
    assert document.size().height() >= 0


def test_very_long_text_is_shown_as_it_is():
    text = "**x** " * (MARKDOWN_LIMIT_CHARS // 6 + 1)
    assert rendered(text).toPlainText() == text


def test_plain_text_is_handed_on_unchanged():
    text = "Nothing *special* here.\n\n- a\n- b"
    assert prepared(text) == text
