"""Code blocks inside a reply: found in the document, coloured by Pygments, drawn as a card.

A code block is a run of text blocks of the reply's own document, so selection and copy
work across it; this file adds the card around it, its language and its Copy button.
GUI thread only.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QPainter,
    QPen,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)

from moelauncher.gui import theme as look
from moelauncher.gui.palette import Palette

if TYPE_CHECKING:
    from pygments.token import _TokenType

HEADER_PX = 28.0
PAD_PX = 12.0
GAP_PX = 8.0
#: Longer code stays plain: a lexer takes some seconds a megabyte.
HIGHLIGHT_LIMIT_CHARS = 40_000


@dataclass(frozen=True)
class CodeBlock:
    """One code block: text block numbers ``first`` to ``last`` (included) of its document."""

    first: int
    last: int
    language: str
    text: str


def code_font() -> QFont:
    """The system's fixed font, in the size of the body text."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPixelSize(look.chat_font("body").pixelSize() - 1)
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def find_code_blocks(document: QTextDocument) -> tuple[CodeBlock, ...]:
    """The code blocks of a document that was set from Markdown, in order."""
    found: list[CodeBlock] = []
    run: list[QTextBlock] = []

    def close() -> None:
        if run:
            found.append(
                CodeBlock(
                    run[0].blockNumber(),
                    run[-1].blockNumber(),
                    _language(run[0]),
                    "\n".join(block.text() for block in run),
                )
            )
            run.clear()

    block = document.begin()
    while block.isValid():
        if _is_code(block):
            if run and _language(block) != _language(run[0]):
                close()
            run.append(block)
        else:
            close()
        block = block.next()
    close()
    return tuple(found)


def style_code_block(document: QTextDocument, code: CodeBlock, colors: Palette) -> None:
    """Give a code block its font, its colours and the room for the card around it."""
    font = code_font()
    cursor = QTextCursor(document)
    first = document.findBlockByNumber(code.first)
    last = document.findBlockByNumber(code.last)
    cursor.setPosition(first.position())
    cursor.setPosition(last.position() + last.length() - 1, QTextCursor.MoveMode.KeepAnchor)
    plain = QTextCharFormat()
    plain.setFont(font)
    plain.setForeground(colors.text)
    cursor.mergeCharFormat(plain)
    block = first
    while block.isValid() and block.blockNumber() <= code.last:
        shape = QTextBlockFormat()
        shape.setLeftMargin(PAD_PX)
        shape.setRightMargin(PAD_PX)
        shape.setTopMargin(GAP_PX + HEADER_PX if block == first else 0)
        shape.setBottomMargin(GAP_PX + PAD_PX if block == last else 0)
        # Wrapped, not scrolled: nothing of a long line is hidden, and copying gives one line.
        shape.setNonBreakableLines(False)
        shape.setLineHeight(135, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        QTextCursor(block).mergeBlockFormat(shape)
        # The block's own character format sets the height of empty lines.
        QTextCursor(block).mergeBlockCharFormat(plain)
        block = block.next()
    _highlight(document, code, first.position(), colors)


def card_rect(document: QTextDocument, code: CodeBlock, width: float) -> QRectF:
    """Where the card of ``code`` is drawn, in the document's coordinates."""
    layout = document.documentLayout()
    top = layout.blockBoundingRect(document.findBlockByNumber(code.first))
    bottom = layout.blockBoundingRect(document.findBlockByNumber(code.last))
    left = max(0.0, top.left() - PAD_PX)
    return QRectF(
        left, top.top() - HEADER_PX, width - left, bottom.bottom() - top.top() + HEADER_PX + PAD_PX
    )


def copy_rect(card: QRectF, label: str) -> QRectF:
    """Where the Copy button is, given the card and the button's text."""
    text_px = QFontMetricsF(look.chat_font("small")).horizontalAdvance(label)
    width = text_px + 2 * look.GRID
    return QRectF(card.right() - width - look.HALF, card.top() + 3, width, HEADER_PX - 6)


def paint_card(painter: QPainter, card: QRectF, language: str, colors: Palette) -> None:
    """Draw the card behind a code block, and the name of its language."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(colors.border, look.BORDER))
    painter.setBrush(colors.surface)
    painter.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), look.RADIUS, look.RADIUS)
    if language:
        painter.setFont(look.chat_font("small"))
        painter.setPen(colors.muted)
        room = QRectF(card.topLeft() + QPointF(PAD_PX, 0), card.bottomRight())
        room.setHeight(HEADER_PX)
        room.setWidth(room.width() / 2)
        text = QFontMetricsF(painter.font()).elidedText(
            language, Qt.TextElideMode.ElideRight, room.width()
        )
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)


def _is_code(block: QTextBlock) -> bool:
    shape = block.blockFormat()
    return bool(
        shape.hasProperty(QTextFormat.Property.BlockCodeFence.value)
        or shape.hasProperty(QTextFormat.Property.BlockCodeLanguage.value)
        or shape.nonBreakableLines()
        or _indented_code(block)
    )


def _indented_code(block: QTextBlock) -> bool:
    # Qt marks indented code by its font alone.
    parts = block.begin()
    if parts.atEnd():
        return False
    while not parts.atEnd():
        if not parts.fragment().charFormat().fontFixedPitch():
            return False
        parts += 1
    return block.blockFormat().topMargin() == 0 and block.textList() is None


def _language(block: QTextBlock) -> str:
    value = block.blockFormat().property(QTextFormat.Property.BlockCodeLanguage.value)
    words = str(value or "").split()
    return words[0] if words else ""


def _highlight(document: QTextDocument, code: CodeBlock, start: int, colors: Palette) -> None:
    if not code.language or len(code.text) > HIGHLIGHT_LIMIT_CHARS:
        return
    # At the first code block, for the window is quicker without it.
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(code.language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return
    # Qt counts UTF-16 units, Python whole characters.
    wide = [index for index, char in enumerate(code.text) if char > "\uffff"]

    def place(index: int) -> int:
        return start + index + bisect_left(wide, index)

    cursor = QTextCursor(document)
    for index, kind, value in lexer.get_tokens_unprocessed(code.text):
        color = _color(kind, colors)
        if color is None or not value.strip():
            continue
        shape = QTextCharFormat()
        shape.setForeground(color)
        cursor.setPosition(place(index))
        cursor.setPosition(place(index + len(value)), QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(shape)


def _color(kind: _TokenType, colors: Palette) -> QColor | None:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    for group, color in (
        (Comment, colors.code_comment),
        (Keyword, colors.code_keyword),
        (Operator.Word, colors.code_keyword),
        (Name.Function, colors.code_function),
        (Name.Class, colors.code_function),
        (Name.Decorator, colors.code_function),
        (Name.Tag, colors.code_function),
        (String, colors.code_string),
        (Number, colors.code_number),
    ):
        if any(ancestor is group for ancestor in kind.split()):
            return color
    return None
